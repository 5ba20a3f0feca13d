use crate::harness::Run;

#[test]
fn the_demo_classifies_every_step() {
    let mut steps = Run::new(&["demo", "--json"]).go().code(0).lines();
    let recovered = steps.remove(0);
    assert_eq!((recovered["outcome"].as_str(), recovered["attempts"].as_u64()), (Some("done"), Some(2)));
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
    assert!(stdout.starts_with("A command that fails, and recovers."), "{stdout}");
    for part in [
        "attempt 1 failed: network_transient",
        "retrying in ",
        "done on attempt 2",
        "because js.network_code matched",
        "Ten things that go wrong",
    ] {
        assert!(stdout.contains(part), "{part} is missing in\n{stdout}");
    }
    assert_eq!(stdout.matches("\n$ ").count(), 12);
    assert_eq!(stdout.matches("\n  next: ").count(), 9);
}
