//! Several projects in one state folder, and what belongs to none of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{Reason, RunId};
use backstop_store::{Journal, StoreError, UserStore};
use common::{Place, START, header, started};
use std::path::Path;

#[test]
fn a_run_is_found_in_whichever_project_it_is() {
    let place = Place::new();
    assert!(Journal::open_existing(&place.folder, &place.project).unwrap().is_none());
    assert_eq!(place.folder.projects().unwrap(), []);
    let mut runs = Vec::new();
    for (name, random) in [("a", 0x1111_u64), ("b", 0x2222), ("../b", 0x3333)] {
        let root = place.project.join(name);
        std::fs::create_dir_all(&root).unwrap();
        let journal = Journal::open(&place.folder, &root).unwrap();
        runs.push((
            journal.begin(header(random), vec![started(name)]).unwrap().id(),
            journal.file().to_owned(),
        ));
    }
    for (run, file) in &runs {
        let found = place.folder.find_run(*run).unwrap().unwrap();
        assert_eq!(found.file(), file);
        assert_eq!(found.load(*run).unwrap().len(), 1);
    }
    assert!(place.folder.find_run("r-ffff".parse().unwrap()).unwrap().is_none());

    let projects = place.folder.projects().unwrap();
    assert_eq!(projects.len(), 3);
    let root = place.project.canonicalize().unwrap();
    assert!(projects.iter().any(|project| project.path.as_deref() == Some(&*root.join("a"))));
    assert!(projects.iter().all(|project| project.file.starts_with(place.folder.root().join("projects"))));

    std::fs::remove_file(format!("{}-wal", runs[0].1.display())).unwrap();
    // A damaged neighbour hides nothing, and is reported only where nothing is found.
    std::fs::write(&runs[0].1, "not a database, and long enough to look like one".repeat(100)).unwrap();
    assert!(place.folder.find_run(runs[1].0).unwrap().is_some());
    assert!(matches!(place.folder.find_run(runs[0].0), Err(StoreError::Corrupt { .. })));
    assert_eq!(place.folder.projects().unwrap().iter().filter(|project| project.path.is_none()).count(), 1);
}

#[test]
fn the_same_id_in_two_projects_is_the_newer_run() {
    let place = Place::new();
    let open = |name: &str| {
        let root = place.project.join(name);
        std::fs::create_dir_all(&root).unwrap();
        Journal::open(&place.folder, &root).unwrap()
    };
    let newer = open("a");
    place.set(START + 1);
    let run = newer.begin(header(7), vec![started("newer")]).unwrap().id();
    let older = open("b");
    place.set(START);
    assert_eq!(older.begin(header(7), vec![started("older")]).unwrap().id(), run);
    assert_eq!(place.folder.find_run(run).unwrap().unwrap().file(), newer.file());
}

#[test]
fn a_folder_is_one_project_by_whichever_path() {
    let place = Place::new();
    let link = place.base().join("link");
    std::os::unix::fs::symlink(&place.project, &link).unwrap();
    let one = place.journal();
    let other = Journal::open(&place.folder, &link).unwrap();
    assert_eq!(one.file(), other.file());
    assert_eq!(one.project_path().unwrap(), Some(place.project.canonicalize().unwrap()));
}

#[test]
fn trust_is_for_a_file_as_it_was() {
    let place = Place::new();
    assert!(UserStore::open_existing(&place.folder).unwrap().is_none());
    let user = UserStore::open(&place.folder).unwrap();
    let file = Path::new("/srv/shop/backstop.toml");
    assert!(!user.is_trusted(file, "abc").unwrap());
    user.trust(file, "abc").unwrap();
    assert!(user.is_trusted(file, "abc").unwrap());
    assert!(!user.is_trusted(file, "abd").unwrap());
    user.trust(file, "abd").unwrap();
    assert!(!user.is_trusted(file, "abc").unwrap());
    let all = user.trusted().unwrap();
    assert_eq!((all.len(), &*all[0].hashes, all[0].path.as_path()), (1, "abd", file));
    assert!(user.revoke(file).unwrap());
    assert!(!user.revoke(file).unwrap());
    user.check().unwrap();
}

#[test]
fn a_nested_run_is_known_to_its_parent_for_a_day() {
    let place = Place::new();
    let user = UserStore::open(&place.folder).unwrap();
    let id = |text: &str| -> RunId { text.parse().unwrap() };
    let (parent, other) = (id("r-0001"), id("r-0009"));
    assert_eq!(user.nested(parent, backstop_core::Timestamp::from_millis(0)).unwrap(), None);
    user.note_nested(parent, id("r-0002"), 4, Reason::NetworkTransient).unwrap();
    user.note_nested(parent, id("r-0003"), 2, Reason::Timeout).unwrap();
    user.note_nested(parent, id("r-0002"), 3, Reason::NetworkTransient).unwrap();
    let found = user.nested(parent, backstop_core::Timestamp::from_millis(0)).unwrap().unwrap();
    assert_eq!((found.run, found.attempts, found.reason), (id("r-0002"), 4, Reason::NetworkTransient));
    for days in [2, -4] {
        place.pass_days(days);
        user.note_nested(other, id("r-000a"), 1, Reason::Timeout).unwrap();
        assert_eq!(user.nested(parent, backstop_core::Timestamp::from_millis(0)).unwrap(), None);
    }
}
