//! Adding notes to the outbox, taking them from it, and storing the result.

use super::{Added, Delivered, NewNote, Note, NoteState, Outbox, SentNote};
use crate::masked::mask_value;
use crate::summary::{parsed, text, worded};
use crate::{StoreError, error::TransactionError};
use backstop_core::{SafeText, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

/// A note is sent once nothing was added to it for this long,
const QUIET: Duration = Duration::from_secs(1);
/// but at most this long after the first.
const GATHER_MAX: Duration = Duration::from_secs(10);
/// How many groups may wait for one target; further notifications are merged into one note.
const GROUPS_MAX: i64 = 20;
/// How many notes are read at once.
const LIST_MAX: i64 = 1000;
/// How long a finished note is kept.
const KEEP: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many finished notes are kept.
const KEEP_MAX: i64 = 500;
/// How many operations are stored with a note.
const LABELS_MAX: i64 = 10;
/// How long a note waits that no sender can send.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

const COLUMNS: &str = "id, sink, target, project, grouped, body, count, state, first_at, last_at, not_before, rounds, done_at, said, labels, urgent";

impl Outbox {
    /// The group of notifications merged because there are too many groups.
    pub const OTHERS: &str = "*";

    /// Adds a notification. If its group is queued already, it is counted.
    pub fn add(&self, note: &NewNote) -> Result<Added, StoreError> {
        let now = self.now();
        let (body, note) = (self.masked(&note.body), &self.masked_note(note));
        self.db.write(None, false, |tx| {
            if let Some(added) = count(tx, note, &note.group, now)? {
                return Ok(added);
            }
            let waiting: i64 = tx.query_row(
                "SELECT count(*) FROM notes WHERE target = ?1 AND state = 'queued'",
                [&note.target],
                |row| row.get(0),
            )?;
            let group = if waiting < GROUPS_MAX || note.urgent { note.group.as_str() } else { Self::OTHERS };
            if group == Self::OTHERS
                && let Some(added) = count(tx, note, group, now)?
            {
                return Ok(added);
            }
            Ok(insert(tx, note, group, &body, NoteState::Queued, now)?)
        })
    }

    /// Whether a notification of this group may be shown now: none was within `within`. If so, it
    /// is stored as sent; if not, it is not stored. For a sink that needs no sender.
    pub fn say_once(&self, note: &NewNote, within: Duration) -> Result<bool, StoreError> {
        let now = self.now();
        let (body, note) = (self.masked(&note.body), &self.masked_note(note));
        self.db.write(None, false, |tx| {
            let announced: bool = tx.query_row(
                "SELECT EXISTS (SELECT 1 FROM notes WHERE target = ?1 AND grouped = ?2 AND done_at BETWEEN ?3 AND ?4)",
                params![note.target, note.group, now.before(within).as_millis(), now.as_millis()],
                |row| row.get(0),
            )?;
            if !announced {
                let added = insert(tx, note, &note.group, &body, NoteState::Sent, now)?;
                tx.execute("UPDATE notes SET done_at = ?2 WHERE id = ?1", params![added.id, now.as_millis()])?;
                forget(tx, now)?;
            }
            Ok(!announced)
        })
    }

    /// The queued notes, oldest first.
    pub fn queued(&self) -> Result<Vec<Note>, StoreError> {
        self.rows("WHERE state = 'queued' ORDER BY id", LIST_MAX)
    }

    /// Whether any note is unfinished: queued, or taken by a sender that may have been killed.
    pub fn has_unfinished(&self) -> Result<bool, StoreError> {
        self.db.read(|conn| {
            let sql = "SELECT EXISTS (SELECT 1 FROM notes WHERE state IN ('queued', 'sending'))";
            Ok(conn.query_row(sql, [], |row| row.get(0))?)
        })
    }

    /// Gives up a note that no sender could send for a day, because none had its secret. Returns
    /// how many.
    pub fn give_up(&self, id: i64) -> Result<usize, StoreError> {
        let now = self.now();
        self.db.write_one(None, |conn| {
            conn.execute(
                "UPDATE notes SET state = 'failed', done_at = ?2, said = 'nobody had its secret for a day' \
                 WHERE id = ?1 AND state = 'queued' AND first_at < ?3",
                params![id, now.as_millis(), now.before(WAIT_MAX).as_millis()],
            )
        })
    }

    /// The newest notes in any state: queued ones first, then finished ones, newest first.
    pub fn notes(&self) -> Result<Vec<Note>, StoreError> {
        self.rows("ORDER BY done_at IS NOT NULL, done_at DESC, id DESC", LIST_MAX)
    }

    /// The notes sent since then, and not in the future.
    pub fn sent_since(&self, since: Timestamp) -> Result<Vec<SentNote>, StoreError> {
        let now = self.now().as_millis();
        self.db.read(|conn| {
            let mut statement = conn.prepare(
                "SELECT target, grouped, done_at FROM notes WHERE state = 'sent' AND done_at BETWEEN ?1 AND ?2 \
                 ORDER BY done_at LIMIT ?3",
            )?;
            let rows = statement.query_map([since.as_millis(), now, LIST_MAX], |row| {
                Ok(SentNote {
                    target: row.get(0)?,
                    group: row.get(1)?,
                    at: Timestamp::from_millis(row.get(2)?),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Takes a note to send it: from now on nothing is added to it. `None` if another sender has
    /// it.
    pub fn take(&self, id: i64) -> Result<Option<Note>, StoreError> {
        self.db.write_one(None, |conn| {
            let sql = format!(
                "UPDATE notes SET state = 'sending' WHERE id = ?1 AND state = 'queued' RETURNING {COLUMNS}"
            );
            conn.query_row(&sql, [id], read).optional()
        })
    }

    /// Stores the result of a note that was taken.
    pub fn finish(&self, id: i64, delivered: &Delivered) -> Result<(), StoreError> {
        let now = self.now().as_millis();
        let (state, why, until) = match delivered {
            Delivered::Sent(response) => (NoteState::Sent, response, None),
            Delivered::Failed(why) => (NoteState::Failed, why, None),
            Delivered::Later { until, why } => (NoteState::Queued, why, Some(until.as_millis())),
        };
        let response = self.redactor.redact(why.raw());
        let done = until.is_none().then_some(now);
        self.db.write_one(None, |conn| {
            conn.execute(
                "UPDATE notes SET state = ?2, said = ?3, done_at = ?4, not_before = coalesce(?5, not_before), \
                 rounds = rounds + (?5 IS NOT NULL) WHERE id = ?1",
                params![id, state.name(), response, done, until],
            )
        })?;
        Ok(())
    }

    /// Queues notes again that a sender took and never finished; returns how many. Only for the
    /// holder of the sender's lock.
    pub fn recover(&self) -> Result<usize, StoreError> {
        self.db.write_one(None, |conn| {
            conn.execute("UPDATE notes SET state = 'queued' WHERE state = 'sending'", [])
        })
    }

    /// Removes notes that were finished long ago.
    pub fn forget_old(&self) -> Result<usize, StoreError> {
        let now = self.now();
        self.db.write_one(None, |conn| forget(conn, now))
    }

    /// The note as it is stored. The project's folder is where its sinks are looked up, and stays.
    fn masked_note(&self, note: &NewNote) -> NewNote {
        let mask = |text: &str| self.redactor.redact(text).into_owned();
        NewNote { label: mask(&note.label), group: mask(&note.group), ..note.clone() }
    }

    fn masked(&self, body: &serde_json::Value) -> String {
        let mut body = body.clone();
        mask_value(&self.redactor, &mut body, &mut false);
        body.to_string()
    }

    fn rows(&self, which: &str, max: i64) -> Result<Vec<Note>, StoreError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare(&format!("SELECT {COLUMNS} FROM notes {which} LIMIT {max}"))?;
            let rows = statement.query_map([], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn forget(conn: &Connection, now: Timestamp) -> rusqlite::Result<usize> {
    conn.execute(
        "DELETE FROM notes WHERE done_at IS NOT NULL AND (done_at < ?1 OR id IN \
         (SELECT id FROM notes WHERE done_at IS NOT NULL ORDER BY done_at DESC LIMIT -1 OFFSET ?2))",
        params![now.before(KEEP).as_millis(), KEEP_MAX],
    )
}

/// Counts a notification in the queued note of its group. A note that was postponed keeps its time.
fn count(
    conn: &Connection,
    note: &NewNote,
    group: &str,
    now: Timestamp,
) -> Result<Option<Added>, TransactionError> {
    let counted = conn.query_row(
        "UPDATE notes SET count = count + 1, last_at = ?3, urgent = max(urgent, ?7), \
         labels = CASE WHEN json_array_length(labels) >= ?8 OR EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?6) \
         THEN labels ELSE json_insert(labels, '$[#]', ?6) END, not_before = CASE WHEN rounds > 0 THEN not_before \
         ELSE min(?4, first_at + ?5) END \
         WHERE target = ?1 AND grouped = ?2 AND state = 'queued' RETURNING id, count",
        params![
            note.target,
            group,
            now.as_millis(),
            now.after(QUIET).as_millis(),
            i64::try_from(GATHER_MAX.as_millis()).unwrap_or(i64::MAX),
            note.label,
            note.urgent,
            LABELS_MAX,
        ],
        |row| Ok(Added { id: row.get(0)?, count: row.get::<_, i64>(1)?.cast_unsigned() }),
    );
    Ok(counted.optional()?)
}

fn insert(
    conn: &Connection,
    note: &NewNote,
    group: &str,
    body: &str,
    state: NoteState,
    now: Timestamp,
) -> rusqlite::Result<Added> {
    conn.query_row(
        "INSERT INTO notes (sink, target, project, grouped, body, count, state, first_at, last_at, not_before, labels, urgent) \
         VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?7, ?8, json_array(?9), ?10) RETURNING id",
        params![
            note.sink.as_str(),
            note.target,
            note.project,
            group,
            body,
            state.name(),
            now.as_millis(),
            now.after(QUIET).as_millis(),
            note.label,
            note.urgent,
        ],
        |row| Ok(Added { id: row.get(0)?, count: 1 }),
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<Note> {
    let body: String = row.get(5)?;
    let body = serde_json::from_str(&body)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(5, Type::Text, error.into()))?;
    let labels: String = row.get(14)?;
    let labels: Vec<SafeText> = serde_json::from_str(&labels).unwrap_or_default();
    let time = |column| Ok::<_, rusqlite::Error>(Timestamp::from_millis(row.get(column)?));
    Ok(Note {
        id: row.get(0)?,
        note: NewNote {
            sink: parsed(row, 1)?,
            target: row.get(2)?,
            project: row.get(3)?,
            group: row.get(4)?,
            body,
            label: labels.first().map(|label| label.raw().to_owned()).unwrap_or_default(),
            urgent: row.get(15)?,
        },
        labels,
        count: row.get::<_, i64>(6)?.cast_unsigned(),
        state: worded(row, 7, NoteState::from_name)?,
        first_at: time(8)?,
        last_at: time(9)?,
        not_before: time(10)?,
        rounds: row.get(11)?,
        done_at: row.get::<_, Option<i64>>(12)?.map(Timestamp::from_millis),
        response: text(row, 13)?,
    })
}
