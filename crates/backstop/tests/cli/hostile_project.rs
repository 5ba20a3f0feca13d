//! A project of somebody else: links, pipes, devices and folders wait wherever Backstop reads or
//! writes in it.

use crate::harness::Project;
use crate::plan_text::{PlanText, has, run};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the views of `plan.md`.
const VIEWS: &str = ".backstop/runs/plan";

fn one_phase(name: &str) -> Project {
    let project = Project::plain(name);
    PlanText::new().sh("1", "", "echo said; echo made > made.txt").write(&project);
    project
}

/// A file that a link in the project leads to.
fn victim(project: &Project) -> PathBuf {
    let outside = project.beside("outside");
    std::fs::create_dir_all(outside.join("folder")).unwrap();
    std::fs::write(outside.join("bashrc"), "alias ll='ls -l'\n").unwrap();
    std::fs::write(outside.join("folder/inner"), "inner\n").unwrap();
    outside
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Everything below a folder, with its content.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(snapshot(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn what_git_would_wait_for_is_refused_in_words() {
    for (n, name) in [".gitignore", ".gitattributes", ".gitmodules"].iter().enumerate() {
        let project = Project::git(&format!("hostile-git-{n}"));
        PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
        mkfifo(&project.path().join(name));
        for flags in [&["--isolation", "none", "--commit", "none"][..], &["--commit", "auto"]] {
            let said = run(&project, flags).go().stderr();
            let refused = format!("{name} is a named pipe, which git cannot read");
            assert!(said.contains(&refused) && said.contains("hint: look at it"), "{said}");
        }
        project.exec(&[], "exit 0").go().code(0);
    }
}

#[test]
fn a_link_in_place_of_a_view_or_a_log_overwrites_nothing() {
    let links = [
        ("config.json", "bashrc"),
        ("logs/execution.log", "bashrc"),
        ("logs/phase-1/attempt-1.log", "bashrc"),
        ("phases/phase-1.json", "bashrc"),
        ("phases/phase-1.json", "made-by-a-link"),
        ("logs", "folder"),
        ("phases", "folder"),
        ("../../runs", "folder"),
    ];
    for (n, (place, to)) in links.into_iter().enumerate() {
        let project = one_phase(&format!("hostile-link-{n}"));
        let outside = victim(&project);
        let before = snapshot(&outside);
        let views = project.path().join(VIEWS);
        let at =
            if place.starts_with("..") { project.path().join(".backstop/runs") } else { views.join(place) };
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(outside.join(to), &at).unwrap();
        let said = run(&project, &[]).go().code(0).stderr();
        has(&said, &[&at.display().to_string(), "is a symbolic link", "remove it: rm "]);
        assert_eq!(snapshot(&outside), before, "{place}");
        assert!(at.is_symlink());
        assert_eq!(project.read("made.txt"), "made\n", "the work goes on");
    }
}

#[test]
fn a_pipe_in_place_of_a_view_or_a_log_holds_nothing_up() {
    for (n, place) in
        ["config.json", "logs/execution.log", "logs/phase-1/attempt-1.log", "phases/phase-1.json"]
            .into_iter()
            .enumerate()
    {
        let project = one_phase(&format!("hostile-pipe-{n}"));
        let at = project.path().join(VIEWS).join(place);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        mkfifo(&at);
        let said = run(&project, &[]).go().code(0).stderr();
        has(&said, &[&at.display().to_string(), "is a named pipe", "remove it: rm "]);
    }
}

#[test]
fn a_state_file_that_is_a_link_or_a_pipe_is_not_read_back() {
    for kind in ["link", "pipe"] {
        let project = Project::plain(&format!("hostile-edit-{kind}"));
        PlanText::new().sh("1", "", "true").sh("2", "1", "test -f ready").write(&project);
        run(&project, &[]).go().code(3);
        let file = project.path().join(VIEWS).join("phases/phase-1.json");
        let outside = victim(&project).join("state.json");
        std::fs::copy(&file, &outside).unwrap();
        std::fs::remove_file(&file).unwrap();
        match kind {
            "link" => symlink(&outside, &file).unwrap(),
            _ => mkfifo(&file),
        }
        project.file("ready", "");
        let before = std::fs::read(&outside).unwrap();
        let said = run(&project, &[]).go().stderr();
        has(&said, &["phase-1.json", if kind == "link" { "a symbolic link" } else { "a named pipe" }]);
        assert_eq!(std::fs::read(&outside).unwrap(), before);
        let logs = project.run(&["plan", "logs", "1"]).go().code(0);
        assert_eq!(logs.exit(), Some(0));
    }
}

#[test]
fn a_report_and_a_tail_file_in_the_project_follow_no_link() {
    let project = Project::new("hostile-report");
    let outside = victim(&project);
    let before = snapshot(&outside);
    let inside = |name: &str| project.path().join(name);
    symlink(outside.join("bashrc"), inside("report.json")).unwrap();
    symlink(outside.join("folder"), inside("out")).unwrap();
    mkfifo(&inside("pipe.json"));
    for (file, says) in [
        ("report.json", "report.json is a symbolic link"),
        ("out/new.json", "out is a symbolic link"),
        ("out/inner", "out is a symbolic link"),
        ("pipe.json", "pipe.json is a named pipe"),
    ] {
        let done = project.exec(&["--report", file], "exit 4").go().code(4);
        has(&done.stderr(), &["cannot write the report", says]);
        let done = project.run(&["events", "--tail-to", file]).go().code(1);
        has(&done.stderr(), &[says]);
        project.trusted_file(format!("[events]\ntail_to = \"{file}\"\n"));
        let done = project.exec(&[], "exit 4").go().code(4);
        has(&done.stderr(), &["cannot append events", says]);
    }
    assert_eq!(snapshot(&outside), before);
    // What lies elsewhere is the word of who named it.
    let link = project.beside("mine.json");
    symlink(outside.join("bashrc"), &link).unwrap();
    project.exec(&["--report", &link.display().to_string()], "exit 4").go().code(4);
    assert!(link.is_symlink() && std::fs::read_to_string(outside.join("bashrc")).unwrap().starts_with('{'));
}

#[test]
fn a_pipe_that_a_phase_leaves_in_the_folder_holds_nothing_up() {
    let project = Project::plain("hostile-left");
    PlanText::new().sh("1", "", "mkfifo left.pipe").sh("2", "1", "echo two > two.txt").write(&project);
    run(&project, &[]).go().code(0);
    assert_eq!(project.read("two.txt"), "two\n");
    // In place of the repository's folder, too.
    let project = Project::plain("hostile-git");
    mkfifo(&project.path().join(".git"));
    project.exec(&[], "exit 3").go().code(3);
}

#[test]
fn a_plan_that_is_a_link_is_the_word_of_who_named_it_and_a_phase_may_not_make_it_one() {
    let project = one_phase("hostile-plan");
    let plan = project.path().join("plan.md");
    let real = project.path().join("real.md");
    std::fs::rename(&plan, &real).unwrap();
    symlink("real.md", &plan).unwrap();
    run(&project, &[]).go().code(0);
    assert!(plan.is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains('✅'), "its marks are in the plan itself");

    let project = Project::plain("hostile-marks");
    let outside = victim(&project).join("other.md");
    let script = "cp plan.md ../outside/other.md; ln -sf ../outside/other.md plan.md";
    PlanText::new().sh("1", "", script).write(&project);
    let said = run(&project, &[]).go().stderr();
    has(&said, &["the plan's marks cannot be written", "plan.md is a symbolic link"]);
    assert!(!std::fs::read_to_string(&outside).unwrap().contains('✅'));
}

#[test]
fn a_link_in_the_state_folder_is_refused() {
    let project = Project::new("hostile-state");
    project.exec(&[], "exit 1").go().code(1);
    let outside = victim(&project);
    let before = snapshot(&outside);
    let lock = project.state().join("lock");
    std::fs::remove_file(&lock).unwrap();
    symlink(outside.join("bashrc"), &lock).unwrap();
    std::fs::remove_dir_all(project.state().join("projects")).unwrap();
    let said = project.run(&["run", "nothing.md"]).go().stderr();
    assert!(!said.is_empty());
    project.exec(&[], "exit 1").go().code(1);
    assert_eq!(snapshot(&outside), before);
}

/// A small generator, so that a failure names the number of its tree.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The places where a run writes, outermost first, and whether each is a folder.
const PLACES: &[(&str, bool)] = &[
    (".backstop", true),
    (".backstop/runs", true),
    (".backstop/runs/plan", true),
    (".backstop/runs/plan/config.json", false),
    (".backstop/runs/plan/phases", true),
    (".backstop/runs/plan/phases/phase-1.json", false),
    (".backstop/runs/plan/phases/phase-2.json", false),
    (".backstop/runs/plan/logs", true),
    (".backstop/runs/plan/logs/execution.log", false),
    (".backstop/runs/plan/logs/phase-1", true),
    (".backstop/runs/plan/logs/phase-1/attempt-1.log", false),
    (".backstop/runs/plan/logs/phase-2", true),
    (".backstop/runs/plan/logs/phase-2/attempt-1.log", false),
    (".backstop/runs/plan/logs/phase-2/attempt-1.prompt.md", false),
    (".backstop/runs/plan/logs/phase-2/attempt-1.result.prompt.md", false),
    (".backstop/runs/plan/commits.sh", false),
];

/// Puts something into a place. Returns whether it has to be refused.
fn plant(dice: &mut Dice, at: &Path, is_folder: bool, outside: &Path) -> bool {
    match dice.below(16) {
        0 => symlink(outside.join("bashrc"), at).unwrap(),
        1 => symlink(outside.join("folder"), at).unwrap(),
        2 => symlink(outside.join("not-there"), at).unwrap(),
        3 => mkfifo(at),
        // Not everybody may make devices.
        4 if Command::new("mknod").arg(at).args(["c", "1", "3"]).status().is_ok_and(|s| s.success()) => {}
        5 if is_folder => std::fs::write(at, "a file").unwrap(),
        5 => std::fs::create_dir(at).unwrap(),
        6 => drop(std::os::unix::net::UnixListener::bind(at)),
        // A loop, and a file that is too large to be read.
        7 => symlink(at, at).unwrap(),
        8 if !is_folder => {
            std::fs::File::create(at).unwrap().set_len(1 << 40).unwrap();
            return false;
        }
        9 if !is_folder => {
            std::fs::write(at, "{}").unwrap();
            return false;
        }
        _ if is_folder => {
            std::fs::create_dir(at).unwrap();
            return false;
        }
        _ => return false,
    }
    at.symlink_metadata().is_ok()
}

#[test]
fn whatever_waits_in_the_places_of_views_and_logs_nothing_outside_changes_and_nothing_hangs() {
    for seed in 0..24 {
        let project = Project::plain(&format!("hostile-tree-{seed}"));
        // Every other one in a repository, where `commits.sh` is written.
        let in_git = seed % 2 == 0;
        if in_git {
            project.sh("git init -q -b main && git add -A && git commit -q -m base");
        }
        let agent =
            "printf '{\"phase_id\": \"%s\", \"status\": \"complete\"}' $BACKSTOP_PHASE > $BACKSTOP_RESULT";
        let agent = format!("cat > /dev/null; echo two > two.txt; {agent}");
        project.settings(format!("[agent.fake]\ncommand = {}\n", serde_json::json!(["sh", "-c", agent])));
        PlanText::new().sh("1", "", "echo one > one.txt").phase("2", "1", "agent = 'fake'").write(&project);
        let outside = victim(&project);
        let before = snapshot(&outside);
        let mut dice = Dice(seed * 7919 + 1);
        let mut refused: Vec<&str> = Vec::new();
        for (place, is_folder) in PLACES {
            let at = project.path().join(place);
            let parent = at.parent().unwrap();
            let reachable = parent.symlink_metadata().is_ok_and(|found| found.is_dir());
            if reachable && plant(&mut dice, &at, *is_folder, &outside) {
                refused.push(place);
            }
        }
        // A prompt that is asked for only where a result is missing, and a script where there is no
        // git.
        let is_used = |place: &&&str| {
            !place.ends_with("result.prompt.md") && (in_git || !place.ends_with("commits.sh"))
        };
        let flags: &[&str] = if in_git { &["--commit", "message-only", "--allow-dirty"] } else { &[] };
        let said = run(&project, flags).go().code(0).stderr();
        for place in refused.iter().filter(is_used) {
            assert!(said.contains(place), "tree {seed}: nothing was said of {place} of {refused:?}:\n{said}");
        }
        assert_eq!(snapshot(&outside), before, "tree {seed}: {refused:?}\n{said}");
        // Read back, too: nothing hangs, and nothing is written elsewhere.
        project.run(&["plan", "logs", "1"]).go();
        run(&project, &[flags, &["--fresh", "--yes"]].concat()).go();
        assert_eq!(snapshot(&outside), before, "tree {seed}");
    }
}

/// Lines of shell that leave something in the place of a file, and whether it can be read as one.
const LEAVINGS: &[&str] = &[
    "ln -s $VICTIM/bashrc AT",
    "ln -s $VICTIM/folder AT",
    "ln -s $VICTIM/not-there AT",
    "ln -s AT AT",
    "mkfifo AT",
    "mknod AT c 1 3 || mkfifo AT",
    "mkdir AT",
    "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' AT",
    "truncate -s 1T AT",
    "head -c 300000 /dev/urandom > AT",
    "yes '{\"phase_id\": \"1\", \"status\": \"complete\"}' | head -c 9000000 > AT",
    "printf '%0100000d' 0 | tr 0 '[' > AT",
    "touch AT; chmod 000 AT",
];

#[test]
fn whatever_an_agent_leaves_in_the_place_of_its_result_nothing_hangs_and_nothing_outside_is_read() {
    for (n, leaving) in LEAVINGS.iter().enumerate() {
        // In a repository, and in the folder itself.
        for isolated in [true, false] {
            let name = format!("hostile-result-{n}-{isolated}");
            let project = if isolated { Project::git(&name) } else { Project::plain(&name) };
            let outside = victim(&project);
            let stolen = r#"{"phase_id": "1", "status": "complete", "commit_message": "stolen words"}"#;
            std::fs::write(outside.join("bashrc"), stolen).unwrap();
            let before = snapshot(&outside);
            // Its prompts and the context of a retry are in its reach, too.
            let places = "rm -rf \"$BACKSTOP_RESULT\"; for at in \"$BACKSTOP_RESULT\" \
                \"$(dirname \"$BACKSTOP_RESULT\")\"/*prompt* \"$BACKSTOP_RETRY_CONTEXT\"; do [ -n \"$at\" ] || continue; rm -rf \"$at\"; ";
            let leave = leaving.replace("AT", "\"$at\"");
            let script = format!("cat > /dev/null; echo x > x.txt; {places} {leave}; done; exit 0");
            std::fs::write(project.beside("agent.sh"), script).unwrap();
            let agent = serde_json::json!(["sh", project.beside("agent.sh").display().to_string()]);
            project.settings(format!("[agent.fake]\ncommand = {agent}\n"));
            PlanText::new().phase("1", "", "agent = 'fake'").write(&project);
            let flags: &[&str] = if isolated { &["--commit", "auto"] } else { &[] };
            let done = run(&project, flags).env("VICTIM", &outside.display().to_string()).go();
            let words = done.stdout() + &done.stderr();
            assert!(!words.contains("panicked") && !words.contains("stolen words"), "{leaving}: {words}");
            assert!(matches!(done.exit(), Some(0 | 3)), "{leaving}: {:?} {words}", done.exit());
            assert_eq!(snapshot(&outside), before, "{leaving}");
            let log = if isolated { project.sh("git log --all --format=%B") } else { String::new() };
            assert!(!log.contains("stolen words"), "{leaving}: {log}");
        }
    }
}
