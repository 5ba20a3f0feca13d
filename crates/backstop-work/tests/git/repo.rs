use crate::world::{FOREIGN, World, executable, hostile_names, write};
use backstop_work::git::{GitError, How, Repo, Settings, Underway, attempt_ref, tip_ref};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[test]
fn a_repository_is_found_from_anywhere_in_it_and_nowhere_else() {
    let world = World::new();
    let repo = Repo::find_with(&world.root.join("dir"), world.settings()).unwrap().unwrap();
    assert_eq!(repo.root(), world.root);
    assert_eq!(repo.git_dir(), world.root.join(".git"));
    assert!(Repo::find_with(&world.top, world.settings()).unwrap().is_none());
    let inside = Repo::find_with(&world.root.join(".git/refs"), world.settings());
    assert!(matches!(inside, Err(GitError::InsideGitDir { .. })), "{inside:?}");
    world.git(&["init", "-q", "--bare", "../bare"]);
    let bare = Repo::find_with(&world.top.join("bare"), world.settings());
    assert!(matches!(bare, Err(GitError::Bare { .. })), "{bare:?}");
    let gone = Repo::find_with(&world.top.join("gone"), world.settings());
    assert!(matches!(gone, Err(GitError::Io { .. })), "{gone:?}");
}

#[test]
fn what_is_checked_out_is_told() {
    what_is_checked_out(&World::unborn());
}

/// Where refs are in tables, `HEAD` and its like are no files.
#[test]
fn what_is_checked_out_is_told_where_refs_are_in_tables() {
    let world = World::unborn();
    let migrated = world.try_git(&world.root, &["refs", "migrate", "--ref-format=reftable"]);
    if !migrated.status.success() {
        println!("this git has no tables of refs");
        return;
    }
    what_is_checked_out(&world);
}

fn what_is_checked_out(world: &World) {
    let head = world.repo().head().unwrap();
    assert_eq!((head.sha, head.branch.as_deref(), head.underway), (None, Some("refs/heads/main"), None));
    world.write("a", "1\n");
    let first = world.commit("first");
    let head = world.repo().head().unwrap();
    assert_eq!((head.sha, head.branch.as_deref()), (Some(first), Some("refs/heads/main")));
    world.git(&["checkout", "-q", "-b", "other"]);
    world.write("a", "2\n");
    world.commit("second");
    world.git(&["checkout", "-q", "main"]);
    world.write("a", "3\n");
    world.commit("third");
    for (args, what) in [
        (["merge", "other"], Underway::Merge),
        (["cherry-pick", "other"], Underway::CherryPick),
        (["rebase", "other"], Underway::Rebase),
    ] {
        world.try_git(&world.root, &args);
        assert_eq!(world.repo().head().unwrap().underway, Some(what));
        world.git(&[what.command(), "--abort"]);
    }
    world.git(&["checkout", "-q", "--detach"]);
    assert_eq!(world.repo().head().unwrap().branch, None);
}

#[test]
fn dirty_is_what_is_tracked_and_changed_but_for_the_plan() {
    let world = World::new();
    let plan = world.root.join("PLAN.md");
    world.write("PLAN.md", "- [ ] x\n");
    world.commit("plan");
    let repo = world.repo();
    world.write("untracked", "x");
    world.write("PLAN.md", "- [x] x\n");
    assert_eq!(repo.dirty(&[&plan]).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(repo.dirty(&[Path::new("PLAN.md")]).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(repo.dirty(&[]).unwrap(), [PathBuf::from("PLAN.md")]);
    world.write("a.txt", "changed");
    world.git(&["rm", "-q", "--cached", "dir/b.txt"]);
    assert_eq!(repo.dirty(&[&plan]).unwrap(), [PathBuf::from("a.txt"), PathBuf::from("dir/b.txt")]);
}

#[test]
fn a_submodule_that_changed_is_dirty() {
    let world = World::new();
    let library = World::new();
    world.git(&["submodule", "add", "-q", library.root.to_str().unwrap(), "lib"]);
    world.commit("with a submodule");
    let repo = world.repo();
    assert!(repo.dirty(&[]).unwrap().is_empty());
    world.write("lib/untracked", "x");
    assert!(repo.dirty(&[]).unwrap().is_empty());
    world.write("lib/a.txt", "x");
    assert_eq!(repo.dirty(&[]).unwrap(), [PathBuf::from("lib")]);
}

#[test]
fn every_name_is_a_name() {
    let world = World::new();
    let base = world.head();
    for name in hostile_names() {
        world.write(&name, "x\n");
    }
    let after = world.commit("names");
    let repo = world.repo();
    let mut found: Vec<_> = repo.changed_paths(&base, &after).unwrap().into_iter().map(|c| c.path).collect();
    let mut expected = hostile_names();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    for name in hostile_names() {
        world.write(&name, "changed\n");
    }
    assert_eq!(repo.dirty(&[]).unwrap().len(), expected.len());
    let back = repo.changed_paths(&after, &base).unwrap();
    assert!(back.iter().all(|c| c.how == How::Deleted));
}

#[test]
fn a_ref_moves_only_from_where_it_was_believed_to_be() {
    let world = World::new();
    let (one, repo) = (world.head(), world.repo());
    world.write("a.txt", "2");
    let two = world.commit("two");
    let run = "r-7f3a".parse().unwrap();
    let tip = tip_ref(run);
    assert_eq!(repo.read_ref(&tip).unwrap(), None);
    assert!(!repo.set_ref(&tip, &two, Some(&one)).unwrap());
    assert!(repo.set_ref(&tip, &one, None).unwrap());
    assert!(!repo.set_ref(&tip, &two, None).unwrap());
    assert!(!repo.set_ref(&tip, &one, Some(&two)).unwrap());
    assert!(repo.set_ref(&tip, &two, Some(&one)).unwrap());
    assert_eq!(repo.read_ref(&tip).unwrap(), Some(two.clone()));
    let nowhere = "1".repeat(40).parse().unwrap();
    assert!(matches!(repo.set_ref(&tip, &nowhere, Some(&two)), Err(GitError::Failed { .. })));
    assert!(matches!(repo.set_ref("HEAD", &one, None), Err(GitError::BadRef { .. })));
    for phase in ["tip", "a..b", "x.lock"] {
        assert!(repo.set_ref(&attempt_ref(run, &phase.parse().unwrap(), 1), &one, None).unwrap(), "{phase}");
    }
    let other = "r-7f3b".parse().unwrap();
    assert!(repo.set_ref(&tip_ref(other), &one, None).unwrap());
    assert_eq!(repo.runs_refs(run).unwrap().len(), 4);
    assert_eq!(repo.read_ref(&tip_ref(other)).unwrap(), Some(one));
}

#[test]
fn eight_threads_on_one_ref_lose_no_move() {
    let world = World::new();
    let repo = world.repo();
    let tree = repo.tree_of(&world.head()).unwrap();
    let base = world.head();
    assert!(repo.set_ref("refs/backstop/r-0001/tip", &base, None).unwrap());
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (repo, tree) = (&repo, &tree);
            scope.spawn(move || {
                loop {
                    let old = repo.read_ref("refs/backstop/r-0001/tip").unwrap().unwrap();
                    let new = repo.commit_tree(tree, &[&old], &format!("by {n}")).unwrap();
                    match repo.set_ref("refs/backstop/r-0001/tip", &new, Some(&old)) {
                        Ok(true) => break,
                        Ok(false) | Err(GitError::Locked { .. } | GitError::Failed { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(world.git(&["rev-list", "--count", "refs/backstop/r-0001/tip"]), "9");
}

#[test]
fn git_is_asked_once_what_never_changes() {
    let world = World::new();
    let first = world.repo().head().unwrap().sha.unwrap();
    world.write("a.txt", "other\n");
    let second = world.commit("second");
    let calls = world.top.join("calls");
    let program = world.top.join("counting git");
    write(&program, format!("#!/bin/sh\necho . >> '{}'\nexec git \"$@\"\n", calls.display()));
    executable(&program);
    let repo = Repo::find_with(&world.root, Settings { program, ..world.settings() }).unwrap().unwrap();
    let counted = |what: &dyn Fn()| {
        let _ = std::fs::remove_file(&calls);
        what();
        std::fs::read_to_string(&calls).unwrap_or_default().lines().count()
    };
    let ask = || {
        assert_eq!(repo.changed_paths(&first, &second).unwrap().len(), 1);
        assert!(repo.contains(&second, &first).unwrap() && !repo.contains(&first, &second).unwrap());
        assert!(repo.contains(&first, &first).unwrap());
        repo.tree_of(&second).unwrap();
    };
    assert_eq!(counted(&ask), 4);
    assert_eq!(counted(&ask), 0, "the answers are known");
    // What can change is looked at each time.
    assert_eq!(repo.head().unwrap().sha, Some(second));
    world.write("a.txt", "third\n");
    let third = world.commit("third");
    assert_eq!(repo.head().unwrap().sha, Some(third));
}

#[test]
fn a_git_that_is_missing_too_old_or_hangs_is_told() {
    let world = World::new();
    let with = |script: &str| {
        let program = world.top.join("fake git");
        write(&program, format!("#!/bin/sh\n{script}\n"));
        executable(&program);
        Settings { program, time: Duration::from_millis(500), ..world.settings() }
    };
    let old = Repo::find_with(&world.root, with("echo git version 2.37.9")).unwrap_err();
    assert!(matches!(&old, GitError::TooOld { .. }) && old.to_string().contains("2.38"), "{old}");
    let hangs = Repo::find_with(&world.root, with("sleep 100")).unwrap_err();
    assert!(matches!(hangs, GitError::TimedOut { .. }), "{hangs}");
    let none = Settings { program: world.top.join("none"), ..world.settings() };
    assert!(matches!(Repo::find_with(&world.root, none), Err(GitError::NoGit { .. })));
}

#[test]
fn a_lock_of_the_users_is_waited_for_and_then_named() {
    let world = World::new();
    let repo = world.repo();
    let lock = world.root.join(".git/index.lock");
    world.write("new", "x");
    std::fs::write(&lock, "").unwrap();
    let error = repo.commit_paths(&["new".into()], "m").unwrap_err();
    assert!(error.to_string().contains("index.lock"), "{error}");
    assert!(error.hint().contains("rm "), "{}", error.hint());
    let patient = Settings { lock_tries: 200, lock_pause: Duration::from_millis(20), ..world.settings() };
    let repo = Repo::find_with(&world.root, patient).unwrap().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            std::fs::remove_file(&lock).unwrap();
        });
        repo.commit_paths(&["new".into()], "m").unwrap();
    });
}

#[test]
fn variables_that_lead_git_elsewhere_do_not_reach_it() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "repo::a_repository_is_found_from_anywhere_in_it_and_nowhere_else"]);
    let out = command.envs(FOREIGN.map(|name| (name, "/nowhere"))).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
