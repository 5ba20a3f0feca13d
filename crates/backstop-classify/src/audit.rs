//! Which rules are mostly wrong: all rules are run over labelled failures and marked logs, and what
//! they say is compared with the labels.

use crate::Classifier;
use crate::learned::{BadRow, LabelledFailure, read_corpus};
use backstop_core::{Reason, Signal};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// How one rule did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleRecord {
    /// The rule.
    pub id: String,
    /// How many failures it decided.
    pub decided: u32,
    /// How many of those it decided wrongly.
    pub wrong: u32,
    /// How many failures it matched, deciding or not.
    pub matched: u32,
    /// How many of those have another reason.
    pub misfired: u32,
    /// How many tools and logs those failures are of.
    pub tools: usize,
    /// An id of a failure that it decided wrongly.
    pub example: Option<String>,
}

impl RuleRecord {
    /// Whether most of what it decided is wrong, in at least `least` failures.
    pub fn is_mostly_wrong(&self, least: u32) -> bool {
        self.decided >= least && self.wrong * 2 > self.decided
    }
}

/// How all rules did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// How many failures were looked at.
    pub rows: u32,
    /// Each rule that matched something, the one with most wrong decisions first.
    pub rules: Vec<RuleRecord>,
}

/// A log with the passage that people marked as the reason.
#[derive(Deserialize)]
struct MarkedLog {
    id: String,
    log: String,
    chunk: String,
}

/// Collects what rules did, corpus by corpus.
#[derive(Debug)]
pub struct Auditor<'c> {
    classifier: &'c Classifier,
    rows: u32,
    records: BTreeMap<String, (RuleRecord, BTreeSet<String>)>,
}

impl<'c> Auditor<'c> {
    /// An audit of the rules of this classifier.
    pub fn new(classifier: &'c Classifier) -> Self {
        Self { classifier, rows: 0, records: BTreeMap::new() }
    }

    /// Runs all rules over a corpus: rows with labels, or logs with a marked passage.
    pub fn read(&mut self, file: &str, text: &str) -> Result<(), BadRow> {
        let is_logs = text.lines().next().is_some_and(|line| line.contains("\"chunk\""));
        if !is_logs {
            read_corpus(file, text)?.iter().for_each(|row| self.row(row));
            return Ok(());
        }
        for (index, line) in text.lines().enumerate() {
            let log: MarkedLog = serde_json::from_str(line).map_err(|error| BadRow {
                file: file.to_owned(),
                line: index + 1,
                what: error.to_string(),
            })?;
            self.log(&log);
        }
        Ok(())
    }

    fn row(&mut self, row: &LabelledFailure) {
        let Some(seen) = self.classifier.observe(&row.signal) else { return };
        self.rows += 1;
        for (id, reason) in &seen.matched {
            let record = self.record(id, &row.tool);
            record.matched += 1;
            record.misfired += u32::from(*reason != Reason::Unknown && !row.accepts(*reason));
        }
        if let Some(id) = seen.rule.filter(|_| seen.reason != Reason::Unknown) {
            self.decision(&id, &row.tool, &row.id, row.accepts(seen.reason));
        }
    }

    /// A log's deciding rule is right if the line that it cites lies in the marked passage.
    fn log(&mut self, row: &MarkedLog) {
        let signal = Signal::exited(1);
        let mut session = self.classifier.session(&signal);
        session.feed(row.log.as_bytes());
        let Some(fault) = session.finish() else { return };
        self.rows += 1;
        let Some(evidence) = fault.evidence.first() else { return };
        let cited = |text: &str| text.trim().len() >= 4 && row.chunk.contains(text.trim());
        let cause = fault.cause.as_ref().is_some_and(|cause| cited(cause.raw()));
        let right = cause || fault.evidence.iter().any(|piece| cited(piece.text.raw()));
        self.decision(&evidence.rule.clone(), &row.id, &row.id, right);
    }

    fn decision(&mut self, rule: &str, tool: &str, row: &str, right: bool) {
        let record = self.record(rule, tool);
        record.decided += 1;
        if !right {
            record.wrong += 1;
            record.example.get_or_insert_with(|| row.to_owned());
        }
    }

    fn record(&mut self, id: &str, tool: &str) -> &mut RuleRecord {
        let new = || (RuleRecord { id: id.to_owned(), ..RuleRecord::default() }, BTreeSet::new());
        let (record, tools) = self.records.entry(id.to_owned()).or_insert_with(new);
        tools.insert(tool.to_owned());
        record.tools = tools.len();
        record
    }

    /// How all rules did.
    pub fn finish(self) -> Audit {
        let mut rules: Vec<RuleRecord> = self.records.into_values().map(|(record, _)| record).collect();
        rules.sort_by(|a, b| (b.wrong, b.misfired).cmp(&(a.wrong, a.misfired)).then_with(|| a.id.cmp(&b.id)));
        Audit { rows: self.rows, rules }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_mostly_wrong_is_found() {
        let pack = crate::pack::parse(
            "t.toml",
            "[[rule]]\nid = \"t.rebuild\"\nreason = \"validation\"\nweight = 45\nliterals = [\"out of date\"]\nmatch = [\"x is out of date\"]\nmiss = [\"y\"]\n",
        )
        .unwrap();
        let classifier = Classifier::only(pack).unwrap();
        let row = |id: u32, kind: &str| {
            format!(
                "{{\"id\":\"r-{id}\",\"tool\":\"t{id}\",\"exit_code\":1,\"stdout\":\"it is out of date\",\"kind\":\"{kind}\"}}\n"
            )
        };
        let mut auditor = Auditor::new(&classifier);
        let rows = row(1, "crash") + &row(2, "lint_error") + &row(3, "validation");
        auditor.read("a.jsonl", &rows).unwrap();
        auditor
            .read("b.jsonl", "{\"id\":\"l\",\"log\":\"it is out of date\\nboom\",\"chunk\":\"boom\"}")
            .unwrap();
        assert_eq!(auditor.read("c.jsonl", "{}").unwrap_err().line, 1);
        let audit = auditor.finish();
        let record = &audit.rules[0];
        assert_eq!(
            (audit.rows, &*record.id, record.decided, record.wrong, record.tools),
            (4, "t.rebuild", 4, 3, 4)
        );
        assert!(record.is_mostly_wrong(4) && !record.is_mostly_wrong(5));
        assert_eq!(record.example.as_deref(), Some("r-1"));
    }
}
