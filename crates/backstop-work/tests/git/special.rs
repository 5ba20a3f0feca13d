//! Repositories that are not just files: submodules, sparse checkouts, filters that are not
//! installed.

use crate::world::{World, write};
use backstop_work::git::{Applied, Changed, How, Landing};
use std::path::{Path, PathBuf};

const REF: &str = "refs/backstop/r-0001/1/1";

/// A repository with a submodule at `lib`, which has one at `deep`.
fn with_submodules() -> (World, World, World) {
    let (deep, library, world) = (World::new(), World::new(), World::new());
    library.git(&["submodule", "add", "-q", deep.root.to_str().unwrap(), "deep"]);
    library.commit("with a submodule");
    world.git(&["submodule", "add", "-q", library.root.to_str().unwrap(), "lib"]);
    world.git(&["submodule", "update", "-q", "--init", "--recursive"]);
    world.commit("with submodules");
    (world, library, deep)
}

#[test]
fn submodules_are_in_a_slot_and_what_is_written_there_lands_in_them() {
    let (world, _library, _deep) = with_submodules();
    let (base, repo) = (world.head(), world.repo());
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    for file in ["lib/a.txt", "lib/deep/a.txt"] {
        assert_eq!(std::fs::read_to_string(path.join(file)).unwrap(), "one\ntwo\nthree\n", "{file}");
    }
    assert_eq!(slot.tree_hash().unwrap(), repo.tree_of(&base).unwrap(), "nothing has changed");
    write(&path.join("lib/inside"), "x\n");
    write(&path.join("lib/deep/a.txt"), "deep\n");
    write(&path.join("own"), "y\n");
    let saved = slot.save(&base, REF, "work").unwrap();
    assert_eq!(saved.unsaved, Vec::<PathBuf>::new());
    let changed: Vec<(&str, How)> = saved.changed.iter().map(|c| (c.path.to_str().unwrap(), c.how)).collect();
    assert_eq!(changed, [("lib", How::Modified), ("own", How::Added)]);
    assert_eq!(slot.save(&base, REF, "work").unwrap().tree, saved.tree, "the same again is the same");
    let made = repo.commit_in(&slot, &saved.tree, &base, "phase").unwrap();
    assert_eq!(made.tree, saved.tree);
    assert_eq!(slot.tree_hash().unwrap(), saved.tree, "the submodules are at what was committed");
    assert_eq!(repo.land_ff(Some("refs/heads/main"), &base, &made.sha).unwrap(), Landing::Done);
    assert_eq!((world.read("lib/inside"), world.read("lib/deep/a.txt")), ("x\n".into(), "deep\n".into()));
    assert_eq!(world.status(), "", "nothing is left over");
    // The next attempt begins from there; an earlier one is put back as it was.
    slot.reset_to(&base, Some(&made.sha)).unwrap();
    assert!(!path.join("lib/inside").exists());
    slot.reset_to(&made.sha, None).unwrap();
    assert_eq!(std::fs::read_to_string(path.join("lib/inside")).unwrap(), "x\n");
    repo.remove_slot(slot).unwrap();
    assert!(!path.exists());
    let lib = world.root.join("lib");
    assert_eq!(world.git_in(&lib, &["worktree", "list"]).lines().count(), 1, "no worktree is left behind");
}

#[test]
fn what_is_in_a_submodule_is_not_thrown_away_unsaved() {
    let (world, _library, _deep) = with_submodules();
    let base = world.head();
    let slot = world.slot(&base);
    write(&slot.path().join("lib/inside"), "x\n");
    assert!(slot.reset_to(&base, None).is_err());
    assert!(slot.path().join("lib/inside").exists());
    let saved = slot.save(&base, REF, "m").unwrap();
    slot.reset_to(&base, Some(&saved.sha)).unwrap();
    assert!(!slot.path().join("lib/inside").exists());
    let kept = world.git(&["ls-tree", saved.sha.as_str(), "lib"]);
    let sha = kept.split_whitespace().nth(2).unwrap();
    assert_eq!(world.git_in(&world.root.join("lib"), &["show", &format!("{sha}:inside")]), "x");
}

#[test]
fn work_in_a_submodule_is_put_into_the_users_tree_uncommitted() {
    let (world, _library, _deep) = with_submodules();
    let base = world.head();
    let tip = world.worked(&base, "tip", |path| write(&path.join("lib/inside"), "x\n"));
    let applied = world.repo().apply_tree(&base, &tip, &[]).unwrap();
    assert_eq!(applied, Applied::Done { paths: vec!["lib".into()], nested: vec![] });
    assert_eq!((world.read("lib/inside").as_str(), world.status().as_str()), ("x\n", " M lib"));
}

/// A sparse checkout of `in`, beside `out`.
fn sparse() -> World {
    let world = World::new();
    world.write("in/a", "a\n");
    world.write("out/b", "b\n");
    world.commit("two folders");
    world.git(&["sparse-checkout", "set", "--cone", "in"]);
    assert!(!world.root.join("out").exists());
    world
}

#[test]
fn a_slot_of_a_sparse_checkout_is_as_sparse_and_keeps_what_is_written_outside() {
    let world = sparse();
    let (base, repo) = (world.head(), world.repo());
    let slot = world.slot(&base);
    let path = slot.path().to_owned();
    assert!(path.join("in/a").exists() && !path.join("out").exists());
    for round in 0..2 {
        assert_eq!(slot.tree_hash().unwrap(), repo.tree_of(&base).unwrap(), "round {round}");
    }
    write(&path.join("in/a"), "changed\n");
    write(&path.join("out/b"), "written though it was not there\n");
    write(&path.join("out/c"), "new\n");
    let saved = slot.save(&base, REF, "m").unwrap();
    let changed: Vec<&str> = saved.changed.iter().map(|c| c.path.to_str().unwrap()).collect();
    assert_eq!(changed, ["in/a", "out/b", "out/c"]);
    let made = repo.commit_in(&slot, &saved.tree, &base, "phase").unwrap();
    assert_eq!(made.tree, saved.tree);
    assert_eq!(repo.land_ff(Some("refs/heads/main"), &base, &made.sha).unwrap(), Landing::Done);
    assert_eq!(world.read("in/a"), "changed\n");
    assert!(!world.root.join("out").exists(), "the user's tree is as sparse as it was");
    assert_eq!(world.status(), "");
    slot.reset_to(&base, Some(&made.sha)).unwrap();
    assert_eq!(slot.tree_hash().unwrap(), repo.tree_of(&base).unwrap());
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";

/// A repository with a pointer of LFS, by somebody who has the filter's settings and not its
/// program.
fn without_lfs(required: bool) -> World {
    let world = World::new();
    world.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    world.write("large.bin", POINTER);
    world.commit("a pointer");
    let filter = |name: &str, value: &str| world.git(&["config", &format!("filter.lfs.{name}"), value]);
    filter("clean", "no-git-lfs-here clean -- %f");
    filter("smudge", "no-git-lfs-here smudge -- %f");
    filter("process", "no-git-lfs-here filter-process");
    filter("required", if required { "true" } else { "false" });
    world
}

#[test]
fn pointers_stay_pointers_where_the_filters_program_is_missing() {
    for required in [true, false] {
        let world = without_lfs(required);
        let (base, repo) = (world.head(), world.repo());
        assert_eq!(repo.missing_filters(), ["lfs"]);
        let slot = world.slot(&base);
        assert_eq!(std::fs::read_to_string(slot.path().join("large.bin")).unwrap(), POINTER);
        write(&slot.path().join("a.txt"), "work\n");
        let saved = slot.save(&base, REF, "m").unwrap();
        assert_eq!(saved.changed, [Changed { path: "a.txt".into(), how: How::Modified }]);
        assert_eq!(saved.unfiltered, Vec::<PathBuf>::new());
        let made = repo.commit_in(&slot, &saved.tree, &base, "phase").unwrap();
        assert_eq!(repo.land_ff(Some("refs/heads/main"), &base, &made.sha).unwrap(), Landing::Done);
        assert_eq!((world.read("large.bin").as_str(), world.read("a.txt").as_str()), (POINTER, "work\n"));
    }
}

#[test]
fn a_file_that_needs_a_missing_filter_is_told_and_a_pointer_is_not() {
    let world = without_lfs(true);
    let base = world.head();
    let slot = world.slot(&base);
    write(&slot.path().join("other.bin"), POINTER.replace("12345", "99"));
    assert_eq!(slot.save(&base, REF, "m").unwrap().unfiltered, Vec::<PathBuf>::new());
    write(&slot.path().join("raw.bin"), "twelve bytes");
    assert_eq!(slot.save(&base, REF, "m").unwrap().unfiltered, [Path::new("raw.bin")]);
}

#[test]
fn a_filter_that_is_there_is_used() {
    let world = World::new();
    world.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    world.git(&["config", "filter.upper.smudge", "tr A-Z a-z"]);
    world.write(".gitattributes", "*.up filter=upper\n");
    world.write("x.up", "words\n");
    let base = world.commit("filtered");
    assert_eq!(world.repo().missing_filters(), Vec::<String>::new());
    let slot = world.slot(&base);
    assert_eq!(std::fs::read_to_string(slot.path().join("x.up")).unwrap(), "words\n");
    assert_eq!(slot.tree_hash().unwrap(), world.repo().tree_of(&base).unwrap());
}
