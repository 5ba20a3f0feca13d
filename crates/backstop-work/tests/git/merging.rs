use crate::world::{World, hostile_names, write};
use backstop_work::git::{ConflictKind, Merged, Sha};
use std::path::Path;

fn conflicts(world: &World, tip: &Sha, work: &Sha) -> Vec<backstop_work::git::Conflict> {
    match world.repo().merge(tip, work).unwrap() {
        Merged::Conflicted(conflicts) => conflicts,
        Merged::Clean(tree) => panic!("clean: {tree}"),
    }
}

#[test]
fn changes_in_other_places_come_together() {
    let world = World::new();
    let base = world.head();
    let one = world.worked(&base, "one", |path| write(&path.join("one"), "1"));
    let two = world.worked(&base, "two", |path| {
        for name in hostile_names() {
            write(&path.join(name), "x");
        }
    });
    let repo = world.repo();
    let Merged::Clean(tree) = repo.merge(&one, &two).unwrap() else { panic!("conflict") };
    assert_eq!(
        repo.changed_paths(&repo.tree_of(&base).unwrap(), &tree).unwrap().len(),
        hostile_names().len() + 1
    );
    assert_eq!(world.status(), "");
}

#[test]
fn every_kind_of_conflict_is_named_with_its_lines() {
    let world = World::new();
    world.write("gone", "x\n");
    world.write("kept", "x\n");
    world.write("café\nnew", (1..=30).map(|n| format!("{n}\n")).collect::<String>());
    let base = world.commit("more");
    let change = |path: &Path, word: &str| {
        let text: String =
            (1..=30).map(|n| if n == 20 { format!("{word}\n") } else { format!("{n}\n") }).collect();
        write(&path.join("café\nnew"), text);
        write(&path.join("added"), format!("{word}\n{word}\n"));
    };
    let tip = world.worked(&base, "tip", |path| {
        change(path, "ours");
        std::fs::remove_file(path.join("gone")).unwrap();
        write(&path.join("kept"), "changed\n");
    });
    let work = world.worked(&base, "work", |path| {
        change(path, "theirs");
        write(&path.join("gone"), "changed\n");
        std::fs::remove_file(path.join("kept")).unwrap();
    });
    let found = conflicts(&world, &tip, &work);
    let told: Vec<_> = found.iter().map(|c| (c.path.to_str().unwrap(), c.kind)).collect();
    let expected = [
        ("added", ConflictKind::AddAdd),
        ("café\nnew", ConflictKind::Content),
        ("gone", ConflictKind::DeletedInTip),
        ("kept", ConflictKind::DeletedInWork),
    ];
    assert_eq!(told, expected);
    assert_eq!((found[0].ours.as_slice(), found[0].theirs.as_slice()), (&[(1, 2)][..], &[(1, 2)][..]));
    assert_eq!((found[1].ours.as_slice(), found[1].theirs.as_slice()), (&[(20, 20)][..], &[(20, 20)][..]));
    let hunks = found[1].hunks.raw();
    assert!(hunks.starts_with("17\n18\n19\n<<<<<<< ") && hunks.ends_with("21\n22\n23\n"), "{hunks}");
    assert!(hunks.contains("ours\n=======\ntheirs\n"), "{hunks}");
    assert_eq!((found[2].ours.len(), found[2].theirs.as_slice()), (0, &[(1, 1)][..]));
}

#[test]
fn what_is_told_is_bounded() {
    let world = World::new();
    for n in 0..8 {
        world.write(format!("f{n}"), "x\n");
    }
    let base = world.commit("files");
    let change = |path: &Path, word: &str| {
        for n in 0..8 {
            write(&path.join(format!("f{n}")), format!("{word} {n}\n").repeat(2000));
        }
    };
    let tip = world.worked(&base, "tip", |path| change(path, "ours"));
    let work = world.worked(&base, "work", |path| change(path, "theirs"));
    let found = conflicts(&world, &tip, &work);
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|c| c.hunks.raw().len() <= 8 << 10));
    assert!(found.iter().map(|c| c.hunks.raw().len()).sum::<usize>() <= 32 << 10);
    assert!(!found[0].hunks.is_empty());
}

#[test]
fn binary_files_conflict_without_lines() {
    let world = World::new();
    world.write("binary", b"\0base");
    let base = world.commit("binary");
    let tip = world.worked(&base, "tip", |path| write(&path.join("binary"), b"\0ours"));
    let work = world.worked(&base, "work", |path| write(&path.join("binary"), b"\0theirs"));
    let found = conflicts(&world, &tip, &work);
    assert_eq!((found[0].kind, found[0].hunks.raw()), (ConflictKind::Content, ""));
}
