//! Plans that wait: for rate limits, for a time; what goes on meanwhile, and what survives.
#![cfg(target_os = "linux")]

use crate::harness::{Project, until};
use crate::plan_text::{PlanText, events, has, place, reasons, signal};
use crate::simulated::{Simulated, begin, done, limit};

const AGENTS: [&str; 3] = ["claude", "codex", "opencode"];

/// An agent that is limited once for so many seconds, and then works.
fn limited_once(agent: &str, seconds: u32) -> String {
    format!(
        "{}; if [ $(calls limit) = 0 ]; then echo half > half.txt; {}; fi; echo {agent} > $BACKSTOP_PHASE.txt; {}",
        begin(agent),
        limit(agent, &seconds.to_string()),
        done(agent)
    )
}

fn ran(this: &Simulated) -> Vec<String> {
    place(&this.project, "ran").lines().map(str::to_owned).collect()
}

fn one_phase(agent: &str) -> PlanText {
    PlanText::new().phase("1", "", &format!("agent = '{agent}'"))
}

#[test]
fn a_session_limit_is_waited_for_and_the_same_session_goes_on() {
    for agent in AGENTS {
        let this = Simulated::new(
            &format!("waits-{agent}"),
            &one_phase(agent),
            &[(agent, &limited_once(agent, 8400))],
        );
        let said = this.run(&["--commit", "auto"]).go().code(0).stderr();
        assert_eq!(ran(&this), [format!("{agent} 1 new"), format!("{agent} 1 s-1")], "{agent}\n{said}");
        // Until the reset and a minute; what the scripts and git took is a few seconds.
        let waited = this.seconds();
        assert!((8400..8400 + 180).contains(&waited), "{agent}: {waited}\n{said}");
        has(
            &said,
            &[
                "waiting for ",
                "resets ",
                "(2h 2",
                "continues the same session of ",
                "COMPLETE  1 phase · 1 commit on main",
                "1 wait, 2h 2",
            ],
        );
        assert_eq!(reasons(&this.project), ["rate_limited"]);
        let wait = &events(&this.project, "wait.started")[0];
        assert_eq!((wait["wait"].as_u64(), wait["operation"].as_str()), (Some(1), Some("1")), "{wait}");
        // What was begun is there: nothing was done again.
        assert_eq!(this.project.sh("git show --name-only --format= HEAD"), "1.txt\nhalf.txt\n", "{agent}");
    }
}

#[test]
fn others_go_on_meanwhile_and_those_who_wait_together_share_a_wait() {
    let plan = PlanText::new()
        .phase("1", "", "agent = 'claude'")
        .phase("2", "", "agent = 'codex'")
        .beside("1")
        .phase("3", "2", "agent = 'claude'")
        .beside("1");
    let this = Simulated::new("waits-beside", &plan, &[("claude", &limited_once("claude", 7200))]);
    // It works until the wait of the other is in the log.
    let codex = format!(
        "{}; now > $PLACE/codex; until grep -q WAIT {}; do sleep 0.05; done; echo x > codex.txt; {}",
        begin("codex"),
        this.project.path().join(".backstop/runs/plan/logs/execution.log").display(),
        done("codex")
    );
    this.agent("codex", &codex);
    let began = this.project.sh("date +%s").trim().parse::<u64>().unwrap();
    let done = this.run(&["--commit", "auto"]).go().code(0);
    let codex_at: u64 = place(&this.project, "codex").trim().parse().unwrap();
    assert!(codex_at < began + 3600, "it did not wait for the other");
    // The third phase needs the provider that is limited: it is not even begun, and waits along.
    assert_eq!(ran(&this).iter().filter(|line| line.starts_with("claude 3")).count(), 1);
    let waits: Vec<u64> =
        events(&this.project, "wait.started").iter().map(|wait| wait["wait"].as_u64().unwrap()).collect();
    assert!(waits.len() >= 2 && waits.iter().all(|number| *number == 1), "{waits:?}\n{}", done.stderr());
    has(&done.stderr(), &["1 wait, 2h 0", "$2.50", " · 2 goes on"]);
}

#[test]
fn a_limit_of_one_model_holds_up_only_phases_with_that_model() {
    let plan = PlanText::new()
        .phase("1", "", "agent = 'claude'\nmodel = 'opus'")
        .phase("2", "", "agent = 'claude'\nmodel = 'sonnet'")
        .beside("1")
        .phase("3", "2", "agent = 'claude'\nmodel = 'claude-opus-4-1'")
        .beside("1");
    let limited = limit("claude", "9000").replace("five_hour", "seven_day_opus").replace("session", "Opus");
    let log = ".backstop/runs/plan/logs/execution.log";
    let script = format!(
        "{}; case $BACKSTOP_PHASE in
          1) if [ $(calls limit) = 0 ]; then {limited}; fi;;
          2) until grep -q WAIT \"$MAIN/{log}\"; do sleep 0.05; done; now > $PLACE/two;;
          3) now > $PLACE/three;;
        esac; echo x > $BACKSTOP_PHASE.txt; {}",
        begin("claude"),
        done("claude")
    );
    let this = Simulated::new("waits-model", &plan, &[("claude", &script)]);
    let began: u64 = this.project.sh("date +%s").trim().parse().unwrap();
    let said = this.run(&["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["waiting for anthropic (opus): weekly limit, resets ", " · 2 goes on with claude"]);
    let at = |name: &str| place(&this.project, name).trim().parse::<u64>().unwrap();
    assert!(at("two") < began + 3600, "another model was held up\n{said}");
    // The same model by another name is not even begun before the reset.
    assert!(at("three") >= began + 9000, "{said}");
    assert_eq!(ran(&this).iter().filter(|line| line.starts_with("claude 3")).count(), 1, "{said}");
    let guards = this.within(this.project.run(&["guard", "--json"])).go().code(0).stdout();
    has(&guards, &["\"model\":\"opus\""]);
}

#[test]
fn another_agent_takes_over_where_the_plan_or_the_settings_name_one() {
    for from in ["plan", "settings"] {
        let settings =
            if from == "plan" { "agent = 'claude'\nfallback_agents = ['codex']" } else { "agent = 'claude'" };
        let plan = PlanText::new().phase("1", "", settings);
        let codex = format!("{}; echo x > codex.txt; {}", begin("codex"), done("codex"));
        let this = Simulated::new(
            &format!("takeover-{from}"),
            &plan,
            &[("claude", &limited_once("claude", 7200)), ("codex", &codex)],
        );
        if from == "settings" {
            this.project.settings("[plan]\nfallback_agents = [\"nobody-here\", \"codex\"]\n[agent.nobody-here]\ncommand = [\"no-such-agent\"]\n[exec]\ngrace = \"500ms\"\n");
        }
        let done = this.run(&["--commit", "auto"]).go().code(0);
        assert_eq!(ran(&this), ["claude 1 new", "codex 1 new"]);
        has(&done.stderr(), &["codex takes over"]);
        assert!(this.seconds() < 600, "nobody waited");
        if from == "settings" {
            has(&done.stderr(), &["nobody-here cannot take over: its program is not there"]);
        }
    }
}

#[test]
fn a_limit_beyond_the_longest_wait_halts_with_its_time_and_the_command() {
    let this = Simulated::new(
        "waits-weekly",
        &one_phase("codex"),
        &[("codex", &format!("{}; {}", begin("codex"), limit("codex", "300000")))],
    );
    let done = this.run(&["--commit", "auto"]).go().code(3);
    assert!(this.seconds() < 60, "nobody waited");
    has(
        &done.stderr(),
        &[
            "is limited: openai, weekly limit, resets ",
            "backstop run plan.md --commit auto --at 20",
            "(in 3d 11h",
        ],
    );
    // A longer wait is allowed: it is waited for, as far as a sentence closes a guard.
    this.agent("codex", &format!("{}; echo x > x.txt; {}", begin("codex"), crate::simulated::done("codex")));
    this.run(&["--commit", "auto", "--wait-max", "100h"]).go().code(0);
    assert!((20_000..30_000).contains(&this.seconds()), "6 hours: {}", this.seconds());
    // The settings say the same.
    let this =
        Simulated::new("waits-settings", &one_phase("codex"), &[("codex", &limited_once("codex", 300_000))]);
    this.project.settings("[plan]\nwait_max = \"100h\"\nwaits_max = 1\n[exec]\ngrace = \"500ms\"\n");
    this.run(&["--commit", "auto"]).go().code(0);
    assert!(this.seconds() > 200_000, "{}", this.seconds());
}

#[test]
fn a_run_waits_so_often_and_no_more() {
    let always = format!("{}; {}", begin("claude"), limit("claude", "1200"));
    for (flags, waits) in [(&["--commit", "auto"][..], 4), (&["--commit", "auto", "--waits-max", "1"], 1)] {
        let this =
            Simulated::new(&format!("waits-{waits}-times"), &one_phase("claude"), &[("claude", &always)]);
        let done = this.run(flags).go().code(3);
        let numbers = events(&this.project, "wait.started").len();
        assert_eq!(numbers, waits, "{}", done.stderr());
        let decisions = events(&this.project, "decision.made");
        has(decisions.last().unwrap()["why"].as_str().unwrap(), &["allowed in a run, and no more"]);
        // Whoever resumes it allows as many again.
        this.run(flags).go().code(3);
        assert_eq!(events(&this.project, "wait.started").len(), 2 * waits);
    }
}

#[test]
fn the_window_of_a_limit_decides_the_margin_and_a_reset_that_has_just_passed_is_one_now() {
    for (name, seconds, waited) in [("soon", "300", 355..420), ("passed", "-300", 55..120)] {
        let limited = limit("claude", seconds);
        // Another limit that lets through says nothing about the one that refused.
        let other = r#"echo '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":9999999999,"rateLimitType":"seven_day"}}'"#;
        let (refused, result) = limited.split_once("; ").unwrap();
        let script = format!(
            "{}; if [ $(calls limit) = 0 ]; then {refused}; {other}; {result}; fi; echo x > x.txt; {}",
            begin("claude"),
            done("claude")
        );
        let this = Simulated::new(&format!("margin-{name}"), &one_phase("claude"), &[("claude", &script)]);
        let said = this.run(&["--commit", "auto"]).go().code(0).stderr();
        assert!(waited.contains(&this.seconds()), "{name}: {}\n{said}", this.seconds());
        has(&said, &["waiting for anthropic: session limit, "]);
        assert!(!said.contains("no end is known"), "{said}");
    }
}

/// Resets that cannot be used: each is waited for in bounded steps, or halts in words.
#[test]
fn strange_resets_are_waited_for_within_bounds_and_said_in_words() {
    let result = |text: &str| {
        format!(
            r#"echo '{{"type":"result","is_error":true,"api_error_status":429,"result":"{text}"}}'; exit 1"#
        )
    };
    let event = |at: &str| {
        format!(
            r#"printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}}}\n' {at}; {}"#,
            result("You have hit your session limit")
        )
    };
    for (name, says, waits, halts) in [
        ("past", event("$(( $(now) - 86400 ))"), "no end is known, tried again", false),
        ("year-9999", event("253402300799"), "resets 9998-12-31 23:59 UTC", true),
        ("negative", event("-5"), "no end is known, tried again", false),
        (
            "no-zone",
            result("You have hit your session limit · resets 3pm (Mars/Olympus)"),
            "no end is known, tried again",
            false,
        ),
        (
            "german",
            result("Sie haben Ihr Sitzungslimit erreicht. Zurückgesetzt um 15 Uhr"),
            "no end is known, tried again",
            false,
        ),
        ("chinese", result("已达到使用上限，请于15:00后再试"), "no end is known, tried again", false),
    ] {
        let script = format!(
            "{}; if [ $(calls limit) -lt 3 ]; then {says}; fi; echo x > x.txt; {}",
            begin("claude"),
            done("claude")
        );
        let this = Simulated::new(&format!("strange-{name}"), &one_phase("claude"), &[("claude", &script)]);
        let done = this.run(&["--commit", "auto"]).go().code(if halts { 3 } else { 0 });
        let said = done.stderr();
        has(&said, &[waits]);
        assert!(this.seconds() < 3600, "{name}: {}\n{said}", this.seconds());
        assert!(reasons(&this.project).iter().all(|reason| reason == "rate_limited"), "{name}");
        // All of these are one wait of the run.
        let numbers: Vec<u64> =
            events(&this.project, "wait.started").iter().map(|wait| wait["wait"].as_u64().unwrap()).collect();
        assert!(numbers.iter().all(|number| *number == 1), "{name}: {numbers:?}");
    }
}

#[test]
fn usage_that_costs_extra_is_not_used_unless_somebody_allows_it() {
    let script = format!(
        r#"{}; if [ $(calls overage) = 0 ]; then printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"allowed","resetsAt":%s,"rateLimitType":"five_hour","overageStatus":"allowed","isUsingOverage":true}}}}\n' $(( $(now) + 7200 )); [ -n "$ALLOWED" ] || sleep 30; fi; echo x > x.txt; {}"#,
        begin("claude"),
        done("claude")
    );
    let this = Simulated::new("overage", &one_phase("claude"), &[("claude", &script)]);
    let done = this.run(&["--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["paid for extra", "session limit, resets "]);
    assert!(this.seconds() >= 7200);
    assert_eq!(ran(&this), ["claude 1 new", "claude 1 s-1"]);
    let this = Simulated::new("overage-allowed", &one_phase("claude"), &[("claude", &script)]);
    this.run(&["--commit", "auto", "--allow-overage"]).env("ALLOWED", "1").go().code(0);
    assert_eq!(ran(&this), ["claude 1 new"]);
    assert!(this.seconds() < 600);
}

/// Ends Backstop in the middle of a wait: the first look at the clock while nothing runs is real
/// time.
fn killed_while_it_waits(this: &Simulated, flags: &[&str]) {
    // Without the simulated clock it waits for real, and can be killed.
    let mut child = this.run(flags).env("BACKSTOP_CLOCK_FILE", "").command().spawn().unwrap();
    until("it waits", || {
        if child.try_wait().unwrap().is_some() {
            let mut said = String::new();
            std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
            panic!("it ended: {said}");
        }
        !events(&this.project, "wait.started").is_empty()
    });
    signal(&child, "KILL");
    child.wait().unwrap();
}

#[test]
fn a_wait_survives_kill_and_is_gone_on_with_by_resume_all() {
    // The agent has no guard: only the run's own record knows of the wait.
    let plan = PlanText::new().phase("1", "", "agent = 'mine'");
    let script = "if [ $(calls limit) = 0 ]; then echo 'usage limit reached, try again in 3 hours' >&2; exit 1; fi; echo x > x.txt; complete";
    let this = Simulated::new("waits-killed", &plan, &[("mine", script)]);
    this.project.settings("[agent.mine]\ncommand = [\"mine\"]\n[exec]\ngrace = \"500ms\"\n");
    killed_while_it_waits(&this, &["--commit", "auto"]);
    let status = this.within(this.project.run(&["plan", "status"])).go().code(0).stdout();
    has(&status, &["interrupted", "waiting: session limit, resets "]);
    let json = this.within(this.project.run(&["plan", "status", "--json"])).go().code(0).json();
    assert_eq!(json["waits"]["times"], 1);
    assert!(json["phases"][0]["wait"]["until"].is_string(), "{json}");
    let place = this.project.beside("place");
    let resumed = this
        .within(this.project.run(&["run", "--resume-all"]))
        .env("PLACE", &place.display().to_string())
        .go()
        .code(0);
    has(&resumed.stderr(), &["plan.md goes on (0 of 1 phases complete)", "resumed.log"]);
    until("it is complete", || events(&this.project, "run.ended").iter().any(|end| end["outcome"] == "done"));
    // It has waited for what was left, and made one more attempt.
    assert_eq!(ran(&this), ["mine 1 new", "mine 1 new"]);
    assert!((10_000..11_000).contains(&this.seconds()), "{}", this.seconds());
    until("its output is in the log", || {
        this.project.read(".backstop/runs/plan/logs/resumed.log").contains("COMPLETE  1 phase")
    });
    let again = this.within(this.project.run(&["run", "--resume-all"])).go().code(0);
    has(&again.stderr(), &["no run of a plan was cut off"]);
}

#[test]
fn a_run_starts_at_a_time_and_a_kill_before_it_is_survived() {
    let script = "now > $PLACE/began; echo x > x.txt; complete";
    let plan = PlanText::new().phase("1", "", "agent = 'mine'");
    let this = Simulated::new("starts-at", &plan, &[("mine", script)]);
    this.project.settings("[agent.mine]\ncommand = [\"mine\"]\n[exec]\ngrace = \"500ms\"\n");
    let at = this.project.sh("date -u -d '+5 hours' +%Y-%m-%dT%H:%M:%SZ").trim().to_owned();
    killed_while_it_waits(&this, &["--commit", "auto", "--at", &at]);
    has(&this.within(this.project.run(&["plan", "status"])).go().code(0).stdout(), &["starts 20", "(in "]);
    let place_folder = this.project.beside("place").display().to_string();
    this.within(this.project.run(&["run", "--resume-all"])).env("PLACE", &place_folder).go().code(0);
    until("it is complete", || events(&this.project, "run.ended").iter().any(|end| end["outcome"] == "done"));
    assert!((17_900..18_100).contains(&this.seconds()), "{}", this.seconds());
    assert!(!place(&this.project, "began").is_empty());
    // What is no time, and what is too far away, is said.
    let wrong = this.run(&["--commit", "auto", "--fresh", "-y", "--at", "soon"]).go().code(2).stderr();
    has(&wrong, &["`soon` is not a time that --at knows", "22:30"]);
    let far =
        this.run(&["--commit", "auto", "--fresh", "-y", "--at", "9999-01-01T00:00"]).go().code(2).stderr();
    has(&far, &["more than 31 days away"]);
}

#[test]
fn a_time_of_day_is_the_next_one() {
    let plan = PlanText::new().phase("1", "", "agent = 'mine'");
    let this = Simulated::new("starts-at-clock", &plan, &[("mine", "echo x > x.txt; complete")]);
    this.project.settings("[agent.mine]\ncommand = [\"mine\"]\n[exec]\ngrace = \"500ms\"\n");
    let at = this.project.sh("date -u -d '+5 hours' +%H:%M").trim().to_owned();
    this.run(&["--commit", "auto", "--at", &at]).env("TZ", "UTC").go().code(0);
    // The seconds of the minute are not in it.
    assert!((17_800..18_100).contains(&this.seconds()), "{}", this.seconds());
}

#[test]
fn the_machine_is_kept_awake_while_a_phase_works_and_sleeps_while_it_waits() {
    let script = format!(
        "{}; if [ $(calls limit) = 0 ]; then {}; fi; cat $PLACE/awake > $PLACE/seen; echo x > x.txt; {}",
        begin("claude"),
        limit("claude", "7200"),
        done("claude")
    );
    let helper = "#!/bin/sh\necho on >> \"$PLACE/awake\"\ncat > /dev/null\necho off >> \"$PLACE/awake\"\n";
    let this = Simulated::new("awake", &one_phase("claude"), &[("claude", &script)]);
    this.program("systemd-inhibit", helper);
    this.run(&["--commit", "auto"]).go().code(0);
    assert_eq!(place(&this.project, "seen"), "on\noff\non\n");
    until("it may sleep again", || place(&this.project, "awake") == "on\noff\non\noff\n");
    let this = Simulated::new("awake-not", &one_phase("claude"), &[("claude", &script)]);
    this.program("systemd-inhibit", helper);
    this.run(&["--commit", "auto", "--no-inhibit"]).go().code(0);
    assert_eq!(place(&this.project, "awake"), "");
}

#[test]
fn people_are_told_once_until_when_a_run_waits() {
    let this =
        Simulated::new("waits-told", &one_phase("claude"), &[("claude", &limited_once("claude", 7200))]);
    this.project.settings(
        "[notify.me]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> $PLACE/told\"]\n[exec]\ngrace = \"500ms\"\n",
    );
    this.run(&["--commit", "auto"]).go().code(0);
    until("people are told", || place(&this.project, "told").contains("goes on by itself at"));
    assert_eq!(place(&this.project, "told").matches("goes on by itself at").count(), 1);
}

#[test]
fn a_service_goes_in_as_it_is_shown_and_comes_out_without_a_trace() {
    let project = Project::git("service");
    let folder = project.beside("home/.config/systemd/user");
    let dry = project.run(&["init", "--service", "--dry-run"]).go().code(0).stdout();
    has(&dry, &["+++ ", "run --resume-all", "nothing was written"]);
    assert!(!folder.exists());
    let done = project.run(&["init", "--service"]).go().code(0).stdout();
    has(&done, &["backstop-resume.timer", "next: systemctl --user daemon-reload"]);
    let state = format!("Environment=\"BACKSTOP_STATE_DIR={}\"", project.state().display());
    let service = std::fs::read_to_string(folder.join("backstop-resume.service")).unwrap();
    has(&service, &["KillMode=process", "Environment=\"PATH=", &state]);
    has(&project.run(&["init", "--service"]).go().code(0).stdout(), &["the service is here already"]);
    let removed = project.run(&["init", "--service", "--remove"]).go().code(0).stdout();
    has(&removed, &["everything is as it was before", "systemctl --user disable"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    // A file of somebody else is left alone.
    std::fs::write(folder.join("backstop-resume.timer"), "mine\n").unwrap();
    project.run(&["init", "--service"]).go().code(1);
    assert_eq!(std::fs::read_to_string(folder.join("backstop-resume.timer")).unwrap(), "mine\n");
}
