use crate::world::{World, hostile_names, write};
use backstop_work::git::{GitError, Landing, Sha};
use std::path::PathBuf;

const MAIN: Option<&str> = Some("refs/heads/main");

/// A commit on top of the user's that changes, adds and deletes.
fn next(world: &World, base: &Sha) -> Sha {
    world.worked(base, "next", |path| {
        write(&path.join("a.txt"), "changed\n");
        std::fs::remove_file(path.join("dir/b.txt")).unwrap();
        for name in hostile_names() {
            write(&path.join(name), "x\n");
        }
        std::os::unix::fs::symlink("a.txt", path.join("link")).unwrap();
    })
}

#[test]
fn the_branch_and_its_files_land_once() {
    let world = World::new();
    let base = world.head();
    let to = next(&world, &base);
    let repo = world.repo();
    world.write("users untracked", "x");
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::Done);
    assert_eq!(world.status(), "?? \"users untracked\"");
    assert_eq!(world.head(), to);
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::AlreadyThere);
    world.write("more", "x");
    world.commit("the user goes on");
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::AlreadyThere);
    world.git(&["checkout", "-q", "-b", "other"]);
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::AlreadyThere);
}

#[test]
fn a_branch_that_moved_or_is_not_checked_out_is_not_touched() {
    let world = World::new();
    let base = world.head();
    let to = next(&world, &base);
    let repo = world.repo();
    world.write("users", "x");
    let moved = world.commit("the user's");
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::Moved { now: Some(moved.clone()) });
    world.git(&["checkout", "-q", "-b", "other", base.as_str()]);
    let other = Landing::OtherBranch { now: Some("refs/heads/other".into()) };
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), other);
    assert_eq!(repo.land_ff(None, &base, &to).unwrap(), other);
    assert_eq!(world.git(&["rev-parse", "main"]), moved.as_str());
    world.git(&["checkout", "-q", "--detach"]);
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::OtherBranch { now: None });
    assert_eq!(repo.land_ff(None, &base, &to).unwrap(), Landing::Done);
    assert_eq!(world.head(), to);
    assert_eq!(world.git(&["rev-parse", "main"]), moved.as_str());
}

#[test]
fn what_the_user_has_changed_is_not_overwritten() {
    for (path, text, stage) in [
        ("a.txt", "the user's\n", false),
        ("a.txt", "the user's\n", true),
        ("dir/b.txt", "the user's\n", false),
        ("tab\there", "untracked\n", false),
        ("link", "a file\n", false),
    ] {
        let world = World::new();
        let base = world.head();
        let to = next(&world, &base);
        world.write(path, text);
        if stage {
            world.git(&["add", "--", path]);
        }
        let before = world.status();
        let landing = world.repo().land_ff(MAIN, &base, &to).unwrap();
        let Landing::Refused { files, .. } = landing else { panic!("{path}: {landing:?}") };
        assert_eq!(files, [PathBuf::from(path)]);
        assert_eq!((world.read(path).as_str(), world.head()), (text, base));
        assert_eq!(world.status(), before);
    }
}

#[test]
fn an_ignored_file_of_the_users_is_not_overwritten() {
    let world = World::new();
    let base = world.head();
    let to = world.worked(&base, "next", |path| {
        write(&path.join(".gitignore"), "");
        write(&path.join("x.log"), "theirs");
    });
    world.write("x.log", "the user's");
    let landing = world.repo().land_ff(MAIN, &base, &to).unwrap();
    assert!(matches!(landing, Landing::Refused { .. }), "{landing:?}");
    assert_eq!(world.read("x.log"), "the user's");
}

#[test]
fn changes_elsewhere_stay_and_do_not_hinder() {
    let world = World::new();
    world.write("PLAN.md", "- [ ] x\n");
    let base = world.commit("plan");
    let to = next(&world, &base);
    world.write("PLAN.md", "- [x] x\n");
    assert_eq!(world.repo().land_ff(MAIN, &base, &to).unwrap(), Landing::Done);
    assert_eq!(world.status(), " M PLAN.md");
}

#[test]
fn a_landing_that_was_cut_off_is_completed() {
    let world = World::new();
    let base = world.head();
    let to = next(&world, &base);
    let repo = world.repo();
    // Killed while it wrote files: some are there, the index and the branch are as before.
    world.write("a.txt", "changed\n");
    world.write("a space", "x\n");
    std::fs::remove_file(world.root.join("dir/b.txt")).unwrap();
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::Done);
    assert_eq!((world.head(), world.status().as_str()), (to.clone(), ""));
    // Killed between the index and the branch.
    world.git(&["update-ref", "refs/heads/main", base.as_str()]);
    assert_ne!(world.status(), "");
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::Done);
    assert_eq!((world.head(), world.status().as_str()), (to, ""));
}

#[test]
fn a_merge_of_the_users_is_not_disturbed() {
    let world = World::new();
    let base = world.head();
    world.git(&["checkout", "-q", "-b", "other"]);
    world.write("other", "x");
    world.commit("other");
    world.git(&["checkout", "-q", "main"]);
    let to = next(&world, &base);
    world.git(&["merge", "-q", "--no-commit", "--no-ff", "other"]);
    let landing = world.repo().land_ff(MAIN, &base, &to).unwrap();
    assert!(matches!(landing, Landing::Refused { .. }), "{landing:?}");
    assert!(world.root.join(".git/MERGE_HEAD").exists());
}

#[test]
fn a_user_with_settings_of_their_own_gets_a_fast_forward() {
    let world = World::new();
    for (name, value) in
        [("merge.ff", "no"), ("branch.main.mergeOptions", "--squash"), ("merge.autoStash", "true")]
    {
        world.git(&["config", name, value]);
    }
    let base = world.head();
    let to = next(&world, &base);
    assert_eq!(world.repo().land_ff(MAIN, &base, &to).unwrap(), Landing::Done);
    assert_eq!((world.head(), world.status().as_str()), (to, ""));
}

#[test]
fn a_git_that_is_killed_while_it_lands_is_run_again() {
    let world = World::new();
    world.write("m.deadly", "old\n");
    world.write(".gitattributes", "*.deadly filter=deadly\n");
    let base = world.commit("deadly");
    let to = world.worked(&base, "next", |path| {
        for name in ["a.txt", "m.deadly", "new", "z.txt"] {
            write(&path.join(name), "new\n");
        }
    });
    let repo = world.repo();
    world.kill_checkouts();
    let killed = repo.land_ff(MAIN, &base, &to);
    assert!(matches!(killed, Err(GitError::Locked { .. })), "{killed:?}");
    assert_eq!(world.head(), base);
    world.survive();
    // Nobody can tell this lock from one of the user's.
    let locked = repo.land_ff(MAIN, &base, &to).unwrap_err();
    assert!(matches!(&locked, GitError::Locked { file } if file.ends_with("index.lock")), "{locked}");
    std::fs::remove_file(world.root.join(".git/index.lock")).unwrap();
    std::fs::remove_file(world.root.join("z.txt")).unwrap_or_default();
    world.write("m.deadly", "ne");
    assert_eq!(repo.land_ff(MAIN, &base, &to).unwrap(), Landing::Done);
    assert_eq!((world.head(), world.status().as_str()), (to, ""));
    assert!(!world.root.join(".git/backstop-landing").exists());
}

#[test]
fn what_a_killed_git_wrote_of_another_commit_is_taken_back() {
    let world = World::new();
    let base = world.head();
    let first = world.worked(&base, "first", |path| {
        write(&path.join("a.txt"), "first\n");
        write(&path.join("new"), "a line that is cut off\n");
    });
    let to = world.worked(&first, "second", |path| write(&path.join("new"), "another\n"));
    // The first landing was ended by a signal, as its note says, and it has written some.
    write(&world.root.join(".git/backstop-landing"), format!("{base} {first}\n"));
    world.write("a.txt", "first\n");
    world.write("new", "a line th");
    assert_eq!(world.repo().land_ff(MAIN, &base, &to).unwrap(), Landing::Done);
    assert_eq!((world.read("new").as_str(), world.status().as_str()), ("another\n", ""));
}

#[test]
fn a_file_that_the_user_deleted_stays_deleted() {
    let world = World::new();
    let base = world.head();
    let to = next(&world, &base);
    std::fs::remove_file(world.root.join("a.txt")).unwrap();
    let landing = world.repo().land_ff(MAIN, &base, &to).unwrap();
    assert!(matches!(landing, Landing::Refused { .. }), "{landing:?}");
    assert!(!world.root.join("a.txt").exists());
}

#[test]
fn a_worktree_of_the_users_is_a_repository_like_any_other() {
    let mut world = World::new();
    let users = world.top.join("users worktree");
    world.git(&["worktree", "add", "-q", "-b", "side", users.to_str().unwrap()]);
    world.root = users;
    let base = world.head();
    let to = next(&world, &base);
    assert_eq!(world.repo().land_ff(Some("refs/heads/side"), &base, &to).unwrap(), Landing::Done);
    assert_eq!((world.head(), world.status().as_str()), (to, ""));
    assert_eq!(world.git(&["rev-parse", "main"]), base.as_str());
}
