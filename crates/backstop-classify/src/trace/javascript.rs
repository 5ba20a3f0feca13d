//! ```text
//! TypeError: Cannot read properties of undefined (reading 'host')
//!     at connect (/app/db.js:2:17)
//!   [cause]: Error: connect ECONNREFUSED 127.0.0.1:5432
//! ```

use super::{Frame, Read, number, typed};

pub(super) fn read(lines: &[&str]) -> Option<Read> {
    let first = lines.first()?.trim().trim_start_matches("Uncaught ").trim_start_matches("[cause]: ");
    let (kind, message) = typed(first).or_else(|| {
        // `Error [ERR_X]: message`
        let (kind, rest) = first.split_once(" [")?;
        let (code, message) = rest.split_once("]")?;
        Some((format!("{kind} [{code}]"), message.trim_start_matches(": ").to_owned()))
    })?;
    let mut read = Read { kind, message, ..Read::default() };
    for line in &lines[1..] {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("at ") {
            if read.root.is_none() {
                read.frames.extend(frame(rest));
            }
        } else if let Some(cause) = text.strip_prefix("[cause]: ") {
            read.root = Some(cause.trim_end_matches(['{', ' ']).to_owned());
        } else if let Some(cause) = text.strip_prefix("Caused by: ") {
            read.root = Some(cause.to_owned());
        } else if text.is_empty() && !read.frames.is_empty() && read.root.is_none() {
            break;
        }
    }
    (!read.frames.is_empty()).then_some(read)
}

/// `f (/app/a.js:1:2)`, `async f (file:///app/a.mjs:1:2)`, `/app/a.js:1:2`
fn frame(text: &str) -> Option<Frame> {
    let (function, place) = match text.rsplit_once(" (") {
        Some((function, place)) => {
            (Some(function.trim_start_matches("async ").to_owned()), place.trim_end_matches(')'))
        }
        None => (None, text.trim_start_matches("async ")),
    };
    let place = place.trim_start_matches("file://");
    let (rest, _column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some(Frame { file: file.to_owned(), line: number(line), function })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_cause_is_the_root() {
        let text = "TypeError: fetch failed\n    at node:internal/deps/undici:1:2\n    at main (/app/a.js:3:4) {\n  [cause]: Error: connect ECONNREFUSED 127.0.0.1:1\n      at x (node:net:1:1) {\n";
        let lines: Vec<_> = text.lines().collect();
        let read = super::read(&lines).unwrap();
        assert_eq!(read.root.as_deref(), Some("Error: connect ECONNREFUSED 127.0.0.1:1"));
        assert_eq!(read.frames[1].file, "/app/a.js");
    }
}
