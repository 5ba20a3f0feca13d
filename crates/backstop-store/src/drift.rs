//! Drift: the messages that no rule recognises, grouped by signature, and whether their share has
//! grown.
//!
//! It must not write rules or print: it counts.

use crate::counted::Counted;
use crate::{Drift, Journal, StoreError, UnknownGroup};
use backstop_core::{EventKind, Reason, SafeText, Timestamp, signature};
use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use std::collections::HashMap;
use std::time::Duration;

/// How many groups are kept; messages beyond them are only counted.
const GROUPS_MAX: usize = 2_000;
/// How many characters of a message are kept as an example.
const EXAMPLE_CHARS_MAX: usize = 300;

/// The last day is compared with the days before it.
const SPIKE_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
impl Journal {
    /// The unrecognised messages since `since`; the last day is compared with the days before it.
    pub fn drift(&self, since: Timestamp) -> Result<Drift, StoreError> {
        let now = self.now();
        let window = i64::try_from(SPIKE_WINDOW.as_millis()).unwrap_or(i64::MAX);
        let recent_from = now.as_millis().saturating_sub(window);
        self.db.read(|conn| {
            // One transaction, so that all queries see the same data.
            let moment = conn.unchecked_transaction()?;
            Ok(read(&moment, since.as_millis(), recent_from)?)
        })
    }
}

fn read(conn: &Connection, since: i64, recent_from: i64) -> rusqlite::Result<Drift> {
    let mut drift = Drift::default();
    let mut groups: HashMap<String, UnknownGroup> = HashMap::new();
    let mut messages = Messages::new(conn)?;
    let mut statement = conn.prepare(
        "SELECT at, reason, position FROM events INDEXED BY events_counted \
         WHERE counted = ?1 AND counted IS NOT NULL AND at >= ?2 ORDER BY run, seq",
    )?;
    let mut rows = statement.query(params![Counted::ErrorClassified as i64, since])?;
    while let Some(row) = rows.next()? {
        let at: i64 = row.get(0)?;
        let unknown = row.get_ref(1)?.as_str_or_null()? == Some(Reason::Unknown.code());
        let share = if at >= recent_from { &mut drift.recent } else { &mut drift.before };
        share.errors += 1;
        share.unknown += u64::from(unknown);
        if !unknown {
            continue;
        }
        let Some(found) = messages.at(row.get(2)?, Timestamp::from_millis(at))? else {
            drift.ungrouped += 1;
            continue;
        };
        if let Some(group) = groups.get_mut(&found.signature) {
            group.join(found);
        } else if groups.len() < GROUPS_MAX {
            groups.insert(found.signature.clone(), found);
        } else {
            drift.ungrouped += 1;
        }
    }
    drift.groups = groups.into_values().collect();
    drift.groups.sort_by(|a, b| b.count.cmp(&a.count).then(a.signature.cmp(&b.signature)));
    Ok(drift)
}

/// Reads the messages of unknown errors.
struct Messages<'c> {
    error: Statement<'c>,
    output: Statement<'c>,
}

impl<'c> Messages<'c> {
    fn new(conn: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            error: conn.prepare(
                "SELECT e.body, e.run, e.seq, r.id FROM events AS e JOIN runs AS r ON r.n = e.run \
                 WHERE e.position = ?1",
            )?,
            output: conn.prepare(
                "SELECT body FROM events WHERE run = ?1 AND seq < ?2 AND kind = 'attempt.finished' \
                 AND attempt = ?3 ORDER BY seq DESC LIMIT 1",
            )?,
        })
    }

    /// The message of the error at this position: its cause, else the last line of its attempt's
    /// output. `None` if it cannot be read.
    fn at(&mut self, position: i64, at: Timestamp) -> rusqlite::Result<Option<UnknownGroup>> {
        let read = |row: &Row<'_>| {
            let body = serde_json::from_str(row.get_ref(0)?.as_str()?).ok();
            Ok((body, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, crate::summary::parsed(row, 3)?))
        };
        let found = self.error.query_row([position], read).optional()?;
        let Some((Some(EventKind::ErrorClassified { operation, attempt, fault }), n, seq, run)) = found
        else {
            return Ok(None);
        };
        let text = match fault.cause.as_ref().and_then(|cause| last_line(cause.raw())) {
            Some(cause) => cause,
            None => self.output(n, seq, attempt)?.unwrap_or_default(),
        };
        Ok(Some(UnknownGroup {
            signature: signature(&text),
            count: 1,
            first_at: at,
            last_at: at,
            example: SafeText::new(text),
            operation,
            run,
        }))
    }

    /// The last line of an attempt's output.
    fn output(&mut self, n: i64, seq: i64, attempt: u32) -> rusqlite::Result<Option<String>> {
        let read = |row: &Row<'_>| Ok(serde_json::from_str::<EventKind>(row.get_ref(0)?.as_str()?).ok());
        Ok(match self.output.query_row(params![n, seq, attempt], read).optional()?.flatten() {
            Some(EventKind::AttemptFinished { output: Some(output), .. }) => last_line(output.raw()),
            _ => None,
        })
    }
}

/// The last line that is not empty, without escape sequences, cut to a maximum length.
fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(plain).find(|line| !line.is_empty())
}

/// A line without colour sequences; other control characters become spaces.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' if chars.next_if_eq(&'[').is_some() => {
                while chars.next_if(|c| !('\x40'..='\x7e').contains(c)).is_some() {}
                chars.next();
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.trim().chars().take(EXAMPLE_CHARS_MAX).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Share;

    #[test]
    fn one_unknown_is_no_spike_and_many_more_than_before_are() {
        let drift = |recent: (u64, u64), before: (u64, u64)| Drift {
            recent: Share { unknown: recent.0, errors: recent.1 },
            before: Share { unknown: before.0, errors: before.1 },
            ..Drift::default()
        };
        for (recent, before, spike) in [
            ((1, 1), (0, 100), false),
            ((5, 10), (0, 100), true),
            ((5, 10), (0, 9), false),
            ((5, 10), (30, 100), false),
            ((6, 10), (30, 100), true),
            ((10, 100), (0, 100), true),
            ((9, 100), (0, 100), false),
            ((50, 50), (100, 100), false),
            ((0, 0), (0, 0), false),
            ((u64::MAX / 200, u64::MAX / 200), (0, 10), true),
        ] {
            assert_eq!(drift(recent, before).is_spike(), spike, "{recent:?} {before:?}");
        }
    }

    #[test]
    fn the_last_line_that_says_something() {
        assert_eq!(last_line("a\n\x1b[31mbad\x1b[0m thing\x07\n \n").as_deref(), Some("bad thing"));
        assert_eq!(last_line(" \n\x1b[0m\n"), None);
        assert_eq!(last_line("\x1b[").as_deref(), None);
        assert!(last_line(&"x".repeat(5000)).unwrap().len() <= EXAMPLE_CHARS_MAX);
    }
}
