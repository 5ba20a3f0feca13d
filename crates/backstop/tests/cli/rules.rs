use crate::harness::{Folder, Run};

#[test]
fn list_show_and_literals() {
    let all = Run::new(&["rules", "list"]).go().code(0).stdout();
    assert!(all.starts_with("RULE") && all.contains("\njest.summary "), "{all:.200}");
    let some = Run::new(&["rules", "list", "--reason", "content_policy", "--json"]).go().code(0).json();
    assert!(some["rules"].as_array().unwrap().iter().all(|r| r["reason"] == "content_policy"));
    assert_eq!(Run::new(&["rules"]).go().code(0).stdout(), all);
    let shown = Run::new(&["rules", "show", "rustfmt.diff"]).go().code(0).stdout();
    // The line changes with every rule that is added above.
    let shown: String =
        shown.lines().filter(|l| !l.starts_with("  pack ")).map(|l| format!("{l}\n")).collect();
    insta::assert_snapshot!(shown, @r#"
    rustfmt.diff · format_error · error (66)
      looks    "Diff in "
      regex    ^Diff in (?P<file>\S+?\.rs)(?: at line |:)(?P<line>\d+)
      next     run `cargo fmt`
      match    Diff in /home/user/project/src/main.rs:1:
      match    Diff in src/lib.rs at line 3:
      miss     Diff in output
    "#);
    let literals = Run::new(&["rules", "--literals"]).go().code(0).stdout();
    assert!(literals.lines().count() > 1000 && literals.lines().all(|l| l.len() >= 3));
}

#[test]
fn a_right_pack_passes() {
    let folder = Folder::new("rules-right");
    let pack = folder.file("acme.toml", include_str!("../../../backstop-classify/tests/fuzz/pack/good.toml"));
    let done = Run::new(&["rules", "test"]).arg(&pack).go().code(0);
    assert_eq!(done.stdout(), "1 rule, 2 examples: all as they should be\n");
    assert_eq!(Run::new(&["rules", "test", "--json"]).arg(&pack).go().code(0).json()["ok"], true);
}

#[test]
fn every_way_to_be_wrong_is_told_with_its_place() {
    let head = "[[rule]]\nid = \"acme.x\"\nreason = \"timeout\"\n";
    let tail = "match = [\"abc\"]\nmiss = [\"d\"]\n";
    let many: String = "a|".repeat(1500);
    let cases: &[(&str, String, &str, &str)] = &[
        ("regex", format!("{head}literals = [\"abc\"]\nregex = '(('\n{tail}"), ":5:9: broken regex:", ""),
        (
            "reason",
            "[[rule]]\nid = \"acme.x\"\nreason = \"rate_limted\"\nliterals = [\"abc\"]\n".to_owned() + tail,
            ":3:10: unknown reason `rate_limted`; did you mean `rate_limited`?",
            "`backstop reasons` lists them all",
        ),
        ("no-example", format!("{head}literals = [\"abc\"]\n"), ":1:1: rule `acme.x` has no example", ""),
        (
            "no-miss",
            format!("{head}literals = [\"abc\"]\nmatch = [\"abc\"]\n"),
            "has no example: add `miss`",
            "",
        ),
        (
            "example-fails",
            format!("{head}literals = [\"abd\"]\n{tail}"),
            "rule `acme.x` does not match its example \"abc\"",
            "run `backstop rules test` again",
        ),
        (
            "near-miss-matches",
            format!("{head}literals = [\"abc\"]\nmatch = [\"abc\"]\nmiss = [\"xabcx\"]\n"),
            "matches its near miss \"xabcx\"",
            "",
        ),
        (
            "blow-up",
            format!("{head}literals = [\"abc\"]\nregex = '(a{{500}}){{500}}'\n{tail}"),
            "bound its repetitions",
            "",
        ),
        ("too-long", format!("{head}literals = [\"abc\"]\nregex = '{many}'\n{tail}"), "more than 2048", ""),
        ("look-around", format!("{head}literals = [\"abc\"]\nregex = '(?=a)'\n{tail}"), "look-around", ""),
        (
            "unknown-key",
            format!("{head}literal = [\"abc\"]\n{tail}"),
            ":4:1: unknown field `literal`",
            "did you mean `literals`?",
        ),
        (
            "unknown-fact",
            format!("{head}literals = [\"abc\"]\nregex = '(?P<fiel>abc)'\n{tail}"),
            "captures `fiel`, which is no fact",
            "did you mean `file`?",
        ),
        (
            "short-literal",
            format!("{head}literals = [\"a\"]\n{tail}"),
            ":4:13: a literal has 3 to 120 bytes",
            "",
        ),
        ("nothing", format!("{head}{tail}"), "looks for nothing", ""),
        (
            "twice",
            format!("{head}literals = [\"abc\"]\n{tail}{head}literals = [\"abc\"]\n{tail}"),
            "is used twice",
            "",
        ),
        (
            "unknown-rule",
            format!("{head}literals = [\"abc\"]\nrequires = [\"jest.sumary\"]\n{tail}"),
            "`jest.sumary`, which is no rule",
            "did you mean `jest.summary`?",
        ),
        (
            "template",
            format!("{head}literals = [\"abc\"]\nnext = \"start {{mising}}\"\n{tail}"),
            "speaks of `{mising}`",
            "did you mean `{missing}`?",
        ),
        (
            "tier-and-weight",
            format!("{head}tier = \"error\"\nweight = 3\nliterals = [\"abc\"]\n{tail}"),
            "not both",
            "",
        ),
        ("not-toml", "[[rule]\n".to_owned(), ":1:", ""),
    ];
    let folder = Folder::new("rules-wrong");
    for (name, pack, message, hint) in cases {
        let file = folder.file(&format!("{name}.toml"), pack);
        let stderr = Run::new(&["rules", "test"]).arg(&file).go().code(2).stderr();
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert!(stderr.contains(hint), "{name}: {stderr}");
        assert!(stderr.contains(&format!("{name}.toml")), "{name}: {stderr}");
    }
    let file = folder.file("bytes.toml", b"# ok\n\xff");
    let stderr = Run::new(&["rules", "test"]).arg(&file).go().code(2).stderr();
    assert!(stderr.contains("bytes.toml:2:1: the pack is not UTF-8"), "{stderr}");
}

#[test]
fn audit_finds_no_rule_that_is_mostly_wrong_on_the_corpora_and_logs() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../backstop-classify/tests");
    let files = ["corpus/system.jsonl", "corpus/ecosystem.jsonl", "corpus/more.jsonl", "marked_logs.jsonl"];
    let audit = |least: &str, json: bool| {
        let mut run = Run::new(&["rules", "audit", "--least", least]);
        if json {
            run = run.arg("--json");
        }
        for file in files {
            run = run.arg(format!("{tests}/{file}"));
        }
        run.go().code(0)
    };
    let all = audit("6", true).json();
    assert!(all["failures"].as_u64().unwrap() > 900, "{}", all["failures"]);
    let rules = all["rules"].as_array().unwrap();
    let deciding = |rule: &&serde_json::Value| rule["decided"].as_u64() > Some(0);
    assert!(rules.iter().filter(deciding).count() > 200);
    for rule in rules {
        let (decided, wrong) = (rule["decided"].as_u64().unwrap(), rule["wrong"].as_u64().unwrap());
        assert!(decided < 6 || wrong * 2 <= decided, "{rule}");
    }
    let text = audit("6", false).stdout();
    assert!(!text.contains("generic.rebuild") && !text.contains("javac.summary"), "{text}");
}

#[test]
fn audit_lists_a_rule_that_is_mostly_wrong_and_refuses_a_bad_row_by_its_line() {
    let folder = Folder::new("rules-audit");
    let row = |id: u32| {
        format!(
            "{{\"id\":\"r-{id}\",\"tool\":\"t{id}\",\"exit_code\":1,\"stderr\":\"Traceback (most recent call \
             last):\\n  File \\\"a.py\\\", line 1\\nKeyError: 'x'\",\"kind\":\"lint_error\"}}\n"
        )
    };
    let corpus = folder.file("wrong.jsonl", (1..=7).map(row).collect::<String>());
    let text = Run::new(&["rules", "audit"]).arg(&corpus).go().code(0).stdout();
    assert!(text.contains("python.") && text.contains("r-1"), "{text}");
    let bad = folder
        .file("bad.jsonl", &(row(1) + "{\"id\":\"x\",\"tool\":\"t\",\"exit_code\":1,\"kind\":\"frob\"}\n"));
    let told = Run::new(&["rules", "audit"]).arg(&bad).go().code(2).stderr();
    assert!(told.contains("bad.jsonl:2: `frob` is no reason"), "{told}");
}
