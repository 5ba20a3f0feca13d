//! Stack traces: type, message, innermost user frame and root cause of an uncaught exception.
//!
//! A rule finds the line where a trace begins; these readers take it from there. They must not
//! decide what an exception means: that is what rules are for.

mod go;
mod java;
mod javascript;
mod python;
mod ruby;
mod rust;

use crate::rule::Trace;
use backstop_core::{Exception, SafeText};

/// How many lines of a trace are read.
const LINES_MAX: usize = 400;
/// How much of the text is read for one trace.
const TRACE_BYTES_MAX: usize = 12 << 10;
/// How much of a message is kept.
const MESSAGE_BYTES_MAX: usize = 600;

/// The exceptions that were seen: the last one counts, because the last failure decides.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    pub(crate) last: Option<(u64, Exception)>,
}

/// One frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Frame {
    file: String,
    line: Option<u64>,
    function: Option<String>,
}

/// A trace as it was read.
#[derive(Debug, Clone, Default)]
struct Read {
    kind: String,
    message: String,
    /// Frames, innermost first.
    frames: Vec<Frame>,
    /// `Type: message` of the root of the cause chain.
    root: Option<String>,
}

/// Reads the trace that begins at the start of `body`; `before` is the text above it.
pub(crate) fn read(language: Trace, body: &[u8], before: &[u8], line: u64, exceptions: &mut Exceptions) {
    let body = &body[..body.len().min(TRACE_BYTES_MAX)];
    let text = String::from_utf8_lossy(body);
    let lines: Vec<&str> = text.lines().take(LINES_MAX).map(|l| l.trim_end_matches('\r')).collect();
    let (name, read) = match language {
        Trace::Python => ("python", python::read(&lines)),
        Trace::JavaScript => ("javascript", javascript::read(&lines)),
        Trace::Java => ("java", java::read(&lines)),
        Trace::Go => ("go", go::read(&lines)),
        Trace::Rust => ("rust", rust::read(&lines)),
        Trace::Ruby => ("ruby", ruby::read(&lines)),
    };
    let Some(read) = read else { return };
    // An exception is chained to the one that was being handled: the trace above is its root.
    let root = read.root.clone().or_else(|| chained_root(language, before, exceptions));
    let first = read.frames.first().filter(|f| !is_runtime(&f.file));
    let frame = read.frames.iter().find(|f| is_user(&f.file)).or(first).cloned().unwrap_or_default();
    let exception = Exception {
        language: name.to_owned(),
        kind: SafeText::new(read.kind),
        message: SafeText::new(cut(&read.message)),
        file: (!frame.file.is_empty()).then(|| SafeText::new(frame.file)),
        line: frame.line,
        function: frame.function.map(SafeText::new),
        root: root.map(SafeText::new),
    };
    exceptions.last = Some((line, exception));
}

/// Python prints the root first and says in between that there is more to come.
fn chained_root(language: Trace, before: &[u8], exceptions: &Exceptions) -> Option<String> {
    if language != Trace::Python {
        return None;
    }
    let tail = &before[before.len().saturating_sub(400)..];
    let tail = String::from_utf8_lossy(tail);
    let link = tail.lines().rev().find(|l| !l.trim().is_empty())?;
    let chained =
        link.contains("the direct cause of the following") || link.contains("another exception occurred");
    let (_, earlier) = exceptions.last.as_ref().filter(|_| chained)?;
    Some(match &earlier.root {
        Some(root) => root.raw().to_owned(),
        None if earlier.message.is_empty() => earlier.kind.raw().to_owned(),
        None => format!("{}: {}", earlier.kind.raw(), earlier.message.raw()),
    })
}

/// Whether a file is part of the runtime itself, where nobody can look.
fn is_runtime(file: &str) -> bool {
    ["node:", "<frozen", "<internal"].iter().any(|mark| file.starts_with(mark))
}

/// Whether a file is the user's own, not a library's or the runtime's.
fn is_user(file: &str) -> bool {
    const FOREIGN: &[&str] = &[
        "site-packages",
        "dist-packages",
        "/lib/python",
        "node_modules",
        "node:",
        "internal/",
        "/rustc/",
        "/.cargo/registry/",
        "/usr/lib/go",
        "/usr/local/go/",
        "/pkg/mod/",
        "/gems/",
        "/lib/ruby/",
        "<frozen",
        "<string>",
        "library/std",
        "library/core",
        "/toolchains/",
        "webpack:",
        "native code",
        "java.base",
        "jdk.internal",
        "/.pyenv/versions/",
        "<internal",
    ];
    !file.is_empty() && !FOREIGN.iter().any(|mark| file.contains(mark))
}

fn cut(message: &str) -> &str {
    message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)].trim()
}

/// `Type: message`, where the type looks like a type.
fn typed(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (kind, message) = match line.split_once(": ") {
        Some((kind, message)) => (kind, message),
        None => (line.trim_end_matches(':'), ""),
    };
    let word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | ':');
    let fits = !kind.is_empty()
        && kind.len() < 200
        && kind.chars().all(word)
        && kind.starts_with(|c: char| c.is_alphabetic() || c == '_');
    fits.then(|| (kind.to_owned(), message.to_owned()))
}

fn number(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}
