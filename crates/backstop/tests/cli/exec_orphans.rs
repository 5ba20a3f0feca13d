//! No process is left behind: not by a timeout, not by Ctrl-C, not by the death of Backstop itself.
#![cfg(target_os = "linux")]

use crate::harness::{Project, is_alive, until};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How much a pipe of Linux takes.
const PIPE_BYTES: u64 = 65_536;

/// A tree that tries to get away: a session of its own, a double fork, a cleared environment, one
/// that ignores TERM.
const TREE: &str = "setsid sleep 601 & echo $! >> pids; \
    (sh -c 'echo $$ >> pids; exec sleep 602' &); \
    env -i setsid sh -c 'echo $$ >> pids; exec sleep 603' & \
    setsid sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 0.1; done' & \
    sh -c 'echo $$ >> pids; kill -STOP $$; sleep 604' & \
    echo $$ >> pids; sleep 605";

fn pids(project: &Project) -> Vec<String> {
    project.read("pids").lines().map(str::to_owned).collect()
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_timeout_ends_the_whole_tree() {
    let project = Project::new("orphans-timeout");
    project.exec(&["--timeout", "1500ms", "--attempts", "1"], TREE).go().code(124);
    let pids = pids(&project);
    assert_eq!(pids.len(), 6);
    assert!(pids.iter().all(|pid| !is_alive(pid)), "{pids:?}");
}

#[test]
fn a_signal_ends_the_whole_tree_and_is_passed_on() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let project = Project::new(&format!("orphans{name}"));
        let child = project.exec(&[], TREE).command().spawn().unwrap();
        until("the tree is there", || pids(&project).len() == 6);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(pids(&project).iter().all(|pid| !is_alive(pid)));
        let runs = project.run(&["runs", "--json"]).go().code(0).json();
        assert_eq!(runs["runs"][0]["outcome"], "interrupted");
    }
}

#[test]
fn the_second_signal_does_not_wait() {
    let project = Project::new("orphans-twice");
    project.settings("[exec]\ngrace = \"1h\"\n");
    let script = "trap 'touch asked' INT; echo $$ >> pids; while :; do sleep 0.1; done";
    let child = project.exec(&[], script).command().spawn().unwrap();
    until("it runs", || pids(&project).len() == 1);
    signal(&child, "-INT");
    // The first one is polite for an hour.
    until("it is asked to end", || project.path().join("asked").exists());
    assert!(is_alive(&pids(&project)[0]));
    signal(&child, "-INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert!(!is_alive(&pids(&project)[0]));
}

#[test]
fn tests_that_send_signals_pass_as_a_background_job_that_ignores_them() {
    let tests = std::env::current_exe().unwrap();
    let script = "trap '' HUP INT QUIT TERM; exec \"$0\" --exact exec_orphans::the_second_signal_does_not_wait \
                  exec_orphans::a_signal_ends_the_whole_tree_and_is_passed_on";
    let output = Command::new("sh").args(["-c", script]).arg(tests).output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && words.contains("2 passed"), "{words}");
}

#[test]
fn a_signal_during_a_wait_ends_at_once() {
    let project = Project::new("orphans-wait");
    project.settings("[profile.command]\nbase = \"10m\"\ncap = \"10m\"\n");
    let script = "echo x >> tries; echo npm error code ECONNRESET; exit 1";
    let child = project.exec(&[], script).command().spawn().unwrap();
    until("it waits", || project.kinds().last().is_some_and(|k| k == "decision.made"));
    signal(&child, "-INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(project.read("tries").lines().count(), 1);
}

#[test]
fn what_a_killed_backstop_left_behind_is_ended_by_the_next_run() {
    let project = Project::new("orphans-killed");
    // All but the one that cleared its environment: with Backstop gone, nothing ties that one to
    // the run.
    let script = TREE.replace("env -i setsid", "setsid");
    let mut child = project.exec(&[], &script).command().spawn().unwrap();
    until("the tree is there", || pids(&project).len() == 6);
    let bystander = Command::new("sleep").arg("600").spawn();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(pids(&project).iter().any(|pid| is_alive(pid)));
    let doctor = project.run(&["doctor"]).go().code(0).stdout();
    assert!(doctor.contains("runs whose Backstop was killed"), "{doctor}");
    let next = project.exec(&[], "exit 0").go().code(0);
    assert!(next.stderr().contains("what it had left running is ended"), "{}", next.stderr());
    let pids = pids(&project);
    assert!(pids.iter().all(|pid| !is_alive(pid)), "{pids:?}");
    let mut bystander = bystander.unwrap();
    assert!(bystander.try_wait().unwrap().is_none(), "an innocent process was ended");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    let events = project.events();
    let lost = events.iter().find(|e| e["kind"] == "attempt.lost").unwrap();
    assert_eq!(lost["attempt"], 1);
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert_eq!(runs["runs"][1]["outcome"], "lost");
    // Once is enough.
    assert_eq!(project.exec(&[], "exit 0").go().code(0).stderr(), "");
}

#[test]
fn a_process_of_another_run_with_the_same_id_is_left_alone() {
    let project = Project::new("orphans-innocent");
    let mut child = project
        .exec(
            &[],
            "(env -i sh -c 'echo $$ > pid; exec sleep 600' &) ; sleep 600 & \
             while [ \"$(cat /proc/$!/comm)$(cat /proc/$(cat pid)/comm)\" != sleepsleep ]; do sleep 0.01; done 2>/dev/null; \
             echo $BACKSTOP_RUN_ID > id; wait",
        )
        .command()
        .spawn()
        .unwrap();
    until("it runs", || !project.read("id").is_empty());
    let id = project.read("id").trim().to_owned();
    let mut innocent = Command::new("sleep").arg("600").env("BACKSTOP_RUN_ID", &id).spawn().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let next = project.exec(&[], "exit 0").go().code(0);
    // Its own are found, the one without an environment by its process group.
    assert_eq!(next.stderr().matches("sleep").count(), 2, "{}", next.stderr());
    assert!(innocent.try_wait().unwrap().is_none(), "an innocent process was ended");
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[test]
fn a_signal_after_the_command_has_ended_is_heard() {
    let project = Project::new("orphans-deaf");
    assert!(Command::new("mkfifo").arg(project.path().join("pipe")).status().unwrap().success());
    // Its output is held back and nobody reads it: then it can only be stopped.
    let bin = env!("CARGO_BIN_EXE_backstop");
    let script = format!(
        "sleep 600 < pipe & reader=$!; {bin} exec --buffer -- seq 1000000 > pipe & echo $! > pid; wait $!; echo $? > code; kill $reader"
    );
    let mut shell = project.program("bash", &["-c", &script]).spawn().unwrap();
    // Nothing is written before the command is over, and then as much as the pipe takes.
    let look = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(project.path().join("pipe"))
        .unwrap();
    until("the command is over and the pipe is full", || {
        rustix::io::ioctl_fionread(&look).unwrap() >= PIPE_BYTES
    });
    Command::new("kill").args(["-TERM", project.read("pid").trim()]).status().unwrap();
    until("it ends", || shell.try_wait().unwrap().is_some());
    assert_eq!(project.read("code"), "143\n");
}

#[test]
fn a_pause_stops_the_command_and_the_clock() {
    let state = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    // A machine may be too busy to stop it within a second; then it is given more.
    for limit in [1, 5, 25].map(Duration::from_secs) {
        let project = Project::new("orphans-pause");
        let began = Instant::now();
        let child = project
            .exec(
                &["--timeout", &format!("{}s", limit.as_secs()), "--attempts", "1"],
                "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; echo finished",
            )
            .command()
            // A group of its own: where the tests have no parent in the session, theirs is
            // orphaned, and an orphaned group is never stopped.
            .process_group(0)
            .spawn()
            .unwrap();
        until("it runs", || !project.read("pid").is_empty());
        signal(&child, "-TSTP");
        let stands =
            || state(&project.read("pid")) == Some('T') && state(&child.id().to_string()) == Some('T');
        until("both stand still", || stands() || began.elapsed() > limit);
        if began.elapsed() > limit / 2 {
            signal(&child, "-CONT");
            signal(&child, "-KILL");
            child.wait_with_output().unwrap();
            continue;
        }
        // Longer than its limit: the clock stands still, too.
        until("its limit is over", || began.elapsed() > limit);
        assert_eq!(state(&project.read("pid")), Some('T'));
        project.file("go", "");
        signal(&child, "-CONT");
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"finished\n"[..]));
        return;
    }
    panic!("it was never stopped within half of its time");
}

#[test]
fn a_command_whose_tracer_never_waits_is_ended_and_its_code_is_that_of_the_signal() {
    let project = Project::new("orphans-traced");
    project.file(
        "tracer.py",
        "import ctypes, sys, time\nPTRACE_SEIZE = 0x4206\nlibc = ctypes.CDLL(None, use_errno=True)\n\
         print(libc.ptrace(PTRACE_SEIZE, int(sys.argv[1]), 0, 0), flush=True)\ntime.sleep(600)\n",
    );
    let child = project.exec(&[], "echo $$ > pid; exec sleep 600").command().spawn().unwrap();
    until("it runs", || project.read("pid").ends_with('\n'));
    let mut tracer = project.program("python3", &["tracer.py", project.read("pid").trim()]);
    let mut tracer = tracer.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut answer = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(tracer.stdout.take().unwrap()), &mut answer)
        .unwrap();
    if answer.trim() != "0" {
        println!("skipped, because nothing can be traced here");
    }
    signal(&child, "-TERM");
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_inside_a_killed_one_does_not_end_itself() {
    let project = Project::new("orphans-nested");
    let inner = format!(
        "echo $$ > outer; while [ ! -f go ]; do sleep 0.05; done; {} exec -- sh -c 'echo inner' > said 2>&1; echo over > over",
        env!("CARGO_BIN_EXE_backstop")
    );
    let mut child = project.exec(&[], &inner).command().spawn().unwrap();
    until("it runs", || !project.read("outer").is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    project.file("go", "");
    until("the inner one ends by itself", || !project.read("over").is_empty());
    assert!(project.read("said").contains("inner"), "{}", project.read("said"));
}

#[test]
fn a_chain_that_forks_faster_than_it_is_looked_for_is_ended() {
    let project = Project::new("orphans-chain");
    let token = format!("chain-{}", std::process::id());
    // Every link ignores TERM, forks and ends at once: no list of processes is ever true.
    project.file(
        "chain.py",
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nend = time.time() + 60\n\
         while time.time() < end:\n    if os.fork(): os._exit(0)\n    time.sleep(0.0005)\n",
    );
    let script = format!("python3 chain.py {token}; sleep 600");
    project.exec(&["--timeout", "800ms", "--attempts", "1"], &script).go().code(124);
    let alive = || {
        let pids = std::fs::read_dir("/proc").unwrap().flatten().map(|e| e.path());
        pids.filter(|p| {
            std::fs::read_to_string(p.join("cmdline"))
                .is_ok_and(|c| c.contains("chain.py") && c.contains(&token))
        })
        .count()
    };
    assert_eq!(alive(), 0);
}
