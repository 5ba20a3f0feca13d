//! Memory stays within its bound, whatever comes in.

use std::io::Write;
use std::process::{Command, Stdio};

/// The most memory that `classify` may use, in kilobytes.
const PEAK_KB_MAX: u64 = 64 * 1024;

/// Feeds `times` copies of `piece` and gives the answer and the peak memory of the child just
/// before the input ends.
#[cfg(target_os = "linux")]
fn peak(piece: &[u8], times: usize) -> (String, u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_backstop"))
        .args(["classify", "--exit", "1", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..times {
        stdin.write_all(piece).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    (String::from_utf8(output.stdout).unwrap(), kilobytes)
}

/// The peak memory of `hook on-error` with this report, in kilobytes.
#[cfg(target_os = "linux")]
fn hook_peak(report: &str) -> u64 {
    let project = crate::harness::Project::new("hook-memory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_backstop"))
        .args(["hook", "on-error"])
        .current_dir(project.path())
        .env("BACKSTOP_STATE_DIR", project.state())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(report.as_bytes()).unwrap();
    // Its own peak is known while it is there: looked at until it is gone.
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find(|l| l.starts_with("VmHWM:"));
        let kilobytes = line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
    }
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_of_eight_megabytes() {
    let report = |field: &str, value: &str| {
        format!(
            "{{\"task_data\":{{\"task_id\":\"t\"}},\"error\":{{\"type\":\"x\",\"message\":\"m\"}},\"context\":{{\"{field}\":{value}}}}}"
        )
    };
    let bytes = (8 << 20) - 400;
    for (name, value) in [
        ("numbers", format!("[{}1]", "1,".repeat(bytes / 2))),
        ("lists", format!("[{}1]", "[],".repeat(bytes / 3))),
        ("text", format!("\"{}\"", "password=x1234567 ".repeat(bytes / 18))),
        ("escapes", format!("\"{}\"", "\\n".repeat(bytes / 2))),
    ] {
        for field in ["partial_result", "other"] {
            let kilobytes = hook_peak(&report(field, &value));
            println!("{name} in {field}: {kilobytes} KB");
            assert!(kilobytes > 0 && kilobytes < PEAK_KB_MAX, "{name} in {field}: {kilobytes} KB");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_megabytes_on_one_line() {
    let (answer, kilobytes) = peak(&vec![b'x'; 1 << 20], 100);
    assert!(answer.contains("\"reason\":\"unknown\""), "{answer:.300}");
    assert!(kilobytes < PEAK_KB_MAX, "{kilobytes} KB");
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_megabytes_full_of_errors() {
    let block: String = (0..4000)
        .map(|n| {
            format!(
                "src/a{n}.c:{n}:1: error: expected ';' FAILED tests/t{n}.py::test_{n} Connection refused\n"
            )
        })
        .collect();
    let times = (100 << 20) / block.len();
    let (answer, kilobytes) = peak(block.as_bytes(), times);
    assert!(answer.contains("\"reason\":\""), "{answer:.300}");
    assert!(kilobytes < PEAK_KB_MAX, "{kilobytes} KB");
}

#[cfg(target_os = "linux")]
#[test]
fn fifty_megabytes_of_bytes() {
    let noise: Vec<u8> = (0u32..1 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (_, kilobytes) = peak(&noise, 50);
    assert!(kilobytes < PEAK_KB_MAX, "{kilobytes} KB");
}
