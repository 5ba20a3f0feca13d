//! A damaged database is named and left as it is: never a panic, and never a silent loss.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::Outcome;
use backstop_store::{EventFilter, Journal, Retention, RunFilter, StoreError};
use common::{Place, ended, finished, header, started};
use std::path::{Path, PathBuf};

/// A database of some pages in one file, without a log.
fn filled(place: &Place) -> PathBuf {
    let journal = place.journal();
    for n in 0..20 {
        let run = journal.begin(header(n << 8), vec![started("make")]).unwrap();
        run.append((1..30).map(|n| finished("make", n)).collect()).unwrap();
        run.append(vec![ended(Outcome::Done)]).unwrap();
    }
    journal.clean(&Retention::default(), &|_| true).unwrap();
    journal.file().to_owned()
}

/// Reads and writes whatever there is; `Err` is the first error.
fn use_all(place: &Place) -> Result<(), StoreError> {
    let journal = Journal::open(&place.folder, &place.project)?;
    for run in journal.runs(&RunFilter::default())? {
        journal.load(run.id)?;
    }
    journal.events(&EventFilter { limit: 10_000, ..EventFilter::default() })?;
    journal.lost_runs(&|_| false)?;
    journal.deferred()?;
    journal.clean(&Retention::default(), &|_| true)?;
    let run = journal.begin(header(0xabcd_ef12), vec![started("after")])?;
    run.append(vec![ended(Outcome::Done)])?;
    journal.check()
}

fn remove_log(file: &Path) {
    for log in ["-wal", "-shm"] {
        let mut path = file.to_owned().into_os_string();
        path.push(log);
        let _ = std::fs::remove_file(path);
    }
}

#[track_caller]
fn assert_corrupt(result: Result<(), StoreError>) {
    match result {
        Err(error @ StoreError::Corrupt { .. }) => assert!(error.hint().contains("--quarantine")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_database_is_named_and_kept() {
    let place = Place::new();
    let file = filled(&place);
    let text = "this is a letter and not a database\n".repeat(200);
    std::fs::write(&file, &text).unwrap();
    remove_log(&file);
    assert_corrupt(use_all(&place));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn an_empty_file_is_a_fresh_database() {
    let place = Place::new();
    let file = filled(&place);
    std::fs::write(&file, "").unwrap();
    remove_log(&file);
    use_all(&place).unwrap();
}

#[test]
fn a_file_cut_short_is_never_a_panic() {
    let place = Place::new();
    let file = filled(&place);
    let whole = std::fs::read(&file).unwrap();
    let mut named = 0;
    for keep in [1, 50, 99, 100, 512, 4095, 4096, 4097, 8192, 20_000, whole.len() / 2, whole.len() - 4096] {
        std::fs::write(&file, &whole[..keep]).unwrap();
        remove_log(&file);
        match use_all(&place) {
            Err(StoreError::Corrupt { .. }) => named += 1,
            other => panic!("cut after {keep}: {other:?}"),
        }
    }
    assert_eq!(named, 12);
}

#[test]
fn a_flipped_page_is_named_or_read_cleanly() {
    let place = Place::new();
    let file = filled(&place);
    let whole = std::fs::read(&file).unwrap();
    let mut named = 0;
    for (n, page) in whole.chunks(4096).enumerate() {
        for flip in [page.len(), 16] {
            let mut bytes = whole.clone();
            for byte in &mut bytes[n * 4096..][..flip] {
                *byte ^= 0xff;
            }
            std::fs::write(&file, &bytes).unwrap();
            remove_log(&file);
            match use_all(&place) {
                Err(StoreError::Corrupt { .. }) => named += 1,
                // A page that nobody uses.
                Ok(()) => {}
                other => panic!("page {n}: {other:?}"),
            }
        }
    }
    assert!(named > whole.len() / 4096, "{named}");
}

#[test]
fn a_damaged_log_costs_only_what_was_not_moved_yet() {
    let place = Place::new();
    let file = filled(&place);
    let journal = place.journal();
    journal.begin(header(0x7777_0000), vec![started("late")]).unwrap();
    drop(journal);
    let log = PathBuf::from(format!("{}-wal", file.display()));
    let whole = std::fs::read(&log).unwrap();
    for at in (0..whole.len()).step_by(499) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        for bytes in [&bytes[..], &whole[..at]] {
            std::fs::write(&log, bytes).unwrap();
            let journal = place.journal();
            journal.check().unwrap();
            assert_eq!(journal.runs(&RunFilter::default()).unwrap().len(), 20, "{at}");
        }
    }
}

#[test]
fn somebody_elses_tables_are_refused() {
    let place = Place::new();
    let file = filled(&place);
    let user = backstop_store::UserStore::open(&place.folder).unwrap();
    let other = user.file().to_owned();
    drop(user);
    // A database of ours, of the same version, with other tables.
    std::fs::remove_file(&file).unwrap();
    remove_log(&file);
    std::fs::rename(&other, &file).unwrap();
    let log = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    std::fs::rename(log(&other), log(&file)).unwrap();
    assert_corrupt(use_all(&place));
}

#[test]
fn a_quarantined_database_is_whole_and_out_of_the_way() {
    let place = Place::new();
    assert_eq!(place.folder.quarantine(&place.project).unwrap(), None);
    let journal = place.journal();
    let run = journal.begin(header(1), vec![started("x")]).unwrap().id();
    let file = journal.file().to_owned();
    drop(journal);
    let first = place.folder.quarantine(&place.project).unwrap().unwrap();
    assert!(first.file_name().unwrap().to_str().unwrap().contains(".db.corrupt-1700000000000"));
    assert!(!file.exists());
    assert_eq!(place.folder.projects().unwrap(), []);

    let journal = place.journal();
    assert!(journal.run(run).unwrap().is_none());
    drop(journal);
    let second = place.folder.quarantine(&place.project).unwrap().unwrap();
    assert_ne!(first, second);

    // What was put aside, with its log, can be brought back.
    let at = |path: &Path, part: &str| PathBuf::from(format!("{}{part}", path.display()));
    for part in ["", "-wal"] {
        std::fs::rename(at(&first, part), at(&file, part)).unwrap();
    }
    assert!(place.journal().run(run).unwrap().is_some());
    assert_eq!(place.folder.quarantine_user().unwrap(), None);
}
