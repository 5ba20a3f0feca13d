use crate::harness::Run;

#[test]
fn what_was_typed_wrong_is_told_with_the_nearest_right_one() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["clasify"], 2, "similar subcommand exists: 'classify'"),
        (&["classify", "--exti", "1"], 2, "'--exit'"),
        (&["classify", "--exit", "one"], 2, "invalid value 'one'"),
        (&["classify", "--signal", "SIGFOO"], 2, "`SIGFOO` is no signal"),
        (&["classify", "--header", "nonsense"], 2, "write it as `name: value`"),
        (&["classify", "--status", "99999"], 2, "99999"),
        (&["classify", "--exit", "0", "--signal", "9"], 2, "cannot be used with"),
        (&["classify", "--batch", "--exit", "1"], 2, "cannot be used with"),
        (&["classify", "/no/such/file.log"], 1, "cannot read /no/such/file.log"),
        (&["classify", "/"], 1, "cannot read /"),
        (&["explain", "rate_limted"], 2, "did you mean `rate_limited`?"),
        (&["explain", "\x1b[31mx"], 2, "\\e[31mx"),
        (&["rules", "show", "jest.sumary"], 2, "did you mean `jest.summary`?"),
        (&["rules", "list", "--pack", "nope"], 2, "packs are agents"),
        (&["rules", "list", "--reason", "nope"], 2, "`backstop reasons` lists them all"),
        (&["man", "/proc/nope"], 1, "cannot write /proc/nope"),
    ];
    for (args, code, message) in cases {
        let stderr = Run::new(args).go().code(*code).stderr();
        assert!(stderr.contains(message), "{args:?}: {stderr}");
        assert!(!stderr.contains('\x1b'), "{args:?}: {stderr:?}");
    }
}

#[test]
fn odd_texts_get_an_answer() {
    let long = "é".repeat(300_000);
    let cases: &[&[u8]] = &[
        b"",
        b"\n\n\n",
        b"\0\0\0",
        b"\xff\xfe\xfd",
        b"\x1b[",
        b"\x1b]0;never closed",
        b"\r\r\r\n",
        b"{\"a\":",
        long.as_bytes(),
        b"\xef\xbb\xbf",
    ];
    for text in cases {
        Run::new(&["classify", "--exit", "1", "--json"]).stdin(text).go().code(0).json();
        Run::new(&["classify", "--status", "400", "--json"]).stdin(text).go().code(0).json();
    }
}

#[test]
fn deep_json_is_survived() {
    let deep = format!("{}{}", "{\"a\":".repeat(20_000), "[".repeat(20_000));
    Run::new(&["classify", "--status", "500", "--json"]).stdin(&deep).go().code(0);
    Run::new(&["classify", "--batch"]).stdin(format!("{deep}\n")).go().code(1);
}

#[test]
fn nothing_typed_shows_three_things_to_try() {
    let stdout = Run::new(&[]).go().code(0).stdout();
    assert!(stdout.contains("Three things to try:"), "{stdout}");
}
