use crate::harness::{Folder, Run};

const JEST: &str = include_str!("../../../backstop-demo/src/jest.log");

#[test]
fn a_failed_test_run_reads_as_in_the_readme() {
    let folder = Folder::new("classify-jest");
    let log = folder.file("out.log", JEST);
    let done = Run::new(&["classify", "--exit", "1"]).arg(log).go().code(0);
    insta::assert_snapshot!(done.stdout(), @r#"
    test_failure · permanent · medium · retry changed
      2 tests failed in src/api/auth.test.ts, src/api/auth.ts: auth > validateToken, auth > refreshToken
      expect(received).toEqual(expected) // deep equality
      recognised by rule jest.summary: "Tests:       2 failed, 44 passed, 46 total" (line 19)
      next: fix the failing tests, then `npx jest src/api/auth.test.ts`
    "#);
}

#[test]
fn standard_input_is_read_without_a_file() {
    let done = Run::new(&["classify", "--exit", "127"]).stdin("sh: 1: helmfile: not found\n").go().code(0);
    insta::assert_snapshot!(done.stdout(), @r#"
    dependency_missing · system · high · retry no
      missing: helmfile
      sh: 1: helmfile: not found
      recognised by rule process.not_found: "exit 127"
      next: install helmfile, or put it on the PATH
    "#);
}

#[test]
fn several_files_are_parts_of_one_failure() {
    let folder = Folder::new("classify-two");
    let (one, two) = (
        folder.file("out", "compiling\n"),
        folder.file("err", "cp: cannot stat 'a.conf': No such file or directory\n"),
    );
    let done = Run::new(&["classify", "--exit", "1", "--json"]).arg(one).arg(two).go().code(0);
    assert_eq!(done.json()["reason"], "invalid_usage");
    assert_eq!(done.json()["evidence"][0]["line"], 2);
}

#[test]
fn exit_0_is_success_whatever_the_text_says() {
    let done = Run::new(&["classify", "--exit", "0"]).stdin("ERROR: 429 timeout panic failed\n").go().code(0);
    assert_eq!(done.stdout(), "success · exit 0 is success, whatever the output says\n");
    let done = Run::new(&["classify", "--exit", "0", "--json"]).stdin("ERROR\n").go().code(0);
    assert_eq!(done.json()["reason"], serde_json::Value::Null);
}

#[test]
fn circumstances_decide_where_the_text_says_nothing() {
    let cases: &[(&[&str], &str)] = &[
        (&["--signal", "SIGSEGV"], "crash"),
        (&["--signal", "9"], "resource_exhausted"),
        (&["--signal", "term"], "interrupted"),
        (&["--timed-out"], "timeout"),
        (&["--timed-out", "--signal", "9"], "timeout"),
        (&["--exit", "124", "--command", "timeout 5 make"], "timeout"),
        (&["--exit", "126"], "permission_denied"),
        (&["--exit", "7", "--command", "curl -s http://127.0.0.1:1"], "network_transient"),
        (&["--exit", "42"], "unknown"),
        (&["--status", "429", "--header", "retry-after: 7"], "rate_limited"),
        (&["--status", "401"], "auth_error"),
        (&["--status", "503"], "network_transient"),
        (&["--errno", "ECONNRESET"], "network_transient"),
        (&["--errno", "CERT_HAS_EXPIRED"], "network_permanent"),
    ];
    for (args, want) in cases {
        let mut all = vec!["classify", "--json"];
        all.extend_from_slice(args);
        assert_eq!(Run::new(&all).go().code(0).json()["reason"], *want, "{args:?}");
    }
}

#[test]
fn an_answer_says_whose_credential_and_how_long_to_wait() {
    let args = ["classify", "--json", "--provider", "openai", "--status", "401"];
    let json = Run::new(&args)
        .stdin(r#"{"error":{"code":"invalid_api_key","message":"Incorrect API key provided"}}"#)
        .go()
        .code(0)
        .json();
    assert_eq!(json["facts"]["credential"], "OPENAI_API_KEY");
    assert!(
        json["suggested_action"].as_str().unwrap().starts_with("renew OPENAI_API_KEY at https://"),
        "{json}"
    );
    let args = ["classify", "--json", "--status", "429", "--header", "retry-after-ms: 1500"];
    assert_eq!(Run::new(&args).go().code(0).json()["facts"]["retry_after_seconds"], 1.5);
}

#[test]
fn exceptions_of_six_languages_are_read() {
    let cases = [
        (
            "Traceback (most recent call last):\n  File \"app.py\", line 9, in <module>\n    main()\n  File \"core.py\", line 2, in load\n    x\nKeyError: 'k'\n",
            "python",
            "KeyError",
            "core.py",
            2,
        ),
        (
            "TypeError: Cannot read properties of undefined (reading 'host')\n    at connect (/app/db.js:2:17)\n    at node:internal/x:1:1\n",
            "javascript",
            "TypeError",
            "/app/db.js",
            2,
        ),
        (
            "Exception in thread \"main\" java.lang.IllegalStateException: no config\n\tat java.base/java.util.Objects.x(Objects.java:1)\n\tat app.Main.load(Main.java:12)\n",
            "java",
            "java.lang.IllegalStateException",
            "Main.java",
            12,
        ),
        (
            "panic: boom\n\ngoroutine 1 [running]:\nmain.load(...)\n\t/app/main.go:12 +0x1d\n",
            "go",
            "panic",
            "/app/main.go",
            12,
        ),
        (
            "thread 'main' panicked at src/main.rs:4:10:\nno value\nnote: run with `RUST_BACKTRACE=1`\n",
            "rust",
            "panic",
            "src/main.rs",
            4,
        ),
        (
            "app.rb:3:in `load': no config (RuntimeError)\n\tfrom app.rb:7:in `<main>'\n",
            "ruby",
            "RuntimeError",
            "app.rb",
            3,
        ),
    ];
    for (text, language, kind, file, line) in cases {
        let json = Run::new(&["classify", "--exit", "1", "--json"]).stdin(text).go().code(0).json();
        let exception = &json["facts"]["exception"];
        assert_eq!(json["reason"], "crash", "{language}");
        assert_eq!((&exception["language"], &exception["type"]), (&language.into(), &kind.into()), "{json}");
        assert_eq!((&exception["file"], &exception["line"]), (&file.into(), &line.into()), "{json}");
    }
}

#[test]
fn the_root_of_a_chain_is_a_fact() {
    let text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nOSError: disk\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3, in main\n    f()\nRuntimeError: could not load\n";
    let json = Run::new(&["classify", "--exit", "1", "--json"]).stdin(text).go().code(0).json();
    assert_eq!(json["facts"]["exception"]["root"], "OSError: disk");
}

#[test]
fn a_pack_of_ones_own_counts() {
    let folder = Folder::new("classify-pack");
    let pack = folder.file("acme.toml", include_str!("../../../backstop-classify/tests/fuzz/pack/good.toml"));
    let done = Run::new(&["classify", "--exit", "1", "--json", "--rules"])
        .arg(pack)
        .stdin("ACME-42: ledger is down\n")
        .go()
        .code(0);
    assert_eq!(done.json()["reason"], "service_down");
    assert_eq!(done.json()["suggested_action"], "start ledger");
    assert_eq!(done.json()["evidence"][0]["rule"], "acme.deploy");
}

#[test]
fn a_secret_of_the_environment_is_not_shown() {
    let done = Run::new(&["classify", "--exit", "1"])
        .env("ACME_API_KEY", "zanzibar-canary-99")
        .stdin("Error: request with zanzibar-canary-99 was refused: invalid credentials\n")
        .go()
        .code(0);
    assert!(!done.stdout().contains("canary"), "{}", done.stdout());
    assert!(done.stdout().contains("[redacted]"));
}

#[test]
fn a_terminal_without_utf8_gets_ascii() {
    let done = Run::new(&["classify", "--exit", "1"]).env("LC_ALL", "C").stdin("").go().code(0);
    assert!(done.stdout().is_ascii(), "{}", done.stdout());
}

#[test]
fn what_was_expected_and_what_was_there_are_facts() {
    let cases = [
        (JEST, "{\"id\": 7}", "null"),
        ("E       assert 3.0 == 4\n=== 1 failed in 0.10s ===\n", "4", "3.0"),
        ("--- FAIL: TestSum (0.00s)\n    cart_test.go:7: Sum = 3, want 4\nFAIL\n", "4", "3"),
        (
            "src/a.ts(2,3): error TS2322: Type 'number' is not assignable to type 'string'.\n",
            "string",
            "number",
        ),
    ];
    for (text, expected, actual) in cases {
        let facts =
            Run::new(&["classify", "--exit", "1", "--json"]).stdin(text).go().code(0).json()["facts"].clone();
        assert_eq!((&facts["expected"], &facts["actual"]), (&expected.into(), &actual.into()), "{facts}");
    }
}
