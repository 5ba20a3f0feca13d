//! Nobody else reads what is stored, and nobody leads it elsewhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{Redactor, Timestamp};
use backstop_store::{Clock, Journal, StateFolder, StoreError, UserStore};
use common::{Place, header, started};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

fn open(root: &Path) -> Result<StateFolder, StoreError> {
    let clock: Clock = Arc::new(|| Timestamp::from_millis(0));
    StateFolder::open(root, clock, Arc::new(Redactor::default()))
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

#[test]
fn only_the_user_can_read() {
    let place = Place::new();
    let journal = place.journal();
    journal.begin(header(1), vec![started("x")]).unwrap();
    let _user = UserStore::open(&place.folder).unwrap();
    let root = place.folder.root();
    assert_eq!(mode(root), 0o700);
    assert_eq!(mode(&root.join("projects")), 0o700);
    let mut files = 0;
    for folder in [root.to_owned(), root.join("projects")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files >= 7, "two databases with their logs, and the lock: {files}");
}

#[test]
fn what_was_open_to_others_is_closed() {
    let place = Place::new();
    let file = place.journal().file().to_owned();
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    std::fs::set_permissions(place.folder.root(), Permissions::from_mode(0o755)).unwrap();
    let folder = open(place.folder.root()).unwrap();
    Journal::open(&folder, &place.project).unwrap();
    assert_eq!((mode(folder.root()), mode(&file)), (0o700, 0o600));
}

#[test]
fn a_link_is_not_followed() {
    let temp = tempfile::tempdir().unwrap();
    let (real, link) = (temp.path().join("real"), temp.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    for path in [link.clone(), link.join(""), link.join("."), temp.path().join("./link//")] {
        let error = open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Symlink { .. }), "{}: {error}", path.display());
    }
    // A link further up is the user's own choice.
    assert_eq!(open(&link.join("state")).unwrap().root(), real.canonicalize().unwrap().join("state"));
    std::fs::write(temp.path().join("file"), "").unwrap();
    assert!(matches!(open(&temp.path().join("file")), Err(StoreError::NotAFolder { .. })));
}

#[test]
fn a_link_in_place_of_a_database_is_refused() {
    let place = Place::new();
    let file = place.journal().file().to_owned();
    let elsewhere = place.base().join("elsewhere.db");
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(matches!(Journal::open(&place.folder, &place.project), Err(StoreError::Symlink { .. })));

    let place = Place::new();
    symlink(place.base(), place.folder.root().join("projects")).unwrap();
    assert!(matches!(Journal::open(&place.folder, &place.project), Err(StoreError::Symlink { .. })));
}

#[test]
fn somebody_elses_folder_is_refused() {
    // Only root can give a folder away, and root's folders are somebody else's for everybody else.
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("state");
    std::fs::create_dir(&root).unwrap();
    let theirs =
        if std::os::unix::fs::chown(&root, Some(12345), None).is_ok() { &*root } else { Path::new("/usr") };
    assert!(matches!(open(theirs), Err(StoreError::NotOwned { .. })));
}

#[test]
fn whether_it_can_be_written_is_said() {
    let place = Place::new();
    place.folder.check_writable().unwrap();
    assert_eq!(std::fs::read_dir(place.folder.root()).unwrap().count(), 0);
    let _ = place.folder.filesystem_note();
    std::fs::remove_dir(place.folder.root()).unwrap();
    assert!(place.folder.check_writable().is_err());
}

#[test]
fn a_newer_database_is_refused() {
    let place = Place::new();
    let file = place.journal().file().to_owned();
    // The version is the big-endian number at offset 60; without the log, the file alone counts.
    for log in ["-wal", "-shm"] {
        let mut path = file.clone().into_os_string();
        path.push(log);
        let _ = std::fs::remove_file(path);
    }
    let fresh = place.project.join("fresh");
    std::fs::create_dir(&fresh).unwrap();
    let journal = Journal::open(&place.folder, &fresh).unwrap();
    journal.clean(&backstop_store::Retention::default(), &|_| true).unwrap();
    let file = journal.file().to_owned();
    drop(journal);
    let mut bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes[60..64], [0, 0, 0, 5]);
    bytes[63] = 9;
    std::fs::write(&file, &bytes).unwrap();
    let error = Journal::open(&place.folder, &fresh).unwrap_err();
    assert_eq!(error, StoreError::Newer { file: file.clone(), found: 9, known: 5 });
    assert!(error.hint().contains("update Backstop"));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}
