//! Whose processes are whose: what Backstop started is ended, on every surface and after its own
//! death; what it did not start is never touched.
#![cfg(target_os = "linux")]

use crate::harness::{Project, is_alive, until};
use crate::plan_text::{PlanText, events, interrupt_twice, is_pending, run, signal};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

const BIN: &str = env!("CARGO_BIN_EXE_backstop");

/// How many processes the script of [`project`] starts.
const ESCAPEES: usize = 5;

/// A repository with a script outside of its files, `$ESCAPE`, that starts processes which try to
/// get away and ends when they are there: a double fork into a session of its own with a cleared
/// environment, one that ignores SIGTERM, a stopped one, one that holds its output open, and one
/// that takes the name of a reaper.
fn project(name: &str) -> Project {
    let project = Project::git(name);
    let pids = pids_file(&project);
    let script = format!(
        "(env -i setsid sh -c 'echo $$ >> {pids}; exec sleep 701' > /dev/null 2>&1 < /dev/null &)\n\
         (setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; while :; do sleep 0.1; done' > /dev/null 2>&1 &)\n\
         (env -i sh -c 'echo $$ >> {pids}; kill -STOP $$; sleep 702' > /dev/null 2>&1 &)\n\
         (sh -c 'echo $$ >> {pids}; exec sleep 703' &)\n\
         (setsid sh -c 'trap \"\" TERM; printf backstop-reaper > /proc/$$/comm; echo $$ >> {pids}; \
         while :; do sleep 0.1; done' > /dev/null 2>&1 &)\n\
         until [ \"$(wc -l < {pids})\" -ge {ESCAPEES} ]; do sleep 0.02; done\n"
    );
    std::fs::write(project.beside("escape.sh"), script).unwrap();
    std::fs::write(&pids, "").unwrap();
    project
}

fn pids_file(project: &Project) -> String {
    project.beside("pids").display().to_string()
}

fn escape(project: &Project) -> String {
    format!("sh {}", project.beside("escape.sh").display())
}

fn pids(project: &Project) -> Vec<String> {
    let text = std::fs::read_to_string(pids_file(project)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Waits for all of them to be there.
fn escaped(project: &Project) {
    until("the processes are there", || pids(project).len() >= ESCAPEES);
}

#[track_caller]
fn nothing_is_left(project: &Project, how: &str) {
    let all = pids(project);
    assert!(all.len() >= ESCAPEES, "{how}: {all:?}");
    let left: Vec<&String> = all.iter().filter(|pid| is_alive(pid)).collect();
    for pid in &left {
        let _ = Command::new("kill").args(["-9", pid]).status();
    }
    assert!(left.is_empty(), "{how}: {} of {} are left", left.len(), all.len());
}

/// A bystander, which nobody may end.
fn bystander() -> Child {
    Command::new("sleep").arg("704").spawn().unwrap()
}

#[track_caller]
fn lives(mut bystander: Child) {
    assert!(bystander.try_wait().unwrap().is_none(), "a process of somebody else was ended");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// A hook of git that runs a line of shell.
fn hook(project: &Project, name: &str, line: &str) {
    let file = project.file(&format!(".git/hooks/{name}"), format!("#!/bin/sh\n{line}\n"));
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Where the escapees come from: the surface, and how it is started.
type Surface = (&'static str, fn(&Project, &str) -> Command);

/// Every surface that runs programs. Each is given a line of shell.
const SURFACES: [Surface; 6] = [
    ("exec", |project, line| project.exec(&["--attempts", "1"], line).command()),
    ("exec of a shell that has a job", |project, line| {
        project.file("line.sh", line);
        project.program(
            "bash",
            &["-c", &format!("sleep 705 > /dev/null 2>&1 & echo $! > job; exec {BIN} exec -- sh line.sh")],
        )
    }),
    ("a phase beside another one", |project, line| {
        let plan = PlanText::new().sh("1", "", &format!("echo 1 > one.txt; {line}"));
        let other =
            format!("until [ $(wc -l < {}) -ge {ESCAPEES} ]; do sleep 0.02; done", pids_file(project));
        plan.sh("2", "", &format!("{other}; echo 2 > two.txt")).beside("1").write(project);
        run(project, &["--commit", "auto", "--jobs", "2"]).command()
    }),
    ("a gate", |project, line| {
        project.file("backstop.toml", format!("[gates.escape]\ncheck = [\"sh\", \"-c\", \"{line}\"]\n"));
        project.run(&["trust"]).go().code(0);
        let settings = "command = 'echo 1 > one.txt'\ngates = ['escape']";
        let plan = PlanText::new().phase("1", "", settings).text().replace("gates = []\n", "");
        project.file("plan.md", plan);
        run(project, &["--commit", "auto", "--allow-dirty"]).command()
    }),
    ("a git hook", |project, line| {
        hook(project, "pre-commit", line);
        PlanText::new().sh("1", "", "echo 1 > one.txt").write(project);
        run(project, &["--commit", "auto"]).command()
    }),
    ("a notification program", |project, line| {
        let folder = project.beside("home/.config/backstop");
        std::fs::create_dir_all(&folder).unwrap();
        let sink = format!("[notify.mail]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"{line}\"]\n");
        std::fs::write(folder.join("config.toml"), sink).unwrap();
        project.run(&["notify", "test"]).command()
    }),
];

#[test]
fn nothing_that_was_started_is_left_on_any_surface() {
    for (at, (surface, start)) in SURFACES.iter().enumerate() {
        let project = project(&format!("processes-left-{at}"));
        let other = bystander();
        let output = start(&project, &escape(&project)).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{surface}: {words}");
        nothing_is_left(&project, surface);
        lives(other);
        if let Some(job) = Some(project.read("job")).filter(|job| !job.is_empty()) {
            assert!(is_alive(job.trim()), "{surface}: the shell's job was ended");
            Command::new("kill").arg(job.trim()).status().unwrap();
        }
    }
}

#[test]
fn nothing_is_left_after_backstop_was_killed_and_run_again() {
    for (at, (surface, start)) in SURFACES.iter().enumerate() {
        let project = project(&format!("processes-killed-{at}"));
        let other = bystander();
        let hangs = format!("{}; sleep 706", escape(&project));
        let mut command = start(&project, &hangs);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        escaped(&project);
        child.kill().unwrap();
        child.wait().unwrap();
        project.exec(&[], "exit 0").go().code(0);
        // What dies with Backstop has some time to end by itself.
        until(&format!("{surface}: nothing is left"), || pids(&project).iter().all(|pid| !is_alive(pid)));
        lives(other);
        if let Some(job) = Some(project.read("job")).filter(|job| !job.is_empty()) {
            assert!(is_alive(job.trim()), "{surface}: the shell's job was ended");
            Command::new("kill").arg(job.trim()).status().unwrap();
        }
    }
}

#[test]
fn a_killed_backstop_below_another_leaves_nothing() {
    let project = project("processes-nested");
    project.file("line.sh", format!("{}; sleep 712", escape(&project)));
    let pids = pids_file(&project);
    let script = format!(
        "{BIN} exec --attempts 1 -- sh line.sh & inner=$!; \
         until [ \"$(wc -l < {pids})\" -ge {ESCAPEES} ]; do sleep 0.02; done; \
         kill -9 $inner; wait $inner; {BIN} exec -- true; \
         for pid in $(cat {pids}); do case \"$(cat /proc/$pid/stat 2> /dev/null)\" in ''|*\") Z \"*) ;; \
         *) echo $pid >> left;; esac; done; true"
    );
    project.exec(&["--attempts", "1"], &script).go().code(0);
    assert_eq!(project.read("left"), "", "of {:?}", self::pids(&project));
}

#[test]
fn a_process_substitution_gets_all_of_the_output() {
    let project = Project::new("processes-substitution");
    for (how, want) in [
        ("seq 300000 > >(sleep 0.1; wc -l > count)", "300000"),
        ("sh -c 'seq 300000 >&2' 2> >(sleep 0.1; wc -l > count)", "300000"),
        ("seq 300000 > >(tee copy | wc -l > count)", "300000"),
    ] {
        project.file("count", "");
        let (line, redirection) = how.split_once(if how.contains("2> >") { " 2> " } else { " > " }).unwrap();
        let stream = if how.contains("2> >") { "2>" } else { ">" };
        let script = format!("exec {BIN} exec -q -- {line} {stream} {redirection}");
        assert!(project.program("bash", &["-c", &script]).status().unwrap().success(), "{how}");
        until(how, || project.read("count").trim() == want);
    }
}

#[test]
fn an_orphan_of_an_earlier_child_is_not_ended_though_it_is_adopted_later() {
    let project = Project::new("processes-late-orphan");
    let script = format!(
        "sh -c 'sleep 707 > /dev/null 2>&1 & echo $! > late; until [ -e go ]; do sleep 0.02; done' & echo $! > early; \
         until [ -s late ]; do sleep 0.02; done; \
         exec {BIN} exec -- sh -c 'touch go; until grep -q \"Z\" /proc/$(cat early)/stat; do sleep 0.02; done'"
    );
    let output = project.program("bash", &["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let late = project.read("late").trim().to_owned();
    assert!(is_alive(&late), "the orphan of an earlier child was ended");
    Command::new("kill").arg(late).status().unwrap();
}

#[test]
fn a_killed_reaper_is_the_end_of_its_command() {
    let project = project("processes-reaper");
    project.file("line.sh", format!("{}; echo $PPID > reaper; sleep 708", escape(&project)));
    let script =
        format!("sleep 709 > /dev/null 2>&1 & echo $! > job; exec {BIN} exec --attempts 1 -- sh line.sh");
    let child = project.program("bash", &["-c", &script]).stderr(Stdio::null()).spawn().unwrap();
    until("it runs", || !project.read("reaper").trim().is_empty());
    Command::new("kill").args(["-9", project.read("reaper").trim()]).status().unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(137));
    Command::new("kill").arg(project.read("job").trim()).status().unwrap();
    // Those without an environment are nobody's now.
    let left: Vec<String> = pids(&project).into_iter().filter(|pid| is_alive(pid)).collect();
    left.iter().for_each(|pid| drop(Command::new("kill").args(["-9", pid]).status()));
    assert!(left.len() <= 2, "{left:?}");
}

/// A plan whose commit hangs in a hook, at that point.
fn hanging_hook(name: &str, hook_name: &str) -> (Project, Child) {
    let project = project(name);
    hook(&project, hook_name, &format!("trap '' TERM INT\n{}\nsleep 710", escape(&project)));
    PlanText::new().sh("1", "", "echo 1 > one.txt").write(&project);
    let child = run(&project, &["--commit", "auto"]).command().stderr(Stdio::null()).spawn().unwrap();
    escaped(&project);
    (project, child)
}

#[test]
fn a_git_hook_that_hangs_is_ended_with_the_run_by_two_keys_or_one_term() {
    for (name, signals) in [("int", &["INT", "INT"][..]), ("term", &["TERM"][..])] {
        for hook_name in ["pre-commit", "post-merge"] {
            let (project, mut child) = hanging_hook(&format!("processes-hook-{name}-{hook_name}"), hook_name);
            for sent in signals {
                signal(&child, sent);
                // Two that come at once are one for the system.
                until("the signal is taken", || !is_pending(child.id()));
            }
            until("the run ends", || child.try_wait().unwrap().is_some());
            let code = child.wait().unwrap().code();
            if hook_name == "pre-commit" {
                assert_eq!(code, Some(130), "{name}");
            }
            nothing_is_left(&project, hook_name);
            // The work is not lost, and is committed once.
            std::fs::remove_file(project.path().join(".git/hooks").join(hook_name)).unwrap();
            run(&project, &["--commit", "auto"]).go().code(0);
            assert_eq!(project.sh("git log --format=%s"), "Phase 1: Step 1\nbase\n", "{name} {hook_name}");
            assert_eq!(events(&project, "run.ended").last().unwrap()["outcome"], "done");
        }
    }
}

#[test]
fn the_second_ctrl_c_ends_every_surface_whatever_ignores_it() {
    for (at, (surface, start)) in SURFACES.iter().enumerate() {
        let project = project(&format!("processes-twice-{at}"));
        project.settings("[exec]\ngrace = \"1h\"\n");
        let hangs = format!("trap '' INT TERM; {}; while :; do sleep 0.1; done", escape(&project));
        let mut command = start(&project, &hangs);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        escaped(&project);
        println!("{surface}: {:?} after the second", interrupt_twice(&mut child));
        assert_ne!(child.wait().unwrap().code(), Some(0), "{surface}");
        // What is ended by its reaper has some time.
        until(&format!("{surface}: nothing is left"), || pids(&project).iter().all(|pid| !is_alive(pid)));
        if let Some(job) = Some(project.read("job")).filter(|job| !job.is_empty()) {
            Command::new("kill").arg(job.trim()).status().unwrap();
        }
    }
}

#[test]
fn a_second_ctrl_c_ends_a_command_that_ignores_it_at_a_terminal() {
    let project = Project::new("processes-pty");
    let script = "import os, pty, signal, sys, time\n\
        signal.signal(signal.SIGINT, signal.SIG_DFL)\n\
        def run(line):\n\
        \x20   pid, fd = pty.fork()\n\
        \x20   if pid == 0: os.execv(sys.argv[1], sys.argv[1:] + ['--', 'sh', '-c', line])\n\
        \x20   seen = b''\n\
        \x20   while b'ready' not in seen: seen += os.read(fd, 1000)\n\
        \x20   return pid, fd\n\
        pid, fd = run(\"trap '' INT; echo ready; exec sleep 711\")\n\
        os.write(fd, b'\\x03')\n\
        time.sleep(0.3)\n\
        print(os.waitpid(pid, os.WNOHANG)[0])\n\
        os.write(fd, b'\\x03')\n\
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (130, -2))\n\
        # What it does about the key is its own affair.\n\
        pid, fd = run(\"trap 'n=x$n; echo caught $n' INT; echo ready; while [ \\\"$n\\\" != xxx ]; do sleep 0.05; done; exit 7\")\n\
        seen = b''\n\
        for n in (b'caught x', b'caught xx', b'caught xxx'):\n\
        \x20   os.write(fd, b'\\x03')\n\
        \x20   while n + b'\\r' not in seen:\n\
        \x20       try: seen += os.read(fd, 1000)\n\
        \x20       except OSError: break\n\
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    for flags in [&["exec", "--pty"][..], &["exec"], &["exec", "--no-pty"]] {
        let words = [&["-c", script, BIN][..], flags].concat();
        let output = project.program("python3", &words).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\nTrue\n7\n", "{flags:?}: {words}");
    }
}

#[test]
fn without_open_files_a_command_is_run_as_it_is_and_what_was_asked_for_is_refused() {
    let project = Project::new("processes-ulimit");
    for files in (5..=30).chain([40]) {
        let script = format!("ulimit -n {files}; exec {BIN} exec -- sh -c 'echo out; exit 3'");
        let output = project.program("bash", &["-c", &script]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"out\n"[..]), "{files}: {words}");
        let is_told = words.contains("it is run without Backstop");
        assert!(is_told || files > 20, "{files}: {words}");
        assert!(!is_told || files < 40, "{files}: {words}");
    }
    for files in 5..=14 {
        let script = format!("ulimit -n {files}; exec {BIN} exec --timeout 1m -- true");
        for backtrace in ["0", "1"] {
            let mut command = project.program("bash", &["-c", &script]);
            let output = command.env("RUST_BACKTRACE", backtrace).output().unwrap();
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 125)), "{files}: {:?} {words}", output.status);
            let is_told = words.contains("error: ") || words.contains("cannot") || output.status.success();
            assert!(is_told && !words.contains("panicked"), "{files}: {words}");
        }
    }
}

#[test]
fn without_memory_it_says_so_and_exits_125() {
    let project = Project::new("processes-memory");
    // From less than the program itself needs to what is enough. Where it was loaded at all it ends
    // in words; below that the loader, the kernel or Rust's own start ends it before any code of
    // ours runs.
    let mut codes = Vec::new();
    for kilobytes in (20_000..=60_000).step_by(500) {
        let script = format!("ulimit -v {kilobytes}; exec {BIN} exec -- true");
        let output = project.program("bash", &["-c", &script]).env_remove("RUST_BACKTRACE").output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        println!("{kilobytes} KB: {code:?} {}", words.lines().next().unwrap_or_default());
        let by_kernel =
            output.status.signal().is_some_and(|signal| signal == libc::SIGSEGV || signal == libc::SIGKILL);
        let by_loader = code == Some(127) && words.contains("shared");
        let by_start = output.status.signal() == Some(libc::SIGABRT)
            && words.contains("failed to allocate an alternative stack");
        let was_loaded = !by_kernel && !by_loader && !by_start;
        assert!(!was_loaded || matches!(code, Some(0 | 125)), "{kilobytes} KB: {:?} {words}", output.status);
        assert!(
            !was_loaded || code == Some(0) || words.contains("error: ") || words.contains("cannot"),
            "{kilobytes} KB: {words}"
        );
        assert!(by_start || !words.contains("panicked"), "{kilobytes} KB: {words}");
        assert!(!words.contains("invalid_usage"), "{kilobytes} KB: {words}");
        codes.push(code);
    }
    assert_eq!(codes.last(), Some(&Some(0)));
    assert!(codes.contains(&Some(125)), "no limit was between too little and enough: {codes:?}");
}

#[test]
fn state_that_is_removed_while_a_command_runs_is_one_warning() {
    let project = Project::new("processes-no-state");
    project.exec(&["--attempts", "1"], "exit 1").go().code(1);
    let script = format!("echo npm error code ECONNRESET; rm -rf {}; exit 1", project.state().display());
    let done = project.exec(&["--attempts", "1"], &script).go().code(1);
    assert_eq!(done.stderr().matches("was removed meanwhile").count(), 1, "{}", done.stderr());
}

#[test]
fn a_control_group_finds_what_lost_its_parent_its_reaper_and_its_environment() {
    let project = Project::new("processes-cgroup");
    std::fs::write(
        project.path().join("escape.sh"),
        "(env -i setsid sh -c 'echo $$ > pid; exec sleep 607' &)\nwhile [ ! -s pid ]; do sleep 0.01; done\n\
         ls -d /sys/fs/cgroup/backstop-* > group; exec sleep 608\n",
    )
    .unwrap();
    // A shell's own job makes Backstop use a reaper.
    let start = format!("sleep 606 & echo $! > job; exec {BIN} exec -- sh escape.sh");
    let script = format!(
        "mount -t cgroup2 none /sys/fs/cgroup || exit 90; bash -c '{start}' & owner=$!; \
         while [ ! -s group ]; do sleep 0.01; done; \
         for child in $(cat /proc/$owner/task/*/children); do \
           [ \"$(cat /proc/$child/comm)\" = backstop-reaper ] && kill -9 $child $owner; done; \
         wait $owner; kill -0 $(cat pid) && echo yes > left; {BIN} exec -- true 2> said; \
         case \"$(cat /proc/$(cat pid)/stat 2> /dev/null)\" in ''|*\") Z \"*) echo yes > gone;; esac; kill -0 $(cat job) && echo yes > spared; kill $(cat job); \
         bash -c 'sleep 606 & echo $! > job; exec {BIN} exec -- sh -c \"ls -d /sys/fs/cgroup/backstop-* > second\"'; \
         kill $(cat job); ls -d /sys/fs/cgroup/backstop-* > after 2>&1; true"
    );
    let run = || {
        let mut command = project.program("unshare", &[]);
        command.current_dir(project.path());
        command
    };
    crate::harness::in_a_room(&script, run);
    let read = |name: &str| project.read(name).trim().to_owned();
    assert!(read("group").contains("/backstop-"), "{}", read("group"));
    assert_eq!(read("left"), "yes", "it outlived Backstop and its reaper");
    assert_eq!(read("gone"), "yes", "it was left: {}", read("said"));
    assert_eq!(read("spared"), "yes", "the shell's own job was ended");
    assert!(read("second").contains("/backstop-"), "{}", read("second"));
    assert!(read("after").contains("No such file"), "groups are left: {}", read("after"));
}
