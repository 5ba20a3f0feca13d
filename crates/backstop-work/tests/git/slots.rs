use crate::world::{World, write};
use backstop_work::git::{GitError, ProvidedHow};
use std::path::{Path, PathBuf};

#[test]
fn a_slot_is_made_once_and_opened_again() {
    let world = World::new();
    world.hook("post-checkout", "touch \"$HOME/hook-ran\"");
    let (base, repo) = (world.head(), world.repo());
    let path = world.top.join("slots/0");
    let slot = repo.add_slot(&path, &base, "run r-7f3a").unwrap();
    assert!(!slot.was_there());
    assert!(!world.top.join("hook-ran").exists());
    assert!(world.git(&["worktree", "list", "--porcelain"]).contains("locked run r-7f3a"));
    assert_eq!(slot.tree_hash().unwrap(), repo.tree_of(&base).unwrap());
    write(&path.join("work"), "unsaved");
    let again = repo.add_slot(&path, &base, "run r-7f3b").unwrap();
    assert!(again.was_there());
    assert!(path.join("work").exists());
    assert_eq!(world.status(), "");
}

#[test]
fn what_is_not_ours_is_not_taken() {
    let world = World::new();
    let (base, repo) = (world.head(), world.repo());
    let path = world.top.join("slots/0");
    write(&path.join("precious"), "x");
    assert!(matches!(repo.add_slot(&path, &base, "r"), Err(GitError::NotOurs { .. })));
    let users = world.top.join("users");
    world.git(&["worktree", "add", "-q", "--detach", users.to_str().unwrap()]);
    assert!(matches!(repo.add_slot(&users, &base, "r"), Err(GitError::NotOurs { .. })));
    let other = World::new();
    let slot = other.slot(&other.head());
    assert!(matches!(repo.add_slot(slot.path(), &base, "r"), Err(GitError::NotOurs { .. })));
    assert!(matches!(repo.add_slot(&world.root, &base, "r"), Err(GitError::NotOurs { .. })));
    assert_eq!(std::fs::read_to_string(path.join("precious")).unwrap(), "x");
}

/// What `git worktree add` leaves when it is killed at each of its steps.
#[test]
fn a_slot_that_a_crash_left_half_made_is_completed() {
    type Break = fn(&Path, &Path);
    let breaks: [(&str, Break); 6] = [
        ("the folder is gone", |path, _| std::fs::remove_dir_all(path).unwrap()),
        ("the folder is empty", |path, _| {
            std::fs::remove_dir_all(path).unwrap();
            std::fs::create_dir(path).unwrap();
        }),
        ("nothing is checked out", |path, admin| {
            std::fs::remove_file(path.join("a.txt")).unwrap();
            std::fs::remove_file(admin.join("index")).unwrap();
        }),
        ("no head", |_, admin| {
            std::fs::remove_file(admin.join("index")).unwrap();
            std::fs::remove_file(admin.join("HEAD")).unwrap();
        }),
        ("no way back", |_, admin| {
            std::fs::remove_file(admin.join("HEAD")).unwrap();
            std::fs::remove_file(admin.join("commondir")).unwrap();
        }),
        ("the index is locked", |path, admin| {
            std::fs::remove_file(path.join("a.txt")).unwrap();
            std::fs::rename(admin.join("index"), admin.join("index.lock")).unwrap();
        }),
    ];
    for (what, break_it) in breaks {
        let world = World::new();
        let (base, repo) = (world.head(), world.repo());
        let path = world.top.join("slots/0");
        let admin = repo.add_slot(&path, &base, "run").unwrap().git_dir().to_owned();
        std::fs::remove_file(admin.join("backstop-slot")).unwrap();
        break_it(&path, &admin);
        let slot = repo.add_slot(&path, &base, "run").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(slot.tree_hash().unwrap(), repo.tree_of(&base).unwrap(), "{what}");
        assert_eq!(slot.head().unwrap(), Some(base), "{what}");
        assert_eq!(world.git_in(&path, &["status", "--porcelain"]), "", "{what}");
        assert_eq!(world.git(&["worktree", "list"]).lines().count(), 2, "{what}");
    }
}

#[test]
fn a_slot_whose_folder_is_gone_leaves_its_commits_and_nobody_elses_worktree_is_pruned() {
    let world = World::new();
    let (base, repo) = (world.head(), world.repo());
    let users = world.top.join("on another disk");
    world.git(&["worktree", "add", "-q", "--detach", users.to_str().unwrap()]);
    std::fs::rename(&users, world.top.join("unmounted")).unwrap();
    let slot = world.slot(&base);
    write(&slot.path().join("own"), "x");
    let own = world.commit_in(slot.path(), "own commit");
    std::fs::remove_dir_all(slot.path()).unwrap();
    let slot = world.slot(&base);
    assert_eq!(slot.head().unwrap(), Some(base));
    assert_eq!(repo.read_ref(&format!("refs/backstop/kept/{own}")).unwrap(), Some(own));
    assert!(world.git(&["worktree", "list"]).contains("on another disk"));
}

#[test]
fn a_slot_survives_its_repository_being_moved() {
    let mut world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    write(&slot.path().join("work"), "x");
    let moved = world.top.join("moved");
    std::fs::rename(&world.root, &moved).unwrap();
    world.root = moved;
    let again = world.slot(&base);
    assert!(again.was_there() && again.path().join("work").exists());
}

#[test]
fn a_slot_is_reset_only_when_everything_is_saved() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    write(&path.join("new"), "x");
    write(&path.join("ignored/cache"), "warm");
    std::fs::remove_file(path.join("a.txt")).unwrap();
    let refused = slot.reset_to(&base, None).unwrap_err();
    assert!(matches!(&refused, GitError::NotSaved { files, .. } if files.len() == 2), "{refused}");
    assert!(path.join("new").exists());
    let saved = slot.save(&base, "refs/backstop/r-0001/a/1", "m").unwrap();
    write(&path.join("newer"), "after the save");
    assert!(matches!(slot.reset_to(&base, Some(&saved.sha)), Err(GitError::NotSaved { .. })));
    std::fs::remove_file(path.join("newer")).unwrap();
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
    assert!(!path.join("new").exists() && path.join("a.txt").exists());
    assert_eq!(std::fs::read_to_string(path.join("ignored/cache")).unwrap(), "warm");
    slot.reset_to(&base, None).unwrap();
}

#[test]
fn a_commit_that_is_saved_nowhere_is_not_left_behind() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    write(&slot.path().join("own"), "x");
    let own = world.commit_in(slot.path(), "own");
    assert!(matches!(slot.reset_to(&base, None), Err(GitError::HeadNotSaved { head, .. }) if head == own));
    let saved = slot.save(&base, "refs/backstop/r-0001/a/1", "m").unwrap();
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
}

#[test]
fn whatever_was_begun_in_a_slot_is_ended_and_no_branch_moves() {
    for begun in ["merge", "rebase", "cherry-pick", "bisect", "branch", "orphan"] {
        let world = World::new();
        let base = world.head();
        world.write("a.txt", "theirs\n");
        let theirs = world.commit("theirs");
        let slot = world.slot(&base);
        let path = slot.path().to_owned();
        world.git_in(&path, &["checkout", "-q", "-b", "agent"]);
        write(&path.join("a.txt"), "mine\n");
        let mine = world.commit_in(&path, "mine");
        match begun {
            "bisect" => drop(world.git_in(&path, &["bisect", "start", "HEAD", base.as_str()])),
            "orphan" => drop(world.git_in(&path, &["checkout", "-q", "--orphan", "new"])),
            "branch" => {}
            _ => drop(world.try_git(&path, &[begun, theirs.as_str()])),
        }
        std::fs::write(slot.git_dir().join("index.lock"), "").unwrap();
        let saved = slot.save(&base, "refs/backstop/r-0001/a/1", "m").unwrap();
        slot.reset_to(&theirs, Some(&saved.sha)).unwrap_or_else(|error| panic!("{begun}: {error}"));
        let status = world.git_in(&path, &["status"]);
        assert!(
            status.contains("HEAD detached") && status.contains("nothing to commit"),
            "{begun}: {status}"
        );
        assert!(!status.contains("progress") && !status.contains("bisecting"), "{begun}: {status}");
        assert_eq!(world.git(&["rev-parse", "agent"]), mine.as_str(), "{begun}");
        assert_eq!(slot.head().unwrap(), Some(theirs));
    }
}

#[test]
fn a_lock_in_a_slot_stays_while_somebody_works_there() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    let lock = slot.git_dir().join("index.lock");
    std::fs::write(&lock, "").unwrap();
    let mut child = std::process::Command::new("sleep").arg("100").current_dir(slot.path()).spawn().unwrap();
    let refused = slot.reset_to(&base, None);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(refused, Err(GitError::InUse { .. })), "{refused:?}");
    slot.reset_to(&base, None).unwrap();
    assert!(!lock.exists());
}

#[test]
fn a_repository_inside_a_slot_is_put_aside_and_not_deleted() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    let nested = slot.path().join("deep/nested");
    for folder in [&nested, &slot.path().join("empty")] {
        write(&folder.join("precious"), "x");
        world.git_in(folder, &["init", "-q"]);
    }
    world.commit_in(&nested, "in the nested one");
    let saved = slot.save(&base, "refs/backstop/r-0001/a/1", "m").unwrap();
    assert_eq!(saved.unsaved, [PathBuf::from("deep/nested"), PathBuf::from("empty/")]);
    let reset = slot.reset_to(&base, Some(&saved.sha)).unwrap();
    assert_eq!(reset.put_aside.len(), 2);
    for aside in &reset.put_aside {
        assert_eq!(std::fs::read_to_string(aside.join("precious")).unwrap(), "x");
    }
    assert!(!nested.exists());
}

#[test]
fn a_slot_is_removed_only_when_it_is_clean() {
    let world = World::new();
    let (base, repo) = (world.head(), world.repo());
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    write(&path.join("ignored/cache"), "x");
    write(&path.join("work"), "x");
    let refused = repo.remove_slot(slot).unwrap_err();
    assert!(
        matches!(&refused, GitError::NotClean { files, .. } if files == &[PathBuf::from("work")]),
        "{refused}"
    );
    assert!(world.git(&["worktree", "list", "--porcelain"]).contains("locked backstop test"));
    std::fs::remove_file(path.join("work")).unwrap();
    write(&path.join("own"), "x");
    let own = world.commit_in(&path, "own");
    let refused = repo.remove_slot(world.slot(&base)).unwrap_err();
    assert!(matches!(refused, GitError::HeadNotSaved { .. }));
    world.git(&["branch", "kept", own.as_str()]);
    repo.remove_slot(world.slot(&base)).unwrap();
    assert!(!path.exists());
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn what_a_worktree_needs_is_provided_and_never_saved() {
    let world = World::new();
    world.write(".env", "SECRET=1\n");
    world.write("node_modules/x/index.js", "x");
    world.write("config/local.json", "{}");
    let (base, repo) = (world.head(), world.repo());
    let mut slot = world.slot(&base);
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let link = names(&["node_modules", "missing", "../up", "a.txt"]);
    let copy = names(&[".env", "config/local.json", "node_modules"]);
    let notes = slot.provide(&world.root, &link, &copy).unwrap();
    let how: Vec<ProvidedHow> = notes.into_iter().map(|note| note.how).collect();
    use ProvidedHow::{Copied, Linked, Missing, NotBelow, Tracked, WasThere};
    assert_eq!(how, [Linked, Missing, NotBelow, Tracked, Copied, Copied, WasThere]);
    let saved = slot.save(&base, "refs/backstop/r-0001/a/1", "m").unwrap();
    assert_eq!(saved.changed, []);
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
    assert!(slot.path().join("node_modules/x/index.js").exists());
    assert!(slot.path().join(".env").exists());
    // After a crash it is provided again, and still known not to be work.
    let mut slot = world.slot(&base);
    slot.provide(&world.root, &link, &copy).unwrap();
    assert_eq!(slot.tree_hash().unwrap(), repo.tree_of(&base).unwrap());
    let path = slot.path().to_owned();
    repo.remove_slot(slot).unwrap();
    assert!(!path.exists());
    assert_eq!(world.read("node_modules/x/index.js"), "x");
}

#[test]
fn nothing_is_provided_through_a_link() {
    let world = World::new();
    world.write("config/local.json", "{}");
    let mut slot = world.slot(&world.head());
    let outside = world.top.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, slot.path().join("config")).unwrap();
    let notes = slot.provide(&world.root, &["config/local.json".to_owned()], &[]).unwrap();
    assert!(matches!(notes[0].how, ProvidedHow::Failed(_)), "{notes:?}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_git_that_is_killed_while_it_makes_a_slot_is_no_obstacle() {
    let world = World::new();
    for n in 0..20 {
        world.write(format!("{n}.txt"), "x\n");
    }
    world.write("5.deadly", "x\n");
    world.write(".gitattributes", "*.deadly filter=deadly\n");
    let (base, repo) = (world.commit("files"), world.repo());
    let path = world.top.join("slots/0");
    world.kill_checkouts();
    for _ in 0..2 {
        let killed = repo.add_slot(&path, &base, "run").unwrap_err();
        assert!(matches!(killed, GitError::Failed { .. }), "{killed}");
    }
    world.survive();
    let slot = repo.add_slot(&path, &base, "run").unwrap();
    assert_eq!(slot.tree_hash().unwrap(), repo.tree_of(&base).unwrap());
    assert_eq!(world.git_in(&path, &["status", "--porcelain"]), "");
}

#[test]
fn four_slots_are_made_worked_in_and_saved_at_once() {
    let world = World::new();
    let (base, repo) = (world.head(), world.repo());
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (world, base, repo) = (&world, &base, &repo);
            scope.spawn(move || {
                let slot = repo.add_slot(&world.top.join(format!("slots/{n}")), base, "run").unwrap();
                write(&slot.path().join("work"), format!("{n}"));
                let saved = slot.save(base, &format!("refs/backstop/r-0001/p{n}/1"), "m").unwrap();
                assert_eq!(world.show(&saved.sha, "work"), Some(n.to_string()));
                slot.reset_to(base, Some(&saved.sha)).unwrap();
                repo.remove_slot(slot).unwrap();
            });
        }
    });
    assert_eq!(repo.runs_refs("r-0001".parse().unwrap()).unwrap().len(), 4);
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
}
