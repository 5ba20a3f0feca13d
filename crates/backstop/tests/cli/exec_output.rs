//! What goes through `exec`: everything, untouched, within bounded memory.

use crate::harness::Project;
use std::io::{Read, Write};

#[test]
fn bytes_come_through_as_they_are() {
    let project = Project::new("output-bytes");
    let done = project.exec(&[], "printf '\\377\\376\\000rate limit\\303\\r\\n'; exit 5").go().code(5);
    assert_eq!(done.bytes(), b"\xff\xfe\x00rate limit\xc3\r\n");
}

#[test]
fn piped_input_is_given_to_every_attempt() {
    let project = Project::new("output-stdin");
    let script = "cat; echo x >> tries; [ $(wc -l < tries) -gt 1 ] || { echo ECONNRESET >&2; echo 'npm error code ECONNRESET' >&2; exit 1; }";
    let done = project.exec(&[], script).stdin("one\ntwo\n").go().code(0);
    assert_eq!(done.stdout(), "one\ntwo\none\ntwo\n");
}

#[test]
fn a_file_as_input_is_read_again_from_where_it_stood() {
    let project = Project::new("output-stdin-file");
    let input = project.file("input", "one\ntwo\nthree\n");
    // The shell reads the first line, then hands the file over where it stands.
    let script = format!(
        "read first; exec {} exec -- sh -c 'cat; echo x >> tries; [ $(wc -l < tries) -gt 1 ] || {{ echo npm error code ECONNRESET; exit 1; }}'",
        env!("CARGO_BIN_EXE_backstop")
    );
    let output = project
        .program("bash", &["-c", &script])
        .stdin(std::fs::File::open(input).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches("two\nthree\n").count(), 2, "{text}");
}

#[test]
fn too_much_input_is_passed_on_and_then_there_is_no_retry() {
    let project = Project::new("output-stdin-max");
    project.settings("[exec]\nstdin_max = \"64KB\"\n");
    let input = "0123456789abcdef\n".repeat(60_000);
    let script = "wc -c; echo 'npm error code ECONNRESET' >&2; exit 1";
    let done = project.exec(&["--json"], script).stdin(&input).go().code(1);
    assert!(done.stderr().contains(&input.len().to_string()), "{}", done.stderr());
    let json = done.json();
    assert_eq!(json["attempts"], 1);
    assert!(json["decision"]["why"].as_str().unwrap().contains("standard input"), "{json}");
}

#[test]
fn streams_that_do_not_wait_lose_nothing() {
    let project = Project::new("output-nonblocking");
    // Both ends of the command's streams are made so that reading and writing do not wait.
    let script = "import os, subprocess, sys, time\n\
        r, w = os.pipe(); i, o = os.pipe()\n\
        os.set_blocking(w, False); os.set_blocking(i, False)\n\
        p = subprocess.Popen([sys.argv[1], 'exec', '--stdin', 'replay', '--', 'sh', '-c', 'cat; head -c 3000000 /dev/zero'], stdin=i, stdout=w)\n\
        os.close(w); os.close(i); time.sleep(0.3); os.write(o, b'hello'); os.close(o); time.sleep(0.3)\n\
        n = 0\n\
        while True:\n    b = os.read(r, 65536)\n    n += len(b)\n    if not b: break\n\
        print(n, p.wait())\n";
    let output =
        project.program("python3", &["-c", script, env!("CARGO_BIN_EXE_backstop")]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "3000005 0\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_slow_pipe_passes_the_cap() {
    let project = Project::new("output-slow-cap");
    let script = format!(
        "(head -c 8388608 /dev/zero; sleep 0.3; head -c 1000000 /dev/zero) | {} exec -- cat | wc -c",
        env!("CARGO_BIN_EXE_backstop")
    );
    let output = project.program("sh", &["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "9388608");
}

#[test]
fn a_terminal_of_its_own_has_a_keyboard() {
    let project = Project::new("output-keyboard");
    // At a real terminal: a line is typed and comes back twice, from the terminal and from `cat`;
    // then Ctrl-C, which a shell that is about to start something may miss, but not `cat`. Tests
    // that run in the background inherit an ignored SIGINT.
    let script = "import os, pty, signal, sys\n\
        signal.signal(signal.SIGINT, signal.SIG_DFL)\n\
        pid, fd = pty.fork()\n\
        if pid == 0: os.execv(sys.argv[1], [sys.argv[1], 'exec', '--pty', '--', 'sh', '-c', 'echo ready; exec cat'])\n\
        seen = b''\n\
        while b'ready' not in seen: seen += os.read(fd, 1000)\n\
        os.write(fd, b'hello\\r')\n\
        while seen.count(b'hello') < 2: seen += os.read(fd, 1000)\n\
        os.write(fd, b'\\x03')\n\
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    let output =
        project.program("python3", &["-c", script, env!("CARGO_BIN_EXE_backstop")]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "130\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let piped = project.exec(&["--pty"], "cat").stdin("from a pipe\n").go().code(0);
    assert!(piped.stdout().contains("from a pipe"), "{}", piped.stdout());
}

#[test]
fn input_that_is_never_read_holds_nothing_up() {
    let project = Project::new("output-unread");
    project.exec(&[], "exit 0").stdin("x".repeat(5_000_000)).go().code(0);
    let mut child = project.exec(&[], "echo done").command().spawn().unwrap();
    // Our end stays open: nobody will ever write to it or close it.
    let _stdin = child.stdin.take().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn buffered_output_is_shown_once() {
    let project = Project::new("output-buffer");
    let script = "echo attempt $BACKSTOP_ATTEMPT; [ $BACKSTOP_ATTEMPT -gt 1 ] || { echo npm error code ECONNRESET >&2; exit 1; }";
    let done = project.exec(&["--buffer"], script).go().code(0);
    assert_eq!(done.stdout(), "attempt 2\n");
    let all = project.exec(&[], script).go().code(0);
    assert_eq!(all.stdout(), "attempt 1\nattempt 2\n");
    let failed = project.exec(&["--buffer"], "echo one; echo two >&2; exit 3").go().code(3);
    assert_eq!(failed.stdout(), "one\n");
    assert!(failed.stderr().contains("two\n"), "{}", failed.stderr());
}

#[test]
fn a_terminal_of_its_own_where_it_is_asked_for() {
    let project = Project::new("output-pty");
    let script = "test -t 1 && echo a terminal || echo a pipe";
    assert_eq!(project.exec(&[], script).go().code(0).stdout(), "a pipe\n");
    assert_eq!(project.exec(&["--pty"], script).go().code(0).stdout(), "a terminal\r\n");
}

#[test]
fn a_reader_that_leaves_ends_the_writer() {
    let project = Project::new("output-head");
    let mut child = project.exec(&[], "yes").command().spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    assert!(!child.wait().unwrap().success());
}

#[test]
fn closed_streams_are_survived() {
    let project = Project::new("output-closed");
    let script = format!(
        "{} exec -- sh -c 'echo out; echo err >&2; exit 3' >&- 2>&- <&-",
        env!("CARGO_BIN_EXE_backstop")
    );
    let status = project.program("sh", &["-c", &script]).status().unwrap();
    // Without a place to write to, `sh` itself may say that it could not; what counts is that it
    // ends.
    assert!(status.code().is_some_and(|code| code != 0), "{status:?}");
}

/// Feeds much through and gives how much came out and the peak memory of Backstop, in kilobytes.
#[cfg(target_os = "linux")]
fn through(name: &str, script: &str, flags: &[&str]) -> (u64, u64) {
    let project = Project::new(name);
    let mut child = project.exec(flags, script).command().spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let stderr = child.stderr.take().unwrap();
    let drain = std::thread::spawn(move || std::io::copy(&mut { stderr }, &mut std::io::sink()));
    let (mut bytes, mut peak) = (0u64, 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = stdout.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        bytes += read as u64;
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        if let Some(line) = status.lines().find(|l| l.starts_with("VmHWM:")) {
            peak = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        }
    }
    child.wait().unwrap();
    drain.join().unwrap().unwrap();
    std::io::stdout().flush().unwrap();
    (bytes, peak)
}

#[cfg(target_os = "linux")]
#[test]
fn a_gigabyte_without_a_newline_in_bounded_memory() {
    let (bytes, peak) =
        through("output-gigabyte", "head -c 1073741824 /dev/zero; exit 1", &["--attempts", "1"]);
    println!("1 GiB without a newline: peak {peak} KB");
    assert_eq!(bytes, 1 << 30);
    assert!(peak < 64 * 1024, "{peak} KB");
}

#[cfg(target_os = "linux")]
#[test]
fn a_failing_log_of_many_lines_in_bounded_memory() {
    let script = "yes 'src/a.c:1:1: error: expected expression before token, Connection refused' | head -c 300000000; exit 1";
    let (bytes, peak) = through("output-lines", script, &["--attempts", "1"]);
    println!("300 MB of errors: peak {peak} KB");
    assert_eq!(bytes, 300_000_000);
    assert!(peak < 64 * 1024, "{peak} KB");
}
