//! Real processes: what they leave behind, how they are ended, what comes through.
#![allow(missing_docs, clippy::unwrap_used)]

use backstop_exec::tree::Process;
use backstop_exec::{
    Cause, Ended, Input, Leftover, Limits, Replay, Spec, StartError, Stop, Streams, supervise,
};
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// One supervised script, told apart from the others of this test process by a variable.
struct Script {
    spec: Spec,
    input: Input,
    stop: Stop,
    mark: String,
}

impl Script {
    fn new(script: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let limits = Limits {
            grace: Duration::from_millis(300),
            drain: Duration::from_millis(300),
            ..Limits::default()
        };
        let spec = Spec {
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            env: vec![("BACKSTOP_TEST_MARK".into(), mark.clone().into())],
            limits,
            ..Spec::default()
        };
        Self { spec, input: Input::Null, stop: Stop::new(), mark }
    }

    fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.spec.limits);
        self
    }

    fn run(self) -> (Ended, String, String, Vec<u32>) {
        let (out, err) = (Sink::default(), Sink::default());
        let streams =
            Streams { stdout: Box::new(out.clone()), stderr: Box::new(err.clone()), input: self.input };
        let ended = supervise(&self.spec, streams, &self.stop, |_| {}).unwrap();
        let survivors = survivors(&self.mark);
        (ended, out.text(), err.text(), survivors)
    }
}

fn end(process: Option<Process>, mark: &str) -> Vec<String> {
    backstop_exec::end_leftover(&Leftover { process, mark: ("BACKSTOP_TEST_MARK", mark) })
}

/// Everything alive that was started with this mark.
fn survivors(mark: &str) -> Vec<u32> {
    let want = format!("BACKSTOP_TEST_MARK={mark}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|entry| entry == want.as_bytes())
        })
        .filter(|pid| Process::find(*pid).is_some_and(|p| p.is_alive()))
        .collect()
}

#[test]
fn both_streams_and_the_exit_code_come_through() {
    let (ended, out, err, _) = Script::new("echo out; echo err >&2; exit 3").run();
    assert_eq!((out.as_str(), err.as_str()), ("out\n", "err\n"));
    assert_eq!((ended.status.code, ended.exit(), ended.cause), (Some(3), 3, Cause::Itself));
    assert_eq!(ended.stdout.end(100), b"out\n");
}

#[test]
fn a_signal_is_passed_on_as_128_and_n() {
    let (ended, ..) = Script::new("kill -SEGV $$").run();
    assert_eq!(ended.exit(), 139);
    assert_eq!(ended.signal_name().as_deref(), Some("SIGSEGV"));
}

#[test]
fn setsid_grandchildren_and_double_forks_are_gone_after_a_timeout() {
    let script = "setsid sleep 600 & (sleep 600 &) ; (setsid sh -c 'sleep 600 & sleep 600' &) ; sleep 600";
    let (ended, _, _, survivors) =
        Script::new(script).limits(|l| l.wall = Some(Duration::from_millis(400))).run();
    assert_eq!((ended.cause, ended.exit()), (Cause::WallClock, 124));
    assert_eq!(survivors, [0u32; 0]);
}

#[test]
fn a_child_that_ignores_term_is_killed() {
    let script = "trap '' TERM; echo ready; while true; do sleep 0.05; done";
    let (ended, out, _, survivors) =
        Script::new(script).limits(|l| l.wall = Some(Duration::from_millis(400))).run();
    assert_eq!(out, "ready\n");
    assert_eq!((ended.exit(), ended.status.signal), (124, Some(9)));
    assert_eq!(survivors, [0u32; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn what_runs_nothing_else_is_our_own_child_and_its_neighbours_are_left_alone() {
    let mut neighbour = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let script = |line: &str| {
        let mut script = Script::new(line);
        script.spec.runs_nothing_else = true;
        script
    };
    let (ended, out, _, _) = script("echo $PPID; exit 4").run();
    assert_eq!((ended.status.code, out.trim()), (Some(4), std::process::id().to_string().as_str()));
    let hangs =
        script("trap '' TERM; while :; do :; done").limits(|l| l.wall = Some(Duration::from_millis(200)));
    let (ended, _, _, left) = hangs.run();
    assert!(ended.timed_out() && left.is_empty(), "{ended:?}");
    assert!(neighbour.try_wait().unwrap().is_none(), "a neighbour was ended");
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
}

#[test]
fn a_stopped_child_is_ended_too() {
    let (ended, _, _, survivors) = Script::new("sleep 600 & kill -STOP $!; kill -STOP $$")
        .limits(|l| l.wall = Some(Duration::from_millis(300)))
        .run();
    assert_eq!(ended.exit(), 124);
    assert_eq!(survivors, [0u32; 0]);
}

#[test]
fn silence_ends_it_and_talk_does_not() {
    let talk = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done";
    let (ended, ..) = Script::new(talk).limits(|l| l.idle = Some(Duration::from_secs(5))).run();
    assert!(ended.is_success());
    let silent = "echo last words; sleep 600";
    let (ended, _, _, survivors) =
        Script::new(silent).limits(|l| l.idle = Some(Duration::from_millis(300))).run();
    assert_eq!((ended.cause, ended.exit()), (Cause::Silence, 124));
    assert!(ended.silent >= Duration::from_millis(300));
    assert_eq!(survivors, [0u32; 0]);
    let classifier = backstop_classify::Classifier::builtin();
    let fault = ended.fault(&classifier, silent, backstop_core::Timestamp::default()).unwrap();
    assert_eq!(fault.reason, backstop_core::Reason::Timeout);
    assert_eq!(fault.facts.last_activity.unwrap().raw(), "last words");
}

#[test]
fn a_pipe_held_open_does_not_hold_us() {
    let (ended, out, _, survivors) = Script::new("sleep 600 & echo hi").run();
    assert_eq!(out, "hi\n");
    assert!(ended.is_success());
    assert_eq!(ended.left_behind, ["sleep"]);
    assert_eq!(survivors, [0u32; 0]);
}

#[test]
fn background_processes_may_be_kept_where_that_is_wanted() {
    let mut script = Script::new("sleep 600 >/dev/null 2>&1 & echo $!");
    script.spec.keep_background = true;
    let (ended, out, _, survivors) = script.run();
    assert!(ended.is_success() && ended.left_behind.is_empty());
    assert_eq!(survivors.len(), 1);
    let pid = out.trim().parse::<u32>().unwrap();
    end(Process::find(pid), "nobody");
}

#[test]
fn stop_is_polite_first_and_then_at_once() {
    let script =
        Script::new("trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done").limits(|l| {
            l.grace = Duration::from_secs(600);
        });
    let out = Sink::default();
    let (stop, seen) = (script.stop.clone(), out.clone());
    let asker = std::thread::spawn(move || {
        for word in ["ready", "asked"] {
            while !seen.text().contains(word) {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.request();
        }
    });
    let streams = Streams { stdout: Box::new(out), stderr: Box::new(Sink::default()), input: Input::Null };
    let ended = supervise(&script.spec, streams, &script.stop, |_| {}).unwrap();
    asker.join().unwrap();
    assert_eq!(ended.cause, Cause::Stopped);
    assert_eq!(survivors(&script.mark), [0u32; 0]);
    let classifier = backstop_classify::Classifier::builtin();
    let fault = ended.fault(&classifier, "x", backstop_core::Timestamp::default()).unwrap();
    assert_eq!(fault.reason, backstop_core::Reason::Interrupted);
}

#[test]
fn a_stop_before_the_start_is_not_forgotten() {
    let script = Script::new("sleep 600");
    script.stop.request();
    let (ended, ..) = script.run();
    assert_eq!(ended.cause, Cause::Stopped);
}

#[test]
fn piped_input_is_given_to_every_attempt() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"one\ntwo\n").unwrap();
    drop(writer);
    let source = std::fs::File::from(std::os::fd::OwnedFd::from(reader));
    let input = Input::Replay(Replay::new(source, 1 << 20));
    for _ in 0..2 {
        let mut script = Script::new("cat");
        script.input = input.clone();
        assert_eq!(script.run().1, "one\ntwo\n");
    }
    let mut ignores = Script::new("exit 0");
    ignores.input = input;
    assert!(ignores.run().0.is_success());
}

#[test]
fn a_terminal_of_its_own_is_one() {
    let mut script = Script::new("test -t 0 && test -t 1 && test -t 2 && echo a terminal");
    script.spec.pty = true;
    let (ended, out, err, _) = script.run();
    assert_eq!((out.as_str(), err.as_str()), ("a terminal\r\n", ""));
    assert!(ended.is_success());
}

#[test]
fn what_cannot_be_started_says_why() {
    let start = |argv: &[&str], folder: Option<&str>| {
        let spec = Spec {
            argv: argv.iter().map(Into::into).collect(),
            folder: folder.map(Into::into),
            ..Spec::default()
        };
        let streams = Streams {
            stdout: Box::new(Sink::default()),
            stderr: Box::new(Sink::default()),
            input: Input::Null,
        };
        supervise(&spec, streams, &Stop::new(), |_| {}).unwrap_err()
    };
    assert!(matches!(start(&["no-such-program-here"], None), StartError::NotFound { .. }));
    assert_eq!(start(&["/etc/passwd"], None).exit(), 126);
    assert_eq!(start(&["/"], None).exit(), 126);
    assert!(matches!(start(&["true"], Some("/no/such/folder")), StartError::Folder { .. }));
}

#[test]
fn nobody_reading_ends_the_writer() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let script = Script::new("yes");
    let streams = Streams { stdout: Box::new(Closed), stderr: Box::new(Sink::default()), input: Input::Null };
    let ended = supervise(&script.spec, streams, &Stop::new(), |_| {}).unwrap();
    // By the signal, or by what it makes of the error where the signal is ignored.
    assert!(!ended.is_success() && ended.cause == Cause::Itself, "{:?}", ended.status);
}

#[test]
fn a_reader_that_is_slow_is_not_the_commands_silence() {
    struct Slow(bool);
    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if !std::mem::replace(&mut self.0, true) {
                std::thread::sleep(Duration::from_millis(900));
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let script = Script::new("yes | head -c 1000000").limits(|l| l.idle = Some(Duration::from_millis(400)));
    let streams =
        Streams { stdout: Box::new(Slow(false)), stderr: Box::new(Sink::default()), input: Input::Null };
    let ended = supervise(&script.spec, streams, &Stop::new(), |_| {}).unwrap();
    assert!(ended.is_success(), "{:?}", ended.cause);
    assert_eq!(ended.stdout.bytes(), 1_000_000);
}

#[test]
fn leftovers_are_found_by_their_mark_and_never_by_pid_alone() {
    let mark = format!("left-{}", std::process::id());
    let mut child = std::process::Command::new("sh")
        .args(["-c", "setsid sleep 600 & sleep 600 & wait"])
        .env("BACKSTOP_TEST_MARK", &mark)
        .spawn()
        .unwrap();
    let process = Process::find(child.id()).unwrap();
    // Another process with the same pid is left alone.
    let other = Process { start: process.start + 1, ..process };
    assert!(end(Some(other), "nobody").is_empty());
    assert!(process.is_alive());
    let waiter = std::thread::spawn(move || child.wait());
    let ended = end(Some(process), &mark);
    waiter.join().unwrap().unwrap();
    assert!(ended.contains(&"sh".to_owned()), "{ended:?}");
    assert_eq!(survivors(&mark), [0u32; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_leftover_that_takes_the_name_of_a_reaper_is_ended() {
    let mark = format!("named-{}", std::process::id());
    let mut child = std::process::Command::new("sh")
        .args(["-c", "trap '' TERM; printf backstop-reaper > /proc/$$/comm; while :; do sleep 0.1; done"])
        .env("BACKSTOP_TEST_MARK", &mark)
        .spawn()
        .unwrap();
    let process = Process::find(child.id()).unwrap();
    let has_name = || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
        name.trim() == "backstop-reaper"
    };
    while !has_name() {
        std::thread::yield_now();
    }
    let waiter = std::thread::spawn(move || child.wait());
    end(Some(process), &mark);
    waiter.join().unwrap().unwrap();
    assert_eq!(survivors(&mark), [0u32; 0]);
}
