//! Memory stays within its bound, whatever comes in.

use std::io::Write;
use std::process::{Command, Stdio};

/// The most memory that `classify` may use, in kilobytes.
const PEAK_KB_MAX: u64 = 64 * 1024;

/// Feeds `times` copies of `piece` and gives the answer and the peak memory of the child just before the input ends.
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
