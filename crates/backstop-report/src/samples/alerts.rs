//! One of each alert.

use super::{Sample, Texts};
use crate::{Alert, alert};
use backstop_core::{Reason, Timestamp};

pub(crate) fn alerts(texts: &Texts) -> Vec<Sample> {
    let given = Alert {
        operation: texts.check.clone(),
        project: texts.file.clone(),
        cause: Some(texts.message.clone()),
        attempts: 4,
        run: "r-7f3a".parse().ok(),
        next: Some(texts.command.clone()),
        outcome: "halted",
        ..Alert::new(Reason::TestFailure, Timestamp::from_millis(1_760_000_000_000))
    };
    let key = vec![texts.file.clone()];
    vec![Sample {
        name: "alert",
        notice: alert(&given),
        cause: texts.message.clone(),
        operation: texts.check.clone(),
        key,
    }]
}
