//! What a failed gate is.
//!
//! The classifier reads the output. Where it finds nothing, the gate's name says what it is. What
//! is not the work's doing (the network, a full disk, a missing tool) stays what it is.

use super::missing::missing_tool;
use super::{Gate, GateError, Passes};
use backstop_classify::Classifier;
use backstop_core::{Evidence, Fault, Reason, SafeText, Signal, Timestamp};
use backstop_exec::{Ended, StartError};

/// How many files of a listing are kept.
const FILES_MAX: usize = 100;
/// How much of a last line is told.
const LINE_CHARS_MAX: usize = 300;
/// How much of one line of a listing is kept.
const FILE_BYTES_MAX: usize = 1000;

/// What it is that a command has ended so. Nothing, where it passed.
pub(super) fn ended(
    gate: &Gate,
    ended: &Ended,
    tail: &[u8],
    classifier: &Classifier,
    command: &str,
    at: Timestamp,
) -> Option<Fault> {
    if ended.is_success() {
        let speaks = gate.passes == Passes::SaysNothing && !ended.stdout.is_empty();
        return speaks.then(|| listing(gate, ended, command));
    }
    let fault = ended.fault(classifier, command, at)?;
    Some(match fault.reason {
        Reason::Timeout | Reason::Interrupted => fault,
        _ => explained(gate, fault, ended.status.code, tail),
    })
}

/// What it is that a command could not be started. That the folder is not there is nobody's
/// finding.
pub(super) fn not_started(
    gate: &Gate,
    error: StartError,
    classifier: &Classifier,
    command: &str,
) -> Result<Fault, GateError> {
    let said = SafeText::new(error.to_string());
    let mut fault = match error {
        StartError::NotFound { program } => dependency(gate, Fault::new(Reason::DependencyMissing), &program),
        StartError::NotExecutable { .. } => Fault::new(Reason::PermissionDenied),
        StartError::Folder { folder, error } => return Err(GateError::Folder { folder, error }),
        StartError::System { .. } => {
            let signal = Signal {
                command: Some(command.to_owned()),
                exit: Some(125),
                stderr: said.raw().as_bytes().to_vec(),
                ..Signal::default()
            };
            classifier
                .classify(&signal)
                .filter(|fault| fault.reason != Reason::Unknown)
                .unwrap_or_else(|| Fault::new(Reason::ResourceExhausted))
        }
    };
    fault.cause = Some(said);
    Ok(fault)
}

/// A gate whose every line is a finding, and that had some.
fn listing(gate: &Gate, ended: &Ended, command: &str) -> Fault {
    let mut fault = Fault::new(gate.kind().reason().unwrap_or(Reason::Unknown));
    let bytes = ended.stdout.head();
    let lines = || bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let kept = |line: &[u8]| SafeText::from_bytes(&line[..line.len().min(FILE_BYTES_MAX)]);
    fault.facts.files = lines().take(FILES_MAX).map(kept).collect();
    let count = lines().count();
    if ended.stdout.bytes() == bytes.len() as u64 {
        fault.facts.failed_count = Some(count as u64);
    }
    let first = fault.facts.files.first().map(|file| file.raw().to_owned()).unwrap_or_default();
    let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    fault.cause = Some(SafeText::new(format!("`{command}` lists {first}{more}")));
    let text = SafeText::new("exit 0, and it wrote what should be nothing");
    fault.evidence = vec![Evidence { rule: "gate.says_nothing".to_owned(), line: None, text, stream: None }];
    advise(gate, &mut fault);
    fault
}

/// What the classifier says, and what it cannot know: which tool the gate needs, and what its name
/// means.
fn explained(gate: &Gate, fault: Fault, code: Option<i32>, tail: &[u8]) -> Fault {
    let tool = missing_tool(&gate.check, fault.facts.missing.as_ref(), code, tail);
    if let Some(tool) = tool {
        return dependency(gate, fault, &tool);
    }
    let mut fault = match (fault.reason, gate.kind().reason()) {
        (Reason::Unknown, Some(reason)) => renamed(fault, reason, gate),
        _ => fault,
    };
    if fault.cause.is_none() {
        fault.cause = Some(SafeText::new(match last_line(tail) {
            Some(line) => format!("gate {}: {line}", gate.name),
            None => format!("gate {} exited with {} and said nothing", gate.name, code.unwrap_or(-1)),
        }));
    }
    advise(gate, &mut fault);
    fault
}

/// The last line that says something.
fn last_line(tail: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(tail);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(SafeText::new(line).line(LINE_CHARS_MAX))
}

/// The gate's tool is missing.
fn dependency(gate: &Gate, fault: Fault, tool: &str) -> Fault {
    let known = fault.reason == Reason::DependencyMissing && fault.facts.missing.is_some();
    let action = fault.suggested_action.clone();
    let mut fault = if fault.reason == Reason::DependencyMissing {
        fault
    } else {
        renamed(fault, Reason::DependencyMissing, gate)
    };
    fault.facts.missing.get_or_insert_with(|| SafeText::new(tool));
    fault.suggested_action = match &gate.install {
        Some(install) => SafeText::new(format!("install it: `{install}`")),
        None if known => action,
        None => SafeText::new(format!("install `{tool}`, or put it on the PATH")),
    };
    fault
}

/// The same findings under another reason.
fn renamed(fault: Fault, reason: Reason, gate: &Gate) -> Fault {
    let mut named = Fault::new(reason);
    named.cause = fault.cause;
    named.facts = fault.facts;
    named.evidence = fault.evidence;
    let text = SafeText::new(format!("gate `{}` failed", gate.name));
    named.evidence.insert(0, Evidence { rule: "gate.failed".to_owned(), line: None, text, stream: None });
    named
}

/// A gate that has a fix knows best what to type.
fn advise(gate: &Gate, fault: &mut Fault) {
    if let (Reason::LintError | Reason::FormatError, Some(fix)) = (fault.reason, &gate.fix) {
        let action = format!("run `{}`, then `{}`", fix.shown(), gate.check.shown());
        fault.suggested_action = SafeText::new(action);
    }
}
