//! A frozen project may go on.

use crate::{JSON_SCHEMA, Style, View, date_time};
use backstop_core::{Reason, RunId, Timestamp};
use serde_json::{Value, json};

/// What was undone; `None` where the project was not frozen.
#[derive(Debug, Clone)]
pub struct Unfrozen(pub Option<(Reason, Timestamp, Option<RunId>)>);

impl View for Unfrozen {
    fn text(&self, _: Style) -> String {
        match &self.0 {
            Some((reason, at, _)) => {
                format!("new work may begin again; it was frozen since {} ({reason})\n", date_time(*at))
            }
            None => "this project is not frozen\n".to_owned(),
        }
    }

    fn json(&self) -> Value {
        let (reason, at, run) = match &self.0 {
            Some((reason, at, run)) => (Some(reason), Some(at), *run),
            None => (None, None, None),
        };
        json!({
            "schema": JSON_SCHEMA, "was_frozen": self.0.is_some(), "reason": reason, "frozen_at": at,
            "run": run,
        })
    }
}
