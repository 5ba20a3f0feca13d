//! Where the time went, and what no rule knows.

use crate::harness::Project;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// Fails once with a reset connection, then succeeds.
const ONCE: &str = "if [ -e tried ]; then exit 0; fi; touch tried; echo npm error code ECONNRESET; exit 1";

#[test]
fn an_empty_journal_is_one_sentence() {
    let project = Project::new("stats-empty");
    for args in [&["stats"][..], &["stats", "--by", "reason"], &["stats", "--since", "7d"], &["drift"]] {
        let text = project.run(args).go().code(0).stdout();
        assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    }
    let json = project.run(&["stats", "--json"]).go().code(0).json();
    assert_eq!((json["runs"]["all"].as_u64(), json["total"]["attempts"].as_u64()), (Some(0), Some(0)));
    assert!(json["total"]["error_rate"].is_null());
    let text = project.run(&["stats", "--prometheus"]).go().code(0).stdout();
    assert!(text.starts_with("# HELP backstop_runs_total "), "{text}");
    assert_eq!(project.run(&["drift", "--check", "--json"]).go().code(0).json()["spike"], false);
}

#[test]
fn it_says_where_the_time_went() {
    let project = Project::new("stats-told");
    project.exec(&[], ONCE).go().code(0);
    project.exec(&[], "exit 0").go().code(0);
    project.exec(&[], "echo 'flux capacitor 7 offline'; exit 3").go().code(3);
    let json = project.run(&["stats", "--json"]).go().code(0).json();
    assert_eq!(json["runs"]["outcomes"], serde_json::json!({ "done": 2, "failed": 1 }));
    let total = &json["total"];
    let counts =
        ["attempts", "succeeded", "failed", "errors", "retried", "cured"].map(|key| total[key].as_u64());
    assert_eq!(counts, [4, 2, 2, 2, 1, 1].map(Some), "{total}");
    assert_eq!(total["error_rate"], 0.5);
    let reset =
        json["reasons"].as_array().unwrap().iter().find(|r| r["reason"] == "network_transient").unwrap();
    assert_eq!((reset["cured"].as_u64(), reset["class"].as_str()), (Some(1), Some("transient")));
    assert!(reset["waited_ms"].as_u64().unwrap() >= 10, "{reset}");
    assert_eq!(json["operations"][0]["operation"], "sh");
    assert_eq!(json["days"].as_array().unwrap().len(), 1);
    let text = project.run(&["stats"]).go().code(0).stdout();
    assert!(text.starts_with("time lost: ") && text.contains("3 runs: 2 done, 1 failed"), "{text}");
    assert!(text.contains("2 of 4 attempts failed (50 %) · cured by retry: 1 of 1 (100 %)"), "{text}");
    assert!(text.lines().count() <= 13, "{text}");
    for (by, head) in [("reason", "REASON"), ("class", "CLASS"), ("operation", "OPERATION"), ("day", "DAY")] {
        let table = project.run(&["stats", "--by", by]).go().code(0).stdout();
        assert!(table.starts_with(head) && table.lines().count() >= 2, "{table}");
    }
    let text = project.run(&["stats", "--prometheus"]).go().code(0).stdout();
    assert!(
        text.contains("backstop_errors_total{reason=\"network_transient\",class=\"transient\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("backstop_attempts_total{operation=\"sh\",result=\"success\"} 2\n"), "{text}");
    let none = project.run(&["stats", "--operation", "no such", "--json"]).go().code(0).json();
    assert_eq!(none["runs"]["all"], 0);
}

#[test]
fn only_the_last_while_counts() {
    let project = Project::new("stats-since");
    let old = format!("0:{}", -10 * DAY_MS);
    project.exec(&[], "exit 0").env("BACKSTOP_CLOCK_JUMP", &old).go().code(0);
    project.exec(&[], "exit 0").go().code(0);
    let runs = |args: &[&str]| project.run(args).go().code(0).json()["runs"]["all"].clone();
    assert_eq!(runs(&["stats", "--json"]), 2);
    assert_eq!(runs(&["stats", "--json", "--since", "7d"]), 1);
    project.run(&["stats", "--since", "7x"]).go().code(2);
    project.run(&["stats", "--by", "moon"]).go().code(2);
    project.run(&["stats", "--json", "--by", "day"]).go().code(2);
    project.run(&["stats", "--prometheus", "--since", "7d"]).go().code(2);
}

#[test]
fn what_no_rule_knows_has_a_rule_to_begin_with() {
    let project = Project::new("stats-drift");
    for n in [3, 17] {
        let script = format!("echo \"flux capacitor-{n} 'lost' after {n}ms (code 0x{n}) \"; exit 1");
        project.exec(&[], &script).go().code(1);
    }
    project.exec(&[], "printf 'quux\\033[31m is \\033[0mbroken\\n'; exit 1").go().code(1);
    let json = project.run(&["drift", "--json"]).go().code(0).json();
    let groups = json["groups"].as_array().unwrap();
    assert_eq!((groups.len(), groups[0]["count"].as_u64()), (2, Some(2)), "{json}");
    assert_eq!(json["recent"], serde_json::json!({ "unknown": 3, "errors": 3 }));
    // What is printed is a pack as it stands, once it is cut out.
    let text = project.run(&["drift"]).go().code(0).stdout();
    assert!(!text.contains('\x1b') && text.contains("2 times"), "{text}");
    let keys = ["[[rule]]", "id = ", "reason = ", "literals = ", "regex = ", "match = ", "miss = "];
    let stubs: String = text
        .lines()
        .filter(|line| keys.iter().any(|key| line.trim_start().starts_with(key)))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(stubs.matches("[[rule]]").count(), 2, "{text}");
    let pack = project.file("mine.toml", &stubs);
    let told = project.run(&["rules", "test"]).arg(&pack).go().code(0).stdout();
    assert!(told.starts_with("2 rules, 4 examples"), "{told}");
    // With its reason chosen, it is known.
    let chosen = stubs.replace("reason = \"unknown\"", "reason = \"service_down\"");
    project.file("mine.toml", chosen);
    let fault = project
        .run(&["classify", "--exit", "1", "--json", "--rules", "mine.toml"])
        .stdin("flux capacitor-99 'gone' after 12ms (code 0x5)\n")
        .go()
        .code(0)
        .json();
    assert_eq!(fault["reason"], "service_down", "{fault}\n{stubs}");
}

#[test]
fn a_spike_of_unknown_fails_the_check() {
    let project = Project::new("stats-spike");
    let before = format!("0:{}", -3 * DAY_MS);
    for _ in 0..10 {
        let script = "echo npm error code ECONNRESET; exit 1";
        project.exec(&["--attempts", "1"], script).env("BACKSTOP_CLOCK_JUMP", &before).go().code(1);
    }
    let unknown = || project.exec(&[], "echo who knows; exit 1").go().code(1);
    unknown();
    project.run(&["drift", "--check"]).go().code(0);
    for _ in 0..4 {
        unknown();
    }
    let text = project.run(&["drift", "--check"]).go().code(1).stdout();
    assert!(text.contains("5 of 5 errors (100 %) in the last day, 0 of 10 errors (0 %) before"), "{text}");
    assert!(text.contains("spike: "), "{text}");
    project.run(&["drift"]).go().code(0);
}
