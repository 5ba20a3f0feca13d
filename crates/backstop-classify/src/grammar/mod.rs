//! What all tools share, read once: how a diagnostic is written, how an inner command's exit code
//! or a status is told, what an exception's name says, what is missing, how a usage text looks, how
//! findings are counted.
//!
//! The grammar knows no tool. It reads the lines that an excerpt kept, only where no rule of a tool
//! knows the failure, and its findings weigh less than a rule. It decides nothing by itself: each
//! finding names a kind, whose share of right answers was measured.

mod call;
pub(crate) mod diagnostic;
mod exception;
mod inner_code;
mod missing;
mod overflow;
mod phrases;
mod summary;
mod usage;
mod words;

use backstop_core::Reason;
use diagnostic::Diagnostic;

/// What the kinds of findings begin with that are phrases.
pub(crate) const PHRASE: &str = "grammar.says_";

/// How many findings are kept.
const FINDINGS_MAX: usize = 24;
/// How many diagnostics are kept.
const DIAGNOSTICS_MAX: usize = 50;

/// One thing that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What was recognised, such as `grammar.missing_file`.
    pub(crate) kind: &'static str,
    /// What it speaks for, if for anything by itself.
    pub(crate) reason: Option<Reason>,
    /// The line.
    pub(crate) text: String,
}

/// All that was recognised in the lines of a failure.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) findings: Vec<Finding>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Finding {
    /// The HTTP status that it is about.
    pub(crate) fn status(&self) -> Option<u16> {
        let is_status = self.kind == "grammar.inner_status";
        is_status.then(|| inner_code::statuses(&self.text.to_ascii_lowercase()).next())?
    }
}

/// Reads lines. `status` says what an HTTP status stands for.
pub(crate) fn read(lines: &[String], command: &str, status: &dyn Fn(u16) -> Option<Reason>) -> Reading {
    let mut reading = Reading::default();
    let mut usage = usage::Usage::default();
    let parts = call::parts(command);
    let mut spoken: Vec<Finding> = Vec::new();
    for line in lines {
        let lower = line.to_ascii_lowercase();
        let mut add = |kind, reason| {
            if reading.findings.len() == FINDINGS_MAX {
                reading.findings.remove(0);
            }
            reading.findings.push(Finding { kind, reason, text: line.trim().to_owned() });
        };
        let complaint = usage.read(&lower);
        if let Some(kind) = complaint {
            add(kind, Some(Reason::InvalidUsage));
        }
        if usage.is_open() {
            // An option's description speaks of timeouts and files, and of none that failed.
            continue;
        }
        let said = phrases::read(&lower).into_iter().map(|(kind, reason)| (kind, Some(reason)));
        for (kind, reason) in said.chain(call::named(&lower, &parts).map(|kind| (kind, None))) {
            spoken.retain(|known| known.kind != kind);
            spoken.push(Finding { kind, reason, text: line.trim().to_owned() });
        }
        if complaint.is_some() {
            continue;
        }
        if overflow::is_overflow(&lower) {
            add("grammar.overflow", Some(Reason::ContextOverflow));
        }
        if let Some((kind, reason)) = missing::read(&lower) {
            add(kind, Some(reason));
        }
        if let Some((kind, reason)) = exception::read(line) {
            add(kind, reason);
        }
        if let Some((kind, reason)) = inner_code::read(&lower, status) {
            add(kind, Some(reason));
        }
        if let Some((kind, reason)) = summary::read(&lower, command) {
            add(kind, Some(reason));
        }
        if reading.diagnostics.len() < DIAGNOSTICS_MAX
            && let Some(diagnostic) = diagnostic::read(line)
        {
            reading.diagnostics.push(diagnostic);
        }
    }
    if let Some((kind, reason, text)) = diagnostic::speaks_for(&reading.diagnostics) {
        reading.findings.insert(0, Finding { kind, reason: Some(reason), text });
    }
    reading.findings.extend(spoken);
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(&'static str, Option<Reason>)> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let status = |code| (code == 503).then_some(Reason::NetworkTransient);
        let findings = read(&lines, "tool x", &status).findings.into_iter();
        // Phrases are for the model to weigh, whatever became of what they speak of.
        findings.filter(|f| !f.kind.starts_with(PHRASE)).map(|f| (f.kind, f.reason)).collect()
    }

    #[test]
    fn a_failure_of_no_known_tool_is_read() {
        for (text, reason) in [
            ("frob: cannot find package 'left-pad'", Reason::DependencyMissing),
            ("frob: input file 'a.txt' not found", Reason::InvalidUsage),
            ("frob: table 'users' does not exist", Reason::Validation),
            ("com.example.ConnectionRefusedException: localhost", Reason::NetworkTransient),
            ("NoSuchFileException: /etc/frob", Reason::InvalidUsage),
            ("sub-task exited with code 127", Reason::DependencyMissing),
            ("server returned status 503", Reason::NetworkTransient),
            ("frob: unrecognized option '--frobnicate'", Reason::InvalidUsage),
            ("Ran 12 tests, 3 failed", Reason::TestFailure),
            ("a/b.frob:12:3: warning: unused frob [unused-frob]", Reason::LintError),
            ("the prompt has 9000 tokens, which exceeds the maximum of 8192", Reason::ContextOverflow),
        ] {
            let kinds = kinds(text);
            assert!(kinds.iter().any(|(_, found)| *found == Some(reason)), "{text}: {kinds:?}");
        }
    }

    #[test]
    fn phrases_and_named_parts_are_findings_each_once_and_not_of_a_usage_text() {
        let text = "frob: wrong password for b.key\nfrob: bad password\nusage: frob [x]\n  --lock  is locked";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let findings = read(&lines, "frob open b.key", &|_| None).findings;
        let count = |kind: &str| findings.iter().filter(|finding| finding.kind == kind).count();
        assert_eq!((count("grammar.says_password"), count("grammar.says_held")), (1, 0), "{findings:?}");
        assert_eq!(count("grammar.names_argument") + count("grammar.names_file"), 1, "{findings:?}");
    }

    #[test]
    fn what_an_option_describes_has_not_happened() {
        let text = "usage: frob [options]\n  --timeout S   connection timed out after S\n  --file F   file not found is an error";
        assert_eq!(kinds(text), [("grammar.usage", Some(Reason::InvalidUsage))]);
    }

    #[test]
    fn what_went_well_says_nothing() {
        assert_eq!(kinds("12 tests, 0 failed\nall files found\nexit code 0\n0 errors, 0 warnings"), []);
    }
}
