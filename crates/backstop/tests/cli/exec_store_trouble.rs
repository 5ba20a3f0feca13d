//! When the store cannot be used: the command goes on, one warning says so, and what was recorded
//! stays readable.

use crate::harness::{Folder, Project, Run, in_a_room};
use std::path::Path;
use std::process::Command;

fn warnings(stderr: &str) -> usize {
    stderr.matches("warning: this run is not recorded").count()
}

#[test]
fn a_state_folder_that_is_none_is_one_warning() {
    let project = Project::new("store-file");
    std::fs::write(project.state(), "I am a file").unwrap();
    let script = "echo x >> tries; [ $(wc -l < tries) -gt 1 ] || { echo npm error code ECONNRESET >&2; exit 1; }; echo fine";
    let done = project.exec(&[], script).go().code(0);
    assert_eq!(done.stdout(), "fine\n");
    assert_eq!(warnings(&done.stderr()), 1, "{}", done.stderr());
    assert!(done.stderr().contains("hint:"), "{}", done.stderr());
    assert!(done.stderr().contains("done on attempt 2"), "it is retried all the same: {}", done.stderr());
}

#[test]
fn a_damaged_store_is_named_and_set_aside_only_on_demand() {
    let project = Project::new("store-corrupt");
    project.exec(&[], "exit 0").go().code(0);
    let file = database(&project.state());
    std::fs::write(&file, "this is no database at all, but it was important to somebody\n".repeat(100))
        .unwrap();
    let _ = std::fs::remove_file(file.with_extension("db-wal"));
    let done = project.exec(&[], "echo fine").go().code(0);
    assert_eq!(warnings(&done.stderr()), 1, "{}", done.stderr());
    assert!(done.stderr().contains("backstop clean --quarantine"), "{}", done.stderr());
    let runs = project.run(&["runs"]).go().code(1).stderr();
    assert!(runs.contains(file.file_name().unwrap().to_str().unwrap()), "{runs}");
    project.run(&["doctor"]).go().code(1);
    let aside = project.run(&["clean", "--quarantine"]).go().code(0).stdout();
    assert!(aside.contains("set aside, nothing deleted"), "{aside}");
    let left: Vec<String> = std::fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(left.iter().any(|name| name.contains("corrupt")), "{left:?}");
    project.exec(&[], "exit 0").go().code(0);
    assert_eq!(project.kinds().len(), 4);
    assert!(project.run(&["clean", "--quarantine"]).go().code(0).stdout().contains("nothing is damaged"));
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let project = Project::new("store-newer");
    project.exec(&[], "exit 0").go().code(0);
    let file = database(&project.state());
    // The version is four bytes at 60 of the first page; the log is written back first.
    checkpoint(&file);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[60..64].copy_from_slice(&9_999u32.to_be_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let done = project.exec(&[], "echo fine").go().code(0);
    assert_eq!((done.stdout().as_str(), warnings(&done.stderr())), ("fine\n", 1), "{}", done.stderr());
    assert!(done.stderr().contains("9999"), "{}", done.stderr());
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

fn database(state: &Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(state.join("projects")).unwrap();
    entries.map(|e| e.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "db")).unwrap()
}

/// Writes the log back into the database, with Python's own SQLite.
fn checkpoint(file: &Path) {
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('pragma wal_checkpoint(truncate)'); c.execute('pragma journal_mode=delete')";
    assert!(Command::new("python3").args(["-c", script]).arg(file).status().unwrap().success());
}

#[test]
fn modes_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new("store-modes");
    project.exec(&[], "exit 0").go().code(0);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&project.state()), 0o700);
    for entry in std::fs::read_dir(project.state().join("projects")).unwrap() {
        assert_eq!(mode(&entry.as_ref().unwrap().path()), 0o600, "{entry:?}");
    }
}

#[test]
fn sixteen_at_once_lose_nothing() {
    let project = Project::new("store-sixteen");
    // Half of all attempts here are retries, which is where a budget is empty: in which order they
    // come is not the point.
    project.settings("[profile.command]\nbase = \"20ms\"\n[retry_budget]\nreserve = 1000\n");
    let script = "[ $BACKSTOP_ATTEMPT -gt 1 ] || { echo npm error code ECONNRESET; exit 1; }";
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let done = project.exec(&["--json"], script).go().code(0);
                    assert_eq!(done.json()["attempts"], 2);
                    assert_eq!(warnings(&done.stderr()), 0, "{}", done.stderr());
                }
            });
        }
    });
    let runs = project.run(&["runs", "--json", "-n", "1000"]).go().code(0).json();
    let runs = runs["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 48);
    assert!(runs.iter().all(|run| run["outcome"] == "done" && run["attempts"] == 2 && run["events"] == 9));
    assert_eq!(project.kinds().len(), 48 * 9);
}

#[test]
fn a_full_disk_is_one_warning_and_the_command_is_not_left_alone() {
    let folder = Folder::new("store-full");
    let state = folder.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    // In a room of its own, as root or not: a file system with space for the beginning and no more.
    let script = format!(
        "mount -t tmpfs -o size=1m,mode=700 tmpfs {state}; export BACKSTOP_STATE_DIR={state}; \
         {bin} exec -- true || exit 90; dd if=/dev/zero of={state}/filler bs=1k 2>/dev/null; \
         {bin} exec -- sh -c 'echo fine; sleep 0.2; echo npm error code ECONNRESET; exit 1' > out 2> err; echo $? > code; \
         {bin} exec --timeout 200ms --attempts 1 -- sh -c 'echo $$ > pid; sleep 600' 2> err2; \
         rm {state}/filler; {bin} runs --json > runs; {bin} exec -- true; {bin} doctor > doctor; echo $? > doctor-code",
        state = state.display(),
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    std::fs::create_dir_all(folder.path().join("config/backstop")).unwrap();
    folder.file("config/backstop/config.toml", "[profile.command]\nbase = \"10ms\"\n");
    in_a_room(&script, || {
        let mut command = Command::new("unshare");
        command.current_dir(folder.path()).env("XDG_CONFIG_HOME", folder.path().join("config"));
        command
    });
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!(read("code"), "1\n");
    assert_eq!(read("out").matches("fine\n").count(), 4, "it is retried all the same: {}", read("out"));
    assert_eq!(warnings(&read("err")), 1, "{}", read("err"));
    let pid = read("pid");
    assert!(!pid.trim().is_empty() && !Path::new(&format!("/proc/{}", pid.trim())).exists(), "{pid}");
    assert!(read("err2").contains("timeout"), "{}", read("err2"));
    let runs: serde_json::Value = serde_json::from_str(&read("runs")).unwrap();
    assert!(!runs["runs"].as_array().unwrap().is_empty(), "state is readable afterwards: {runs}");
    assert_eq!(read("doctor-code"), "0\n", "{}", read("doctor"));
}

#[test]
fn the_clock_may_jump_by_days_both_ways() {
    let days = 10 * 24 * 3600 * 1000i64;
    for jump in [days, -days] {
        for after in [0, 3, 6, 9] {
            let project = Project::new(&format!("store-clock{jump}-{after}"));
            let script = "[ $BACKSTOP_ATTEMPT -gt 1 ] || { echo npm error code ECONNRESET; exit 1; }";
            let flags = ["--json", "--deadline", "1h", "--timeout", "1h"];
            let json =
                project.exec(&flags, script).env("BACKSTOP_CLOCK_JUMP", &format!("{after}:{jump}")).go();
            let json = json.code(0).json();
            assert_eq!(json["attempts"], 2, "jump {jump} after {after}: {json}");
            assert!(json["duration_seconds"].as_f64().unwrap() < 3600.0, "{json}");
            // A run from the future, or of ten days ago, is told and kept.
            project.exec(&[], "exit 0").go().code(0);
            let runs = project.run(&["runs", "--json"]).go().code(0).json();
            assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
            project.run(&["explain", "last"]).go().code(0);
        }
    }
}

#[test]
fn an_older_store_is_migrated_or_read() {
    // The golden file of the first format is read by the store's own tests; here the program opens
    // it as a project's store.
    let golden = crate::harness::root().join("crates/backstop-store/tests/formats/v1.db");
    assert!(golden.exists());
    let project = Project::new("store-older");
    project.exec(&[], "exit 0").go().code(0);
    let file = database(&project.state());
    for suffix in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(file.with_extension(suffix));
    }
    std::fs::copy(golden, &file).unwrap();
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert!(!runs["runs"].as_array().unwrap().is_empty());
    project.exec(&[], "exit 0").go().code(0);
}

#[test]
fn a_run_name_that_is_a_path_is_refused() {
    for name in ["../../x", "r-../../x", "r-", "r-zzzz", "/etc/passwd"] {
        for args in [&["explain", name][..], &["events", "--run", name], &["exec", "--confirm", name]] {
            let done = Run::new(args).go();
            let code = if args[0] == "exec" { 125 } else { 2 };
            assert!(done.code(code).stderr().starts_with("error: "), "{args:?}");
        }
    }
}
