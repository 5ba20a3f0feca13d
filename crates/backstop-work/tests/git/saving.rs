use crate::world::{World, executable, hostile_names, write};
use backstop_work::git::{Changed, How};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const REF: &str = "refs/backstop/r-0001/a/1";

#[test]
fn everything_is_saved_and_nothing_is_touched() {
    let world = World::new();
    world.write("tool", "#!/bin/sh\n");
    let base = world.commit("tool");
    world.hook("pre-commit", "exit 1");
    world.hook("reference-transaction", "exit 1");
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    for name in hostile_names() {
        write(&path.join(name), "x");
    }
    executable(&path.join("tool"));
    symlink("a.txt", path.join("link")).unwrap();
    std::fs::remove_file(path.join("dir/b.txt")).unwrap();
    write(&path.join("a.txt"), "changed");
    write(&path.join("ignored/x"), "x");
    let before = world.git_in(&path, &["status", "--porcelain"]);
    let saved = slot.save(&base, REF, "the message\n\nwith a body").unwrap();
    assert_eq!(world.git_in(&path, &["status", "--porcelain"]), before);
    let how = |name: &str| saved.changed.iter().find(|c| c.path == *name).map(|c| c.how);
    assert_eq!(saved.changed.len(), hostile_names().len() + 4);
    assert_eq!(how("tool"), Some(How::Modified));
    assert_eq!(how("link"), Some(How::Added));
    assert_eq!(how("dir/b.txt"), Some(How::Deleted));
    assert_eq!(how("ignored/x"), None);
    let listed = world.git(&["ls-tree", saved.sha.as_str(), "tool", "link"]);
    assert!(listed.contains("100755") && listed.contains("120000"), "{listed}");
    assert_eq!(saved.head, base);
    assert_eq!(world.git(&["rev-parse", &format!("{REF}^")]), base.as_str());
    assert_eq!(world.git(&["show", "-s", "--format=%an %B", REF]), "Ada the message\n\nwith a body");
    assert_eq!(slot.tree_hash().unwrap(), saved.tree);
}

#[test]
fn saving_again_is_the_same_and_more_work_keeps_what_was_saved() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    write(&slot.path().join("x"), "1");
    let first = slot.save(&base, REF, "m").unwrap();
    assert_eq!(slot.save(&base, REF, "m").unwrap().sha, first.sha);
    write(&slot.path().join("x"), "2");
    let second = slot.save(&base, REF, "m").unwrap();
    assert_ne!(second.sha, first.sha);
    assert!(world.repo().contains(&second.sha, &first.sha).unwrap());
    assert_eq!(slot.save(&base, REF, "m").unwrap().sha, second.sha);
}

#[test]
fn an_agents_own_commits_branches_and_stashes_survive() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    write(&path.join("one"), "1");
    let one = world.commit_in(&path, "own one \u{1b}[31m");
    world.git_in(&path, &["checkout", "-q", "-b", "feature"]);
    write(&path.join("two"), "2");
    let two = world.commit_in(&path, "own two");
    write(&path.join("a.txt"), "stashed\n");
    world.git_in(&path, &["stash", "-q"]);
    write(&path.join("three"), "3");
    let saved = slot.save(&base, REF, "m").unwrap();
    assert_eq!(saved.head, two);
    let own: Vec<_> = saved.own_commits.iter().map(|c| c.sha.clone()).collect();
    assert_eq!(own, [two.clone(), one]);
    assert!(!saved.own_commits[1].subject.to_string().contains('\u{1b}'));
    assert_eq!(saved.changed.len(), 3);
    assert_eq!(world.git(&["rev-parse", &format!("{REF}^")]), two.as_str());
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
    assert!(world.git(&["stash", "list"]).contains("feature"));
    assert_eq!(world.git(&["rev-parse", "feature"]), two.as_str());
}

#[test]
fn work_on_an_older_commit_has_both_as_parents() {
    let world = World::new();
    let old = world.head();
    world.write("later", "x");
    let base = world.commit("later");
    let slot = world.slot(&base);
    world.git_in(slot.path(), &["checkout", "-q", "--detach", old.as_str()]);
    write(&slot.path().join("new"), "x");
    let saved = slot.save(&base, REF, "m").unwrap();
    let parents = world.git(&["show", "-s", "--format=%P", REF]);
    assert_eq!(parents, format!("{base} {old}"));
    let gone = Changed { path: "later".into(), how: How::Deleted };
    assert!(saved.changed.contains(&gone));
    assert_eq!(saved.own_commits, []);
}

#[test]
fn half_a_merge_with_a_broken_or_locked_index_is_saved() {
    for broken in [false, true] {
        let world = World::new();
        let base = world.head();
        world.write("a.txt", "theirs\n");
        let theirs = world.commit("theirs");
        let slot = world.slot(&base);
        let path = slot.path().to_owned();
        write(&path.join("a.txt"), "mine\n");
        world.commit_in(&path, "mine");
        world.try_git(&path, &["merge", theirs.as_str()]);
        write(&path.join("new"), "x");
        if broken {
            std::fs::write(slot.git_dir().join("index"), "garbage").unwrap();
        }
        std::fs::write(slot.git_dir().join("index.lock"), "").unwrap();
        let saved = slot.save(&base, REF, "m").unwrap();
        assert!(world.show(&saved.sha, "a.txt").unwrap().contains("<<<<<<<"));
        assert!(world.show(&saved.sha, "new").is_some());
    }
}

#[test]
fn what_is_excluded_is_in_no_save_whatever_was_done_to_it() {
    let world = World::new();
    world.write("PLAN.md", "- [ ] x\n");
    let base = world.commit("plan");
    let mut slot = world.slot(&base);
    slot.exclude(&[world.root.join("PLAN.md"), PathBuf::from(".backstop")]);
    let path = slot.path().to_owned();
    write(&path.join("PLAN.md"), "- [x] x\n");
    write(&path.join(".backstop/state"), "x");
    write(&path.join("work"), "x");
    world.git_in(&path, &["add", "-A"]);
    let saved = slot.save(&base, REF, "m").unwrap();
    assert_eq!(saved.changed, [Changed { path: "work".into(), how: How::Added }]);
    world.git_in(&path, &["commit", "-q", "-m", "all of it"]);
    std::fs::remove_file(path.join("PLAN.md")).unwrap();
    let saved = slot.save(&base, "refs/backstop/r-0001/a/2", "m").unwrap();
    assert_eq!(saved.changed, [Changed { path: "work".into(), how: How::Added }]);
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
    assert_eq!(std::fs::read_to_string(path.join("PLAN.md")).unwrap(), "- [ ] x\n");
}

#[test]
fn a_change_that_git_was_told_to_overlook_is_saved() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    world.git_in(&path, &["update-index", "--assume-unchanged", "a.txt"]);
    world.git_in(&path, &["update-index", "--skip-worktree", "dir/b.txt"]);
    write(&path.join("a.txt"), "changed");
    write(&path.join("dir/b.txt"), "changed");
    assert_eq!(slot.save(&base, REF, "m").unwrap().changed.len(), 2);
}

#[test]
fn a_forced_ignored_file_is_saved() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    write(&slot.path().join("kept.log"), "x");
    write(&slot.path().join("other.log"), "x");
    world.git_in(slot.path(), &["add", "-f", "kept.log"]);
    let saved = slot.save(&base, REF, "m").unwrap();
    assert_eq!(saved.changed, [Changed { path: "kept.log".into(), how: How::Added }]);
}

#[test]
fn line_ends_of_other_files_stay() {
    for config in ["false", "true", "input"] {
        let world = World::new();
        // Committed with CRLF, and declared to be text only afterwards: git would turn it whenever
        // it looks.
        world.write("crlf.txt", "one\r\ntwo\r\n");
        world.write("auto", "one\r\ntwo\r\n");
        world.write("lf.txt", "one\ntwo\n");
        world.commit("files");
        world.git(&["config", "core.autocrlf", config]);
        write(&world.root.join(".gitattributes"), "*.txt text\n");
        world.git(&["add", ".gitattributes"]);
        world.git(&["commit", "-q", "-m", "attributes"]);
        world.git(&["config", "core.safecrlf", "true"]);
        let base = world.head();
        let slot = world.slot(&base);
        let path = slot.path().to_owned();
        // Whatever makes git look again must not turn anything.
        for name in ["crlf.txt", "auto", "lf.txt"] {
            let bytes = std::fs::read(path.join(name)).unwrap();
            write(&path.join(name), bytes);
        }
        write(&path.join("work"), "x\n");
        let saved = slot.save(&base, REF, "m").unwrap();
        assert_eq!(saved.changed, [Changed { path: "work".into(), how: How::Added }], "autocrlf={config}");
        slot.reset_to(&base, Some(&saved.sha)).unwrap();
        assert_eq!(slot.tree_hash().unwrap(), world.repo().tree_of(&base).unwrap());
    }
}

#[test]
fn a_submodule_that_the_user_has_not_checked_out_is_saved_as_a_link_and_told() {
    let world = World::new();
    let library = World::new();
    world.git(&["submodule", "add", "-q", library.root.to_str().unwrap(), "lib"]);
    let base = world.commit("with a submodule");
    world.git(&["submodule", "deinit", "-q", "-f", "lib"]);
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    let saved = slot.save(&base, REF, "m").unwrap();
    assert_eq!((saved.changed.len(), saved.unsaved.len()), (0, 0));
    world.git_in(&path, &["submodule", "update", "-q", "--init"]);
    write(&path.join("lib/inside"), "x");
    let saved = slot.save(&base, REF, "m").unwrap();
    assert_eq!((saved.changed.len(), saved.unsaved), (0, vec![PathBuf::from("lib")]));
    world.commit_in(&path.join("lib"), "inside");
    let saved = slot.save(&base, REF, "m").unwrap();
    assert_eq!((saved.changed.len(), saved.unsaved), (1, vec![PathBuf::from("lib")]));
}

#[test]
fn backstop_commits_where_git_knows_nobody() {
    let mut world = World::new();
    let base = world.head();
    world.env.retain(|(name, _)| {
        !name.to_string_lossy().contains("_NAME") && !name.to_string_lossy().contains("_EMAIL")
    });
    world.git(&["config", "user.useConfigOnly", "true"]);
    let slot = world.slot(&base);
    write(&slot.path().join("x"), "1");
    slot.save(&base, REF, "m").unwrap();
    assert_eq!(world.git(&["show", "-s", "--format=%an", REF]), "Backstop");
}

#[test]
fn a_repository_with_longer_names_works() {
    let world = World::init(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    world.write("a", "1\n");
    let base = world.commit("first");
    assert_eq!(base.as_str().len(), 64);
    let slot = world.slot(&base);
    write(&slot.path().join("a"), "2\n");
    let saved = slot.save(&base, REF, "m").unwrap();
    assert_eq!(saved.changed, [Changed { path: "a".into(), how: How::Modified }]);
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
}

#[test]
fn a_change_of_the_same_size_in_the_same_moment_is_seen() {
    let world = World::new();
    let base = world.head();
    let slot = world.slot(&base);
    let mut seen = std::collections::HashSet::new();
    for n in 10..40 {
        write(&slot.path().join("a.txt"), format!("{n}\n"));
        world.git_in(slot.path(), &["add", "-A"]);
        write(&slot.path().join("a.txt"), format!("{}\n", n + 50));
        assert!(seen.insert(slot.tree_hash().unwrap()), "{n}");
    }
}
