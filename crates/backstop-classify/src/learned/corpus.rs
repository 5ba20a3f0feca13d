//! The corpora that the table is made from: labelled failures, one JSON object a line.

use crate::row::read_row;
use backstop_core::{Reason, Sha256, Signal, Timestamp};
use serde::Deserialize;
use std::fmt;

/// How much of a line may be one row.
const ROW_BYTES_MAX: usize = 4 << 20;

/// One labelled failure.
#[derive(Debug, Clone)]
pub struct LabelledFailure {
    /// Its id.
    pub id: String,
    /// The tool that failed, in lower case.
    pub tool: String,
    /// What was seen.
    pub signal: Signal,
    /// Its reason; `None` for a success.
    pub reason: Option<Reason>,
    /// The reasons that are right, too.
    pub also: Vec<Reason>,
    /// Whether the same again has a fair chance.
    pub retryable: bool,
}

/// A row that cannot be used, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for BadRow {}

#[derive(Deserialize)]
struct Labels {
    id: String,
    tool: String,
    kind: String,
    #[serde(default)]
    alt_kinds: Option<Vec<String>>,
    #[serde(default)]
    retryable: bool,
}

/// The reason that a finer one counts as, in labels.
pub fn canonical(reason: Reason) -> Reason {
    match reason {
        Reason::OutOfMemory | Reason::DiskFull => Reason::ResourceExhausted,
        Reason::InvalidParameters => Reason::InvalidUsage,
        Reason::FlakyTest => Reason::TestFailure,
        Reason::ServiceDown => Reason::NetworkTransient,
        other => other,
    }
}

/// Reads all rows of a corpus; the first bad one is refused by its line.
pub fn read_corpus(file: &str, text: &str) -> Result<Vec<LabelledFailure>, BadRow> {
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row =
            read_labelled(line).map_err(|what| BadRow { file: file.to_owned(), line: index + 1, what })?;
        rows.push(row);
    }
    Ok(rows)
}

fn read_labelled(line: &str) -> Result<LabelledFailure, String> {
    if line.len() > ROW_BYTES_MAX {
        return Err(format!("a row has at most {ROW_BYTES_MAX} bytes"));
    }
    let (_, signal) = read_row(line.as_bytes(), Timestamp::from_millis(0))?;
    let labels: Labels = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let parse = |code: &str| code.parse::<Reason>().map_err(|_| format!("`{code}` is no reason"));
    if labels.id.trim().is_empty() || labels.tool.trim().is_empty() {
        return Err("a row has an `id` and a `tool`".to_owned());
    }
    let reason = if labels.kind == "success" { None } else { Some(parse(&labels.kind)?) };
    let also = labels.alt_kinds.unwrap_or_default();
    let also = also.iter().filter(|code| *code != "success").map(|code| parse(code).map(canonical));
    Ok(LabelledFailure {
        id: labels.id,
        tool: labels.tool.to_lowercase(),
        signal,
        reason: reason.map(canonical),
        also: also.collect::<Result<_, _>>()?,
        retryable: labels.retryable,
    })
}

impl LabelledFailure {
    /// Whether this reason is the labelled one or one that is accepted.
    pub fn accepts(&self, reason: Reason) -> bool {
        self.reason == Some(canonical(reason)) || self.also.contains(&canonical(reason))
    }
}

/// Whether a file of the corpus is for making the table. Held-out rows are only ever scored.
pub fn is_for_training(file: &str) -> bool {
    file.ends_with(".jsonl") && !file.contains("held_out") && file != "limits.jsonl"
}

/// Whether a tool is held out: no rule is written for it and no table made from it, so that it can
/// say how good the classifier is on tools that it has never seen. A fifth of all tools is.
pub fn is_held_out(tool: &str) -> bool {
    let digest = Sha256::of(tool.to_lowercase()).bytes();
    // 256 leaves 1 when it is divided by 5: the remainder of the number is that of its digits' sum.
    digest.iter().map(|byte| u32::from(*byte)).sum::<u32>() % 5 == 0
}

/// The version of the data: 16 hexadecimal digits over the names and bytes of all files.
pub fn data_version(files: &[(String, String)]) -> String {
    let mut sorted: Vec<&(String, String)> = files.iter().collect();
    sorted.sort();
    let mut digest = Sha256::new();
    for (name, text) in sorted {
        digest.update(name);
        digest.update([0]);
        digest.update(text);
        digest.update([0]);
    }
    digest.hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_row_is_refused_by_its_line() {
        let good =
            r#"{"id":"a-1","tool":"A","exit_code":1,"stderr":"x","kind":"crash","alt_kinds":["disk_full"]}"#;
        let rows = read_corpus("c.jsonl", &format!("{good}\n\n{good}\n")).unwrap();
        assert_eq!((rows.len(), &*rows[0].tool), (2, "a"));
        assert!(rows[0].accepts(Reason::DiskFull) && !rows[0].accepts(Reason::LintError));
        for (bad, what) in [
            (r#"{"id":"a","tool":"a","exit_code":1,"kind":"frob"}"#, "`frob` is no reason"),
            (r#"{"id":"","tool":"a","exit_code":1,"kind":"crash"}"#, "a row has an `id` and a `tool`"),
            ("nonsense", "a line is one JSON object"),
        ] {
            let error = read_corpus("c.jsonl", &format!("{good}\n{bad}\n")).unwrap_err();
            assert_eq!(error.to_string(), format!("c.jsonl:2: {what}"));
        }
        assert!(read_corpus("c.jsonl", r#"{"id":"a","exit_code":1,"kind":"crash"}"#).is_err());
    }

    #[test]
    fn the_version_is_that_of_names_and_bytes() {
        let files = |a: &str, b: &str| vec![(a.to_owned(), b.to_owned()), ("z".to_owned(), "y".to_owned())];
        let version = data_version(&files("a", "b"));
        assert_eq!(version.len(), 16);
        assert_ne!(version, data_version(&files("a", "c")));
        assert_ne!(version, data_version(&files("c", "b")));
        assert!(is_for_training("dev.jsonl") && !is_for_training("held_out.jsonl"));
    }
}
