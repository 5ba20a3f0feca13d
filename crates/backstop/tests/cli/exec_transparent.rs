//! A wrapper that is not noticed: the same commands, bare and under `backstop exec`, compared by
//! the bytes that come out, their order, what is left on standard input and the exit code.
#![cfg(target_os = "linux")]

use crate::harness::{Project, is_alive, until};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

const BIN: &str = env!("CARGO_BIN_EXE_backstop");

/// Lines for bash. `@` is where `backstop exec -q --` stands, or nothing. All that a row shows is
/// compared: what the line prints on both streams, and its exit code. `NEEDS program:` before a
/// line skips it where the program is not installed.
const ROWS: &[&str] = &[
    // Scripts on standard input, and loops that read it.
    r"printf 'echo A\n@ true\necho B\n' | bash",
    "bash -s <<'END'\necho A\n@ true\necho B\nEND",
    r#"printf '1\n2\n3\n' | while read n; do @ echo "n=$n"; done"#,
    r#"printf '1\n2\n3\n4\n' | while read n; do @ sh -c 'read m; echo "$m"'; done"#,
    r#"while read n; do @ sh -c 'echo'; echo "$n"; done < lines"#,
    r#"while read n; do @ sh -c 'read m; echo "$m"'; done < lines"#,
    r#"find . -name 'f*' | sort | while read f; do @ wc -c "$f"; done"#,
    // Readers, and what they leave.
    r"printf 'abc\n' | @ cat",
    r"printf 'x\ny\n' | { @ true; cat; }",
    r"printf 'x\ny\n' | { @ false; cat; }",
    r#"printf 'x\ny\n' | { @ sh -c 'read a; echo "$a"'; cat; }"#,
    r"printf 'abcdef' | { @ dd bs=1 count=3 2>/dev/null; cat; }",
    r"printf 'a\n' | { @ cat; @ cat; echo end; }",
    "{ @ sh -c 'read a; echo first $a'; cat; } < lines",
    "@ cat < lines",
    "@ sort -r < lines",
    "@ wc -c < big",
    "@ cat < /dev/null",
    "@ cat <&- 2>/dev/null",
    "@ cat <<< here",
    "seq 100000 | @ tail -n 1",
    "echo 'echo from stdin' | @ sh",
    r"printf '1 2 3\n' | @ xargs -n1 echo",
    "NEEDS python3: echo 'print(6 * 7)' | @ python3 -",
    "head -c 3000000 /dev/zero | @ cat | md5sum",
    "mkfifo ff; (echo through > ff &); @ cat < ff",
    "(sleep 0.2; echo late) | @ cat",
    // A script that names no interpreter.
    r"printf 'echo hi $1\n' > ns; chmod 755 ns; @ ./ns there; PATH=.:$PATH; @ ns again",
    // Signals that are ignored, that mean something to the command alone, and that nobody could
    // continue.
    "NEEDS python3: python3 -c 'import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
     os.execvp(sys.argv[1], sys.argv[1:])' @ sh -c 'exit 5'; echo $?",
    "@ sh -c 'trap \"echo caught; exit 3\" USR1; touch up; while :; do sleep 0.02; done' & \
     until [ -e up ]; do sleep 0.02; done; kill -USR1 $!; wait $!; echo $?",
    "@ sh -c 'touch up; exec sleep 600' & until [ -e up ]; do sleep 0.02; done; \
     kill -ALRM $!; wait $! 2>/dev/null; echo $?",
    "setsid @ sh -c 'touch up; sleep 0.3; echo finished' & until [ -e up ]; do sleep 0.02; done; \
     kill -TSTP $!; wait $!; echo $?",
    // Output: both streams to one place, to two, to none.
    "@ sh -c 'echo a; echo b >&2; echo c; echo d >&2' > f 2>&1; cat f",
    "@ sh -c 'echo a; echo b; echo c >&2; echo d' 2>&1 | cat",
    "@ sh -c 'echo a; echo b >&2; echo c' >> f 2>> f; cat f",
    "@ sh -c 'echo aaaa; sleep 0.3; echo b >&2' > f 2> f; cat f",
    "@ sh -c 'echo a; echo b >&2' > o 2> e; cat o e",
    "@ sh -c 'echo a; echo b >&2' 2> /dev/null",
    "@ sh -c 'echo a; echo b >&2' > /dev/null",
    "@ sh -c 'echo a' >&- 2> /dev/null",
    "@ sh -c 'echo a; echo b >&2; echo c' 2>&-",
    "@ sh -c 'echo a' <&- >&- 2>&-",
    "@ sh -c 'i=0; while [ $i -lt 10000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done' 2>&1 | md5sum",
    "@ sh -c 'i=0; while [ $i -lt 10000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done' > o 2> e; md5sum o e",
    r"@ printf '\377\000\001\r\n\033[1mbold'",
    "@ printf 'no newline at the end'",
    "@ seq 200000 | tail -n 1",
    "@ sh -c 'test -t 0; echo $?; test -t 1; echo $?; test -t 2; echo $?' < /dev/null",
    "exec 9> nine; @ sh -c 'echo nine >&9'; cat nine",
    "@ sh -c 'ls /proc/$$/fd' | wc -l",
    // Readers of the output that leave.
    "@ yes | head -n 1; echo ${PIPESTATUS[0]}",
    "@ seq 1000000 | head -n 3; echo ${PIPESTATUS[0]}",
    "@ sh -c 'yes; echo over >&2' 2>&1 | head -n 1; echo ${PIPESTATUS[0]}",
    "(trap '' PIPE; @ sh -c 'yes 2>/dev/null; echo $? >&2') | head -n 1",
    // Exit codes.
    "@ true",
    "@ false",
    "@ sh -c 'exit 2'",
    "@ sh -c 'exit 42'",
    "@ sh -c 'exit 124'",
    "@ sh -c 'exit 125'",
    "@ sh -c 'exit 255'",
    "@ ./lines 2> /dev/null",
    "@ ./no-such-program 2> /dev/null",
    "exec 2> /dev/null; @ sh -c 'kill -HUP $$'; echo $?",
    "exec 2> /dev/null; @ sh -c 'kill -INT $$'; echo $?",
    "exec 2> /dev/null; @ sh -c 'kill -KILL $$'; echo $?",
    "exec 2> /dev/null; @ sh -c 'kill -SEGV $$'; echo $?",
    "exec 2> /dev/null; @ sh -c 'kill -TERM $$'; echo $?",
    "exec 2> /dev/null; @ sh -c 'kill -USR1 $$'; echo $?",
    "@ grep -c nothing-like-this lines",
    "@ diff lines f1",
    "@ test -f nope",
    "@ [ 1 = 2 ]",
    "@ sh -c '[ 1 = 2 ]'",
    // Signals that are passed on, and those that are ignored.
    "@ sh -c 'trap \"echo asked; exit 7\" TERM; echo ready; while :; do :; done' > o & \
     while ! grep -q ready o 2>/dev/null; do sleep 0.02; done; kill -TERM $!; wait $!; echo $?; cat o",
    "@ sh -c 'trap \"echo asked; exit 8\" HUP; echo ready; while :; do :; done' > o & \
     while ! grep -q ready o 2>/dev/null; do sleep 0.02; done; kill -HUP $!; wait $!; echo $?; cat o",
    "trap '' HUP; @ sh -c 'kill -HUP $$; echo alive'; echo over",
    "NEEDS python3: @ python3 -uc 'import os, signal, time\nwritten = os.open(\"o\", os.O_CREAT | os.O_WRONLY)\n\
     signal.signal(signal.SIGTERM, lambda *_: os.write(written, b\"asked \"))\nos.write(written, b\"ready \")\n\
     end = time.time() + 0.3\nwhile time.time() < end: time.sleep(0.01)' & \
     while ! grep -q ready o 2>/dev/null; do sleep 0.02; done; kill -TERM $!; wait $!; echo $?; cat o",
    // Everything else that a command sees.
    "FOO='a b' @ sh -c 'echo \"$FOO\"'",
    "cd /; @ pwd",
    "mkdir gone; cd gone; rmdir ../gone; @ sh -c 'echo here' 2> /dev/null; echo $?",
    "@ printf '%s|' 'a b' '' '*' \"it's\" '$HOME'",
    "umask 027; @ sh -c umask",
    "ulimit -n 200; @ sh -c 'ulimit -n'",
    "x=$(@ echo captured); echo \"[$x]\"",
    "@ echo hi | @ tr a-z A-Z",
    "@ @ echo nested",
    "@ sleep 0.05 & wait $!; echo $?",
    "@ bash -c 'echo $0 $1' zero one",
    "@ env -i sh -c 'env | grep -c BACKSTOP || true'",
];

/// What a person does at the terminal.
enum Does {
    /// Waits until this is shown.
    Sees(&'static str),
    /// Types this.
    Types(&'static str),
    /// Makes the window this many columns wide.
    Widens(u16),
}
use Does::{Sees, Types, Widens};

/// Lines for bash on a real terminal, and what is done there.
const TERMINAL_ROWS: &[(&str, &[Does])] = &[
    ("@ sh -c 'test -t 0 && test -t 1 && test -t 2 && echo three terminals'", &[]),
    ("@ ls --color=auto", &[]),
    ("@ grep --color=auto two lines", &[]),
    ("@ ls --color=auto | cat", &[]),
    ("@ sh -c 'test -t 1 || echo a pipe' | cat", &[]),
    ("@ sh -c 'test -t 2 && echo a terminal >&2; test -t 1 || echo no' > o; cat o", &[]),
    ("@ sh -c 'test -t 1 && echo a terminal; test -t 2 || echo a file >&2' 2> e; cat e", &[]),
    ("@ sh -c 'echo a; echo b >&2; echo c; echo d >&2'", &[]),
    ("@ sh -c 'i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done'", &[]),
    (r"@ printf '10%%\r20%%\r\r\n100%%\r\ndone'", &[]),
    ("@ seq 5000", &[]),
    ("@ stty size; @ sh -c 'stty size <&1'", &[]),
    ("NEEDS tput: @ tput cols", &[]),
    ("[ \"$(@ tty)\" = \"$(tty)\" ] && echo the same terminal", &[]),
    ("@ stty -a", &[]),
    ("@ sh -c 'stty -a <&1' | sed 's/.extproc//' | head -n 3", &[]),
    ("@ sh -c 'echo to the terminal > /dev/tty'", &[]),
    ("@ sh -c 'echo ready; read x; echo \"got $x\"'", &[Sees("ready"), Types("hello\n")]),
    ("@ sh -c 'echo ready; cat'", &[Sees("ready"), Types("one\n"), Sees("one\r\none"), Types("\x04")]),
    (
        "@ sh -c 'echo ready; read x < /dev/tty; echo \"got $x\"' < /dev/null",
        &[Sees("ready"), Types("key\n")],
    ),
    (
        "@ sh -c 'printf \"name? \"; read x; echo \"$x\"'; read y; echo \"rest $y\"",
        &[Sees("name?"), Types("one\n"), Sees("one\r\none"), Types("two\n")],
    ),
    (
        "a=$(stty -g); @ sh -c 'stty raw -echo; echo ready; c=$(dd bs=1 count=1 2>/dev/null); stty sane; echo key=$c'; \
         stty \"$a\"; echo over",
        &[Sees("ready"), Types("x")],
    ),
    (
        // As programs made with curses do: the modes are set on the output.
        "a=$(stty -g); @ sh -c 'b=$(stty -g <&2); stty raw -echo <&2; echo ready; \
         c=$(dd bs=1 count=1 2>/dev/null); stty \"$b\" <&2; echo key=$c'; sleep 0.1; \
         [ \"$a\" = \"$(stty -g)\" ] && echo as before",
        &[Sees("ready"), Types("x")],
    ),
    (
        "NEEDS python3: @ python3 -c 'import curses\ndef f(s):\n  s.addstr(\"press\"); s.refresh(); return s.getch()\n\
         print(\"key\", curses.wrapper(f))'; stty -a | grep -o 'icanon.*iexten echo'",
        &[Sees("press"), Types("x")],
    ),
    (
        "NEEDS python3: PYTHON_BASIC_REPL=1 @ python3 -q -i -c 0",
        &[Sees(">>> "), Types("6*7\n"), Sees("42\r\n"), Types("exit()\n")],
    ),
    (
        "NEEDS python3: PYTHON_BASIC_REPL=1 @ python3 -q -i -c 0",
        &[Sees(">>> "), Types("\x03"), Sees("KeyboardInterrupt\r\n"), Types("\x04")],
    ),
    ("NEEDS less: @ less -X lines", &[Sees("(END)"), Types("q")]),
    ("NEEDS less: seq 500 | @ less -X", &[Sees(":"), Types("G"), Sees("500"), Types("q")]),
    (
        "NEEDS less: NEEDS git: git init -q g; cd g; git commit -q --allow-empty -m 'the subject'; \
      @ git -c pager.log='less -+F -X' -c color.ui=auto log --format=%s",
        &[Sees("(END)"), Types("q")],
    ),
    ("@ sh -c 'echo ready; sleep 60'; echo not reached", &[Sees("ready"), Types("\x03")]),
    ("@ sh -c 'echo ready; exec sleep 60'", &[Sees("ready"), Types("\x1c")]),
    ("for i in 1 2 3; do @ sh -c 'echo ready; sleep 60'; done", &[Sees("ready"), Types("\x03")]),
    (
        "@ sh -c 'trap \"echo caught; exit 3\" INT; echo ready; while :; do sleep 0.02; done'; echo $?",
        &[Sees("ready"), Types("\x03")],
    ),
    (
        "@ sh -c 'trap \"echo caught\" INT; echo ready; read x; read x; echo \"got $x\"'; echo $?",
        &[Sees("ready"), Types("\x03"), Sees("caught"), Types("a\nb\n")],
    ),
    (
        "set -m; @ sh -c 'echo ready; while [ ! -e go ]; do :; done; echo over'; echo $?; touch go; \
      fg > /dev/null; echo $?",
        &[Sees("ready"), Types("\x1a")],
    ),
    ("set -m; @ sh -c 'kill -TSTP $$; echo resumed'; echo $?; fg > /dev/null; echo $?", &[]),
    (
        "set -m; @ sh -c 'echo ready; while [ ! -e go ]; do :; done; echo over'; echo $?; bg > /dev/null; \
      touch go; wait; echo $?",
        &[Sees("ready"), Types("\x1a")],
    ),
    (
        // Stopped, continued in the background, fetched to the front (its group is then the
        // terminal's), stopped again.
        "set -m; @ sh -c 'echo ready; until [ -e go ]; do sleep 0.02; done; \
      until read -r _ _ _ _ own _ _ front _ < /proc/$$/stat; [ $own = $front ]; do sleep 0.02; done; echo more; \
      until [ -e end ]; do sleep 0.02; done; echo over'; echo $?; bg > /dev/null; touch go; fg > /dev/null; \
      echo $?; touch end; fg > /dev/null; echo $?",
        &[Sees("ready"), Types("\x1a"), Sees("more"), Types("\x1a")],
    ),
    (
        "set -m; @ cat > /dev/null & wait $!; echo $?; kill %1; kill -CONT %1; wait %1 > /dev/null 2>&1; exit 0",
        &[],
    ),
    (
        // The signal of the real terminal may come before the size, and a bash whose trap runs
        // does not hear the one that follows.
        "@ bash -c 'exec 3<&1; trap seen=1 WINCH; echo ready; while :; do sleep 0.02; \
         case $seen$(stty size <&3) in 1*132) exit 7;; esac; done'; echo $?",
        &[Sees("ready"), Widens(132)],
    ),
    ("NEEDS more: seq 500 > long; @ more long", &[Sees("--More--"), Types(" "), Sees("\n45"), Types("q")]),
    ("NEEDS more: seq 500 | @ more; echo $?", &[Sees("--More--"), Types("q")]),
    (
        // Job control of a shell that somebody types at.
        "NEEDS bash: PS1='> ' @ bash --norc --noprofile --noediting -i; echo $?",
        &[
            Sees("> "),
            Types("sh -c 'kill -STOP $$; echo ov\"\"er'\n"),
            Sees("Stopped"),
            Types("fg\n"),
            Sees("over\r\n"),
            Types("exit 3\n"),
        ],
    ),
    ("@ sh -c 'echo in the background' & wait; echo over", &[]),
    ("@ @ sh -c 'test -t 1 && echo nested terminals'", &[]),
    ("@ sh -c 'exit 5'; echo $?", &[]),
    ("@ grep nothing-like-this lines; echo $?", &[]),
];

fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// The line without its needs, unless one of them is not met.
fn needed(row: &'static str) -> Option<&'static str> {
    let mut line = row;
    while let Some((program, rest)) = line.strip_prefix("NEEDS ").and_then(|rest| rest.split_once(": ")) {
        if !is_installed(program) {
            println!("skipped, because {program} is not installed: {rest}");
            return None;
        }
        line = rest;
    }
    Some(line)
}

/// What stands before a command to wrap it.
fn prefix() -> String {
    format!("{BIN} exec -q -- ")
}

/// A project for one run of a row, and bash with the line in it.
fn prepared(line: &str, wrapped: bool) -> (Project, Command) {
    let project = Project::new("transparent");
    // A busy machine needs time for what a command does when it is asked to end.
    project.settings("[profile.command]\nbase = \"20ms\"\n[exec]\ngrace = \"20s\"\n");
    project.file("lines", "one\ntwo\nthree\n");
    project.file("f1", "first\n");
    project.file("f2", "second file\n");
    project.file("big", "0123456789abcdef\n".repeat(50_000));
    let line = line.replace("@ ", &if wrapped { prefix() } else { String::new() });
    let mut command = project.program("bash", &["-c", &line]);
    command
        .env_remove("CI")
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm")
        .env("HOME", project.beside("home"));
    command.env_remove("LS_COLORS").env_remove("GREP_COLORS").env_remove("LESS").env_remove("PAGER");
    (project, command)
}

fn shown(status: std::process::ExitStatus) -> String {
    format!("code {:?}, signal {:?}", status.code(), status.signal())
}

fn run(line: &str, wrapped: bool) -> (String, String, String) {
    let (_project, mut command) = prepared(line, wrapped);
    shown_output(&command.stdin(Stdio::null()).output().unwrap())
}

fn shown_output(output: &Output) -> (String, String, String) {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string().replace("\\n", "\n");
    (text(&output.stdout), text(&output.stderr), shown(output.status))
}

#[test]
fn what_goes_in_and_comes_out_is_what_it_is_without_us() {
    let lines: Vec<&str> = ROWS.iter().filter_map(|row| needed(row)).collect();
    let mut differ = Vec::new();
    for line in &lines {
        let (bare, wrapped) = (run(line, false), run(line, true));
        if bare != wrapped {
            differ.push(format!("{line}\n   bare: {bare:?}\nwrapped: {wrapped:?}"));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), lines.len(), differ.join("\n\n"));
    println!("{} lines are the same", lines.len());
}

#[test]
fn in_a_container_signals_do_what_they_do_without_us() {
    // There the leaders of our session and our process group may be outside: their numbers are 0.
    let container = ["unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc"];
    let enter = |line: &str, wrapped| {
        let (_project, bare) = prepared(line, wrapped);
        let mut command = crate::harness::with_default_signals(Command::new(container[0]));
        command.args(&container[1..]).arg(bare.get_program()).args(bare.get_args());
        command.current_dir(bare.get_current_dir().unwrap());
        for (name, value) in bare.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        shown_output(&command.stdin(Stdio::null()).output().unwrap())
    };
    let numbers = enter("read -r _ _ _ _ group session _ < /proc/self/stat; echo $group $session", false);
    if numbers.0 != "0 0\n" {
        println!("skipped, because a pid namespace cannot be made here: {numbers:?}");
        return;
    }
    let signals = ROWS.iter().filter(|row| row.contains("kill -") || row.contains("setsid"));
    for line in signals.filter_map(|row| needed(row)) {
        assert_eq!(enter(line, false), enter(line, true), "{line}");
    }
}

/// A real terminal, with a session of its own in it.
struct Screen {
    ours: File,
    child: Child,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Screen {
    fn open(mut command: Command) -> Self {
        let ours =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = File::options().read(true).write(true).open(name).unwrap();
        let end = |file: &File| Stdio::from(OwnedFd::from(file.try_clone().unwrap()));
        command.stdin(end(&theirs)).stdout(end(&theirs)).stderr(end(&theirs));
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&ours, size).unwrap();
        // SAFETY: between fork and exec only system calls are made, all of them safe there.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                // Tests that run in the background inherit ignored keys.
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop((command, theirs));
        let ours = File::from(ours);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (ours.try_clone().unwrap(), Arc::clone(&seen));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of a terminal is an error.
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                to.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Self { ours, child, seen, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    fn does(&mut self, what: &Does, line: &str) {
        match what {
            Sees(text) => {
                let from = std::time::Instant::now();
                while !self.text().contains(text) {
                    assert!(
                        from.elapsed() < std::time::Duration::from_secs(30),
                        "{line}: {text:?} is not shown, but {:?}",
                        self.text()
                    );
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            Types(keys) => {
                // What the command has shown, it has shown before it waits for keys.
                std::thread::sleep(std::time::Duration::from_millis(100));
                self.ours.write_all(keys.as_bytes()).unwrap();
            }
            Widens(columns) => {
                let size = Winsize { ws_row: 24, ws_col: *columns, ws_xpixel: 0, ws_ypixel: 0 };
                rustix::termios::tcsetwinsize(&self.ours, size).unwrap();
            }
        }
    }

    /// Waits for its end. Gives all that was shown, and how it ended.
    fn ends(mut self, line: &str) -> (String, String) {
        let from = std::time::Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if from.elapsed() > std::time::Duration::from_secs(30) {
                let group = rustix::process::Pid::from_child(&self.child);
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                panic!("{line}: it does not end, and has shown {:?}", self.text());
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        self.reader.join().unwrap();
        let text = self.seen.lock().unwrap().escape_ascii().to_string();
        // A shell names its jobs by their command lines. Whether it tells that one is done depends
        // on whether it waits for it already.
        let text = text.replace("\\r\\n", "\n").replace(&prefix(), "");
        let told = text.split_inclusive('\n').filter(|line| !line.starts_with("[1]+  Done"));
        (told.collect(), shown(status))
    }
}

fn run_on_terminal(line: &str, does: &[Does], wrapped: bool) -> (String, String) {
    let (_project, command) = prepared(line, wrapped);
    let mut screen = Screen::open(command);
    for what in does {
        screen.does(what, line);
    }
    screen.ends(line)
}

#[test]
fn a_terminal_is_what_it_is_without_us() {
    let mut differ = Vec::new();
    let mut compared = 0;
    for (row, does) in TERMINAL_ROWS {
        let Some(line) = needed(row) else { continue };
        compared += 1;
        let (bare, wrapped) = (run_on_terminal(line, does, false), run_on_terminal(line, does, true));
        if bare != wrapped {
            differ.push(format!("{line}\n   bare: {bare:?}\nwrapped: {wrapped:?}"));
        }
    }
    assert!(differ.is_empty(), "{} of {compared} differ:\n{}", differ.len(), differ.join("\n\n"));
    println!("{compared} lines are the same on a terminal");
}

#[test]
fn the_terminal_is_sane_after_kill_9() {
    let line = "a=$(stty -g); @ sh -c '(cut -d \" \" -f 4 /proc/$PPID/stat 2> /dev/null || echo $PPID) > pid; \
                echo $$ >> pid; echo ready; sleep 600'; \
                [ \"$a\" = \"$(stty -g)\" ] && echo the same modes";
    let (project, command) = prepared(line, true);
    let mut screen = Screen::open(command);
    screen.does(&Sees("ready"), line);
    let pids = project.read("pid");
    let mut pids = pids.lines();
    Command::new("kill").args(["-KILL", pids.next().unwrap()]).status().unwrap();
    screen.does(&Sees("the same modes"), line);
    let (shown, _) = screen.ends(line);
    assert!(shown.contains("the same modes"), "{shown}");
    // What was cut off is ended by the next one.
    project.exec(&[], "exit 0").go().code(0);
    let left = pids.next().unwrap().to_owned();
    until("what was left is ended", || !is_alive(&left));
}

#[test]
fn no_pty_gives_pipes() {
    let line =
        format!("{BIN} exec -q --no-pty -- sh -c 'test -t 1 || echo a pipe; test -t 2 || echo another >&2'");
    let (_project, command) = prepared(&line, false);
    let (shown, status) = Screen::open(command).ends(&line);
    assert!(shown.contains("a pipe") && shown.contains("another") && status.contains("Some(0)"), "{shown}");
}

#[test]
fn what_a_person_stopped_is_no_failure() {
    let line = format!("{BIN} exec -- sh -c 'echo ready; sleep 60'");
    let (project, command) = prepared(&line, false);
    let mut screen = Screen::open(command);
    screen.does(&Sees("ready"), &line);
    screen.does(&Types("\x03"), &line);
    let (shown, _) = screen.ends(&line);
    assert!(shown.contains("stopped by you") && !shown.contains("failed"), "{shown}");
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert_eq!(runs["runs"][0]["outcome"], "interrupted");
    // A reader that leaves needs no words at all.
    let output = project
        .program("bash", &["-c", &format!("{BIN} exec -- yes | head -n 1; echo ${{PIPESTATUS[0]}}")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "y\n141\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert_eq!(runs["runs"][0]["outcome"], "interrupted");
}

#[test]
fn an_answer_is_no_failure_unless_somebody_asks() {
    let project = Project::new("transparent-answer");
    project.file("lines", "one\n");
    let done = project.run(&["exec", "--", "grep", "two", "lines"]).go().code(1);
    assert_eq!(done.stderr(), "");
    assert!(!project.kinds().contains(&"error.classified".to_owned()));
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert_eq!(
        (runs["runs"][0]["outcome"].as_str(), runs["runs"][0]["exit"].as_i64()),
        (Some("done"), Some(1))
    );
    let run = runs["runs"][0]["run"].as_str().unwrap();
    let story = project.run(&["explain", run]).go().code(0).stdout();
    assert!(story.contains("· exit 1 · succeeded"), "{story}");
    let failed = project.run(&["exec", "--", "grep", "two", "no-such-file"]).go().code(2);
    assert!(failed.stderr().contains("failed after 1 attempt"), "{}", failed.stderr());
    let asked = project.run(&["exec", "--on", "unknown=retry:2", "--json", "--", "test", "-f", "nope"]).go();
    assert_eq!(asked.code(1).json()["attempts"], 2);
}

/// Fails twice as a network does, and says what it has read.
const READS_AND_FAILS: &str = "head -n 1; echo x >> tries; [ $(wc -l < tries) -gt 1 ] || { echo 'npm error code ECONNRESET' >&2; exit 1; }";

#[test]
fn input_that_was_there_whole_is_given_again() {
    let project = Project::new("transparent-again");
    project.file("retry.sh", READS_AND_FAILS);
    let line = format!("echo whole > in; cat in | (sleep 0.3; {BIN} exec -q -- sh retry.sh)");
    let output = project.program("bash", &["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\nwhole\n");
}

#[test]
fn input_that_is_gone_is_not_made_up() {
    let project = Project::new("transparent-gone");
    project.file("retry.sh", READS_AND_FAILS);
    let line = format!("(echo one; sleep 1) | {BIN} exec --json -- sh retry.sh");
    let output = project.program("bash", &["-c", &line]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((json["attempts"].as_u64(), json["exit"].as_i64()), (Some(1), Some(1)));
    let why = json["decision"]["why"].as_str().unwrap();
    assert!(why.contains("read from standard input") && why.contains("--stdin replay"), "{why}");
    // Read ahead, it can be given again.
    std::fs::remove_file(project.path().join("tries")).unwrap();
    let line = format!("(echo one; sleep 1) | {BIN} exec -q --stdin replay -- sh retry.sh");
    let output = project.program("bash", &["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\none\n");
}

#[test]
fn an_idle_pipe_hinders_no_retry() {
    let project = Project::new("transparent-idle");
    let script =
        "echo x >> tries; [ $(wc -l < tries) -gt 1 ] || { echo 'npm error code ECONNRESET' >&2; exit 1; }";
    let mut child = project.exec(&[], script).command().spawn().unwrap();
    // As agents leave it: open, and nothing is ever written.
    let _stdin = child.stdin.take().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(project.read("tries").lines().count(), 2);
    std::fs::remove_file(project.path().join("tries")).unwrap();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = project.exec(&[], script).command();
    let status = command.stdin(OwnedFd::from(theirs)).status().unwrap();
    assert!(status.success());
    drop(ours);
}

#[test]
fn what_was_typed_is_not_asked_for_again() {
    let script = "sleep 0.4; printf \"sure? \"; read answer; echo npm error code ECONNRESET >&2; exit 1";
    let line = format!("{BIN} exec -- sh -c '{script}'");
    let (project, command) = prepared(&line, false);
    let mut screen = Screen::open(command);
    screen.does(&Sees("sure?"), &line);
    screen.does(&Types("y\n"), &line);
    let (shown, _) = screen.ends(&line);
    assert!(shown.contains("cannot be given to another attempt"), "{shown}");
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert_eq!(runs["runs"][0]["attempts"], 1, "{runs}");
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let project = Project::new("transparent-full");
    for line in ["exec -- echo hello", "exec -- sh -c 'echo hello; sleep 0.2; echo more'"] {
        let line = format!("{BIN} {line} > /dev/full");
        let output = project.program("bash", &["-c", &line]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{line}");
        assert!(told.contains("No space left on device") && !told.contains("stopped by you"), "{told}");
    }
}
