//! One of each alert.

use super::{Sample, Texts};
use crate::{Alert, alert, notify_test};
use backstop_core::{Reason, SafeText, Timestamp};

pub(crate) fn alerts(texts: &Texts) -> Vec<Sample> {
    let at = Timestamp::from_millis(1_760_000_000_000);
    let halted = Alert {
        operation: texts.check.clone(),
        project: texts.file.clone(),
        cause: Some(texts.message.clone()),
        attempts: 4,
        run: "r-7f3a".parse().ok(),
        next: Some(texts.command.clone()),
        outcome: "halted",
        ..Alert::new(Reason::TestFailure, at)
    };
    let frozen = Alert {
        frozen: Some(texts.problem.clone()),
        part: Some(texts.test.clone()),
        ..Alert { outcome: "failed", ..halted.clone() }
    };
    let sample = |name, given: &Alert, key| Sample {
        name,
        notice: alert(given),
        cause: texts.message.clone(),
        operation: texts.check.clone(),
        key,
    };
    vec![
        sample("alert", &halted, vec![texts.file.clone()]),
        sample("alert_frozen", &frozen, vec![texts.file.clone(), texts.problem.clone(), texts.test.clone()]),
        Sample {
            name: "notify_test",
            notice: notify_test(&texts.tool, at),
            cause: SafeText::default(),
            operation: texts.tool.clone(),
            key: vec![],
        },
    ]
}
