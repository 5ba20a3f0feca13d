//! The outbox: what is to be told is counted, taken by one, and never lost.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use backstop_core::Timestamp;
use backstop_store::{Delivered, NewNote, NoteState, Outbox};
use common::{Place, START};
use std::time::Duration;

fn note(group: &str) -> NewNote {
    NewNote {
        sink: "ops".parse().unwrap(),
        target: "ops-1".to_owned(),
        project: "/srv/shop".to_owned(),
        group: group.to_owned(),
        label: "make".to_owned(),
        urgent: false,
        body: serde_json::json!({ "plain": format!("{group} failed with s3cret-canary") }),
    }
}

#[test]
fn the_same_trouble_is_one_note_with_a_count() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    for n in 1..=1000 {
        assert_eq!(outbox.add(&note("a")).unwrap().count, n);
    }
    outbox.add(&note("b")).unwrap();
    let queued = outbox.queued().unwrap();
    assert_eq!(queued.iter().map(|note| note.count).collect::<Vec<_>>(), [1000, 1]);
}

#[test]
fn it_is_gathered_while_more_comes_but_not_for_ever() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    let mut at = START;
    for _ in 0..40 {
        place.set(at);
        outbox.add(&note("a")).unwrap();
        at += 500;
    }
    let [only] = outbox.queued().unwrap().try_into().unwrap();
    assert_eq!(only.not_before, Timestamp::from_millis(START + 10_000));
    assert_eq!((only.first_at, only.count), (Timestamp::from_millis(START), 40));
}

#[test]
fn too_many_different_troubles_are_one_note_about_all() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    for n in 0..500 {
        outbox.add(&note(&format!("g{n}"))).unwrap();
    }
    let queued = outbox.queued().unwrap();
    assert_eq!(queued.len(), 21);
    let last = queued.last().unwrap();
    assert_eq!((last.note.group.as_str(), last.count), (Outbox::OTHERS, 480));
}

#[test]
fn one_takes_it_and_what_comes_meanwhile_is_another_note() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    let id = outbox.add(&note("a")).unwrap().id;
    let taken = outbox.take(id).unwrap().unwrap();
    assert_eq!((taken.state, taken.count), (NoteState::Sending, 1));
    assert_eq!(outbox.take(id).unwrap(), None);
    let other = outbox.add(&note("a")).unwrap();
    assert_ne!(other.id, id);
    outbox.finish(id, &Delivered::Sent("answered 200".into())).unwrap();
    assert_eq!(outbox.queued().unwrap().len(), 1);
    let sent = outbox.sent_since(Timestamp::from_millis(START - 1000)).unwrap();
    assert_eq!((sent.len(), sent[0].group.as_str()), (1, "a"));
}

#[test]
fn what_a_killed_sender_took_is_queued_again() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    let id = outbox.add(&note("a")).unwrap().id;
    outbox.take(id).unwrap().unwrap();
    drop(outbox);
    let outbox = Outbox::open_existing(&place.folder).unwrap().unwrap();
    assert!(outbox.queued().unwrap().is_empty());
    assert_eq!(outbox.recover().unwrap(), 1);
    assert_eq!(outbox.queued().unwrap()[0].id, id);
}

#[test]
fn what_is_put_off_keeps_its_time() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    let id = outbox.add(&note("a")).unwrap().id;
    outbox.take(id).unwrap().unwrap();
    let until = Timestamp::from_millis(START + 60_000);
    outbox.finish(id, &Delivered::Later { until, why: "no network".into() }).unwrap();
    outbox.add(&note("a")).unwrap();
    let [only] = outbox.queued().unwrap().try_into().unwrap();
    assert_eq!((only.not_before, only.rounds, only.count), (until, 1, 2));
}

#[test]
fn secrets_are_masked_on_the_way_in() {
    let place = Place::knowing(&["s3cret-canary"]);
    let outbox = Outbox::open(&place.folder).unwrap();
    let id = outbox.add(&note("a")).unwrap().id;
    outbox.take(id).unwrap().unwrap();
    outbox.finish(id, &Delivered::Failed("refused s3cret-canary".into())).unwrap();
    let all = format!("{:?}", outbox.notes().unwrap());
    assert!(!all.contains("s3cret-canary") && all.contains("[redacted]"), "{all}");
}

#[test]
fn what_is_said_at_once_is_said_once() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    let within = Duration::from_secs(600);
    assert!(outbox.say_once(&note("a"), within).unwrap());
    assert!(!outbox.say_once(&note("a"), within).unwrap());
    assert!(outbox.say_once(&note("b"), within).unwrap());
    place.set(START + 601_000);
    assert!(outbox.say_once(&note("a"), within).unwrap());
    assert!(outbox.queued().unwrap().is_empty());
}

#[test]
fn what_is_long_over_goes() {
    let place = Place::new();
    let outbox = Outbox::open(&place.folder).unwrap();
    let id = outbox.add(&note("a")).unwrap().id;
    outbox.take(id).unwrap();
    outbox.finish(id, &Delivered::Sent("ok".into())).unwrap();
    outbox.add(&note("b")).unwrap();
    place.set(START + 8 * 24 * 3_600_000);
    assert_eq!(outbox.forget_old().unwrap(), 1);
    assert_eq!(outbox.notes().unwrap().len(), 1);
}

#[test]
fn sixteen_who_add_at_once_lose_nothing() {
    let place = Place::new();
    Outbox::open(&place.folder).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let outbox = Outbox::open(&place.folder).unwrap();
                for _ in 0..25 {
                    outbox.add(&note("a")).unwrap();
                }
            });
        }
    });
    let outbox = Outbox::open(&place.folder).unwrap();
    assert_eq!(outbox.queued().unwrap().iter().map(|note| note.count).sum::<u64>(), 400);
}
