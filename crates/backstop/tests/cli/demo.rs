use crate::harness::Run;

#[test]
fn the_demo_classifies_every_step() {
    let steps = Run::new(&["demo", "--json"]).go().code(0).lines();
    let reasons: Vec<&str> = steps.iter().map(|s| s["reason"].as_str().unwrap_or("success")).collect();
    let want = [
        "vcs_error",
        "dependency_missing",
        "file_conflict",
        "crash",
        "success",
        "test_failure",
        "network_transient",
        "resource_contention",
        "rate_limited",
        "quota_exhausted",
    ];
    assert_eq!(reasons, want);
}

#[test]
fn the_demo_reads_well() {
    let stdout = Run::new(&["demo"]).go().code(0).stdout();
    assert!(stdout.starts_with("Ten things that go wrong"), "{stdout}");
    assert_eq!(stdout.matches("\n$ ").count(), 10);
    assert_eq!(stdout.matches("\n  next: ").count(), 9);
}
