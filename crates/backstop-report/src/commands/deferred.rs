//! Deferred work: what waits for what, and whether it can be run.

use crate::{JSON_SCHEMA, Style, View, near_time, table, until_words};
use backstop_core::deferred::{Deferred, DeferredId};
use backstop_core::{SafeText, Timestamp, shell};
use serde_json::{Value, json};

/// What was put aside in a project.
#[derive(Debug, Clone)]
pub struct DeferredList {
    /// Each, and whether what it waits for has come; `None` where that cannot be found out.
    pub works: Vec<(Deferred, Option<bool>)>,
    /// The time.
    pub now: Timestamp,
}

impl View for DeferredList {
    fn text(&self, _: Style) -> String {
        if self.works.is_empty() {
            return NOTHING.to_owned();
        }
        let row = |(work, ready): &(Deferred, Option<bool>)| {
            let until = until_words(work.work.until.raw(), |at| near_time(at, self.now));
            vec![
                work.id.to_string(),
                work.work.reason.to_string(),
                SafeText::new(until).line(60),
                ready.map_or("-", |ready| if ready { "yes" } else { "no" }).to_owned(),
                work.count.to_string(),
                work.work.run.to_string(),
                command(work),
            ]
        };
        let rows: Vec<Vec<String>> = self.works.iter().map(row).collect();
        let text = table(&["ID", "REASON", "UNTIL", "READY", "TIMES", "RUN", "COMMAND"], &rows);
        format!("{text}\n`backstop deferred run ID` runs one now, `backstop deferred drop ID` forgets it\n")
    }

    fn json(&self) -> Value {
        let row = |(work, ready): &(Deferred, Option<bool>)| {
            let (flags, argv) = work.words();
            json!({
                "id": work.id.to_string(), "run": work.work.run, "flags": flags, "argv": argv,
                "folder": work.work.folder, "reason": work.work.reason, "until": work.work.until,
                "runnable": work.runnable, "ready": ready, "is_task": work.work.is_task,
                "count": work.count, "first_at": work.first_at, "last_at": work.last_at,
            })
        };
        let rows: Vec<Value> = self.works.iter().map(row).collect();
        json!({ "schema": JSON_SCHEMA, "deferred": rows })
    }
}

const NOTHING: &str = "there is no deferred work in this project\n";

/// What it is, in one line.
fn command(work: &Deferred) -> String {
    let (_, words) = work.words();
    match work.work.is_task {
        true => format!("task {}", SafeText::new(words.join(" ")).line(55)),
        false => SafeText::new(shell::line(words.iter().map(String::as_str))).line(60),
    }
}

/// A note that deferred work can be run now; `None` where there is none.
pub fn deferred_offer(due: &[&Deferred]) -> Option<String> {
    let note = match due {
        [] => return None,
        [only] => {
            let next = match only.work.is_task {
                true => "backstop deferred list".to_owned(),
                false => format!("backstop deferred run {}", only.id),
            };
            format!("deferred work can be run now: {} ({}); `{next}`", only.id, command(only))
        }
        many => {
            let n = many.len();
            format!("{n} pieces of deferred work can be run now; `backstop deferred list` shows them")
        }
    };
    Some(format!("note: {note}\n"))
}

/// Deferred work that was removed without being run.
#[derive(Debug, Clone)]
pub struct DeferredDropped(pub Vec<DeferredId>);

impl View for DeferredDropped {
    fn text(&self, _: Style) -> String {
        match self.ids() {
            ids if ids.is_empty() => NOTHING.to_owned(),
            ids => format!("forgotten: {}\n", ids.join(", ")),
        }
    }

    fn json(&self) -> Value {
        json!({ "schema": JSON_SCHEMA, "dropped": self.ids() })
    }
}

impl DeferredDropped {
    fn ids(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}
