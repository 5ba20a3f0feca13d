//! When a message may be sent: grouping and rate limits, as pure functions of what is queued and
//! what was sent.

use backstop_core::Timestamp;
use backstop_store::{Note, SentNote};
use std::time::Duration;

/// One group is sent at most once within this time.
pub const GROUP_WINDOW: Duration = Duration::from_secs(600);
/// One sink gets at most this many messages within [`SINK_WINDOW`].
pub const SINK_MESSAGES_MAX: usize = 20;
/// The window of [`SINK_MESSAGES_MAX`].
pub const SINK_WINDOW: Duration = Duration::from_secs(3600);
/// The longest postponement. A time further ahead means that the clock jumped, and does not count.
pub const PUT_OFF_MAX: Duration = Duration::from_secs(3600);

/// When `note` may be sent, given what was sent within the last hour. An urgent note does not wait
/// behind others.
pub fn due(note: &Note, sent: &[SentNote], now: Timestamp) -> Timestamp {
    let to_it = || sent.iter().filter(|sent| sent.target == note.note.target);
    let mut due = note.not_before;
    if let Some(last) = to_it().filter(|sent| sent.group == note.note.group).map(|sent| sent.at).max() {
        due = due.max(last.after(GROUP_WINDOW));
    }
    let mut times: Vec<Timestamp> = to_it().map(|sent| sent.at).collect();
    times.sort_unstable();
    if note.note.urgent {
        times.clear();
    }
    if let Some(oldest) = times.len().checked_sub(SINK_MESSAGES_MAX).and_then(|at| times.get(at)) {
        due = due.max(oldest.after(SINK_WINDOW));
    }
    if due > now.after(PUT_OFF_MAX) { now } else { due }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_store::{NewNote, NoteState};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn note(group: &str, not_before: i64) -> Note {
        Note {
            id: 1,
            note: NewNote {
                sink: "ops".parse().unwrap(),
                target: "t".into(),
                project: "/p".into(),
                group: group.into(),
                body: serde_json::Value::Null,
                label: "make".into(),
                urgent: false,
            },
            labels: Vec::new(),
            count: 1,
            state: NoteState::Queued,
            first_at: at(0),
            last_at: at(0),
            not_before: at(not_before),
            rounds: 0,
            done_at: None,
            response: None,
        }
    }

    fn sent(target: &str, group: &str, seconds: i64) -> SentNote {
        SentNote { target: target.into(), group: group.into(), at: at(seconds) }
    }

    #[test]
    fn a_group_speaks_once_in_ten_minutes() {
        let now = at(1000);
        assert_eq!(due(&note("a", 1001), &[], now), at(1001));
        assert_eq!(due(&note("a", 1001), &[sent("t", "a", 900)], now), at(1500));
        assert_eq!(due(&note("a", 1001), &[sent("t", "b", 900), sent("other", "a", 900)], now), at(1001));
        assert_eq!(due(&note("a", 1001), &[sent("t", "a", 100)], now), at(1001));
    }

    #[test]
    fn a_sink_speaks_twenty_times_an_hour() {
        let now = at(10_000);
        let some = |n: i64| (0..n).map(|i| sent("t", &format!("g{i}"), 9_000 + i)).collect::<Vec<_>>();
        assert_eq!(due(&note("a", 9_999), &some(19), now), at(9_999));
        assert_eq!(due(&note("a", 9_999), &some(20), now), at(9_000 + 3600));
        assert_eq!(due(&note("a", 9_999), &some(25), now), at(9_005 + 3600));
        let mut urgent = note("a", 9_999);
        urgent.note.urgent = true;
        assert_eq!(due(&urgent, &some(25), now), at(9_999));
    }

    #[test]
    fn a_clock_that_jumped_holds_nothing_back() {
        assert_eq!(due(&note("a", 900_000), &[], at(1000)), at(1000));
    }
}
