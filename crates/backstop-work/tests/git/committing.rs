use crate::world::{World, hostile_names, write};
use backstop_work::git::{CommitTrouble, GitError, Sha};
use std::ffi::OsString;

const REF: &str = "refs/backstop/r-0001/a/1";

/// A slot with saved work in it, as it is after an attempt.
fn attempted(world: &World) -> (backstop_work::git::Slot, Sha, backstop_work::git::Saved) {
    let base = world.head();
    let slot = world.slot(&base);
    write(&slot.path().join("work"), "x\n");
    std::fs::remove_file(slot.path().join("dir/b.txt")).unwrap();
    let saved = slot.save(&base, REF, "attempt").unwrap();
    (slot, base, saved)
}

#[test]
fn a_tree_is_committed_with_hooks_and_nothing_is_left() {
    let world = World::new();
    world.hook("commit-msg", "echo 'Reviewed-by: hook' >> \"$1\"");
    let (slot, base, saved) = attempted(&world);
    let message = "subject\n\n# not a comment\n  indented\n\n\n";
    let made = world.repo().commit_in(&slot, &saved.tree, &base, message).unwrap();
    assert_eq!((&made.tree, made.changed_by_hook), (&saved.tree, false));
    let raw = world.git(&["cat-file", "commit", made.sha.as_str()]);
    assert!(raw.ends_with("subject\n\n# not a comment\n  indented\n\n\nReviewed-by: hook"), "{raw}");
    assert_eq!(world.git(&["rev-parse", &format!("{}^", made.sha)]), base.as_str());
    assert_eq!(world.git_in(slot.path(), &["status", "--porcelain"]), "");
    assert_eq!(world.head(), base);
    slot.reset_to(&base, None).unwrap();
    let again = world.repo().commit_in(&slot, &saved.tree, &base, message).unwrap();
    assert_eq!(again.tree, saved.tree);
}

#[test]
fn a_hook_that_says_no_is_told_and_the_work_is_still_there() {
    let world = World::new();
    world.hook("pre-commit", "echo 'lint: work:1 \\033[31mbad' >&2; touch litter; exit 1");
    let (slot, base, saved) = attempted(&world);
    let trouble = world.repo().commit_in(&slot, &saved.tree, &base, "m").unwrap_err();
    let CommitTrouble::Hook { output } = &trouble else { panic!("{trouble:?}") };
    assert!(output.raw().contains("lint: work:1"), "{output}");
    assert!(!trouble.hint().is_empty());
    assert_eq!(slot.tree_hash().unwrap(), saved.tree);
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
}

#[test]
fn what_a_hook_makes_of_the_files_is_committed() {
    let world = World::new();
    world.hook("pre-commit", "echo formatted > work; git add work; echo litter > a.txt; touch more-litter");
    let (slot, base, saved) = attempted(&world);
    let made = world.repo().commit_in(&slot, &saved.tree, &base, "m").unwrap();
    assert!(made.changed_by_hook && made.tree != saved.tree);
    assert_eq!(world.show(&made.sha, "work").as_deref(), Some("formatted\n"));
    assert_eq!(world.show(&made.sha, "a.txt").as_deref(), Some("one\ntwo\nthree\n"));
    assert_eq!(slot.tree_hash().unwrap(), made.tree);
}

#[test]
fn no_change_no_name_and_no_signature_are_told_apart() {
    let mut world = World::new();
    let (slot, base, saved) = attempted(&world);
    let repo = world.repo();
    let same = repo.tree_of(&base).unwrap();
    assert_eq!(repo.commit_in(&slot, &same, &base, "m"), Err(CommitTrouble::NoChange));
    world.git(&["config", "gpg.program", "false"]);
    world.git(&["config", "commit.gpgSign", "true"]);
    let trouble = repo.commit_in(&slot, &saved.tree, &base, "m").unwrap_err();
    assert!(matches!(trouble, CommitTrouble::Signing { .. }), "{trouble:?}");
    world.git(&["config", "commit.gpgSign", "false"]);
    world.env.retain(|(name, _)| {
        !name.to_string_lossy().contains("_NAME") && !name.to_string_lossy().contains("_EMAIL")
    });
    world.git(&["config", "user.useConfigOnly", "true"]);
    let trouble = world.repo().commit_in(&world.slot(&base), &saved.tree, &base, "m").unwrap_err();
    assert!(matches!(trouble, CommitTrouble::Identity { .. }), "{trouble:?}");
    repo.commit_in(&slot, &saved.tree, &base, "m").unwrap();
}

#[test]
fn nothing_is_committed_over_work_that_is_not_saved() {
    let world = World::new();
    let (slot, base, saved) = attempted(&world);
    write(&slot.path().join("newer"), "x");
    let trouble = world.repo().commit_in(&slot, &saved.tree, &base, "m").unwrap_err();
    assert!(matches!(trouble, CommitTrouble::Git(GitError::NotSaved { .. })), "{trouble:?}");
    assert!(slot.path().join("newer").exists());
}

#[test]
fn half_a_merge_does_not_become_a_merge_commit_and_the_plan_is_not_in_it() {
    let world = World::new();
    world.write("PLAN.md", "- [ ] x\n");
    let base = world.commit("plan");
    world.write("theirs", "x");
    let theirs = world.commit("theirs");
    let mut slot = world.slot(&base);
    slot.exclude(&["PLAN.md".into()]);
    let path = slot.path().to_owned();
    write(&path.join("mine"), "x");
    world.commit_in(&path, "mine");
    world.git_in(&path, &["merge", "-q", "--no-commit", "--no-ff", theirs.as_str()]);
    write(&path.join("PLAN.md"), "- [x] x\n");
    let saved = slot.save(&base, REF, "m").unwrap();
    let made = world.repo().commit_in(&slot, &saved.tree, &base, "m").unwrap();
    assert_eq!(world.git(&["show", "-s", "--format=%P", made.sha.as_str()]), base.as_str());
    assert_eq!(world.show(&made.sha, "PLAN.md").as_deref(), Some("- [ ] x\n"));
}

#[test]
fn exactly_these_paths_are_committed_and_the_users_stay_staged() {
    let world = World::new();
    for name in hostile_names() {
        world.write(&name, "old\n");
    }
    world.write("users", "old");
    world.write("gone", "x");
    world.write("staged-gone", "x");
    world.commit("names");
    let mut paths = hostile_names();
    for name in &paths {
        world.write(name, "new\n");
    }
    paths.extend(["created", "gone", "staged-gone", "unchanged?", "x.log", "a.txt"].map(OsString::from));
    world.write("created", "x");
    world.write("x.log", "ignored");
    std::fs::remove_file(world.root.join("gone")).unwrap();
    world.git(&["rm", "-q", "staged-gone"]);
    world.write("users", "staged");
    world.git(&["add", "users"]);
    world.write("users-untracked", "x");
    let made = world.repo().commit_paths(&paths, "all of them\n").unwrap();
    let changed = world.repo().changed_paths(&world.git(&["rev-parse", "HEAD^"]).parse().unwrap(), &made.sha);
    assert_eq!(changed.unwrap().len(), hostile_names().len() + 3);
    assert_eq!(world.status(), "M  users\n?? users-untracked");
    assert!(!world.root.join("pwned").exists());
    assert_eq!(world.repo().commit_paths(&paths, "again"), Err(CommitTrouble::NoChange));
}

#[test]
fn a_hook_that_says_no_leaves_the_users_index_as_it_was() {
    let world = World::new();
    world.hook("pre-commit", "echo no; exit 1");
    world.write("new", "x");
    world.write("a.txt", "changed");
    let before = world.status();
    let trouble = world.repo().commit_paths(&["new".into(), "a.txt".into()], "m").unwrap_err();
    assert!(matches!(trouble, CommitTrouble::Hook { .. }), "{trouble:?}");
    assert_eq!(world.status(), before);
}

#[test]
fn the_first_commit_of_a_repository_is_made() {
    let world = World::unborn();
    world.write("a", "x");
    world.write("b", "x");
    let made = world.repo().commit_paths(&["a".into()], "first").unwrap();
    assert_eq!(world.head(), made.sha);
    assert_eq!(world.status(), "?? b");
}
