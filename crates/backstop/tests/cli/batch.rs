use crate::harness::Run;

#[test]
fn each_line_gets_an_answer_with_its_id() {
    let input = concat!(
        r#"{"id":"a","command":"pytest","exit_code":1,"stdout":"=== 3 failed, 5 passed in 0.28s ===\n","stderr":""}"#,
        "\n",
        r#"{"id":2,"provider":"openai","status":429,"body":{"error":{"code":"insufficient_quota"}},"message":null,"headers":{},"errno":null}"#,
        "\n",
        r#"{"id":"c","command":"true","exit_code":0,"stdout":"error","stderr":"error"}"#,
        "\n",
        r#"{"id":"d","exit_code":1,"stdout_b64":"//5FAHIAcgBvAHIAOgAgAEUATgBPAFMAUABDAAoA"}"#,
        "\n",
    );
    let done = Run::new(&["classify", "--batch"]).stdin(input).go().code(0);
    let answers: Vec<_> =
        done.lines().iter().map(|a| (a["id"].clone(), a["reason"].clone(), a["retryable"].clone())).collect();
    let want = serde_json::json!([
        ["a", "test_failure", false],
        [2, "quota_exhausted", false],
        ["c", null, false],
        ["d", "disk_full", false],
    ]);
    assert_eq!(serde_json::to_value(answers).unwrap(), want);
    for key in
        ["id", "reason", "class", "severity", "retry", "retryable", "suggested_action", "facts", "evidence"]
    {
        assert!(done.lines().iter().all(|a| a.get(key).is_some()), "{key}");
    }
}

#[test]
fn a_line_that_is_not_json_is_answered_and_the_rest_goes_on() {
    let input = "{\"id\":1,\"exit\":1}\nnot json\n\n{\"id\":3,\"foo\":\"x\"}\n{\"id\":3,\"exit\":[]}\n{\"id\":4,\"exit_code\":127}\n";
    let done = Run::new(&["classify", "--batch"]).stdin(input).go().code(1);
    let answers = done.lines();
    assert_eq!(answers.len(), 5);
    assert_eq!(answers[1]["line"], 2);
    assert_eq!(answers[1]["error"], "a line is one JSON object");
    assert_eq!(answers[2]["line"], 4);
    assert!(answers[2]["error"].as_str().unwrap().starts_with("no known field"), "{}", answers[2]);
    assert!(answers[3]["error"].as_str().unwrap().contains("at column"), "{}", answers[3]);
    assert_eq!(answers[4]["reason"], "dependency_missing");
    assert!(done.stderr().contains("3 of the batch's lines could not be read"), "{}", done.stderr());
}

#[test]
fn an_empty_batch_is_fine() {
    assert_eq!(Run::new(&["classify", "--batch"]).go().code(0).stdout(), "");
}

#[test]
fn a_line_that_is_too_long_is_refused_alone() {
    let mut input = vec![b'x'; 9 << 20];
    input.extend_from_slice(b"\n{\"id\":2,\"exit_code\":127}\n");
    let done = Run::new(&["classify", "--batch"]).stdin(input).go().code(1);
    let answers = done.lines();
    assert!(answers[0]["error"].as_str().unwrap().contains("more than"), "{}", answers[0]);
    assert_eq!(answers[1]["reason"], "dependency_missing");
}
