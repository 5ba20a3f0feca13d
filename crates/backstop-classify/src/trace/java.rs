//! ```text
//! Exception in thread "main" java.lang.IllegalStateException: no config
//!     at app.Main.load(Main.java:12)
//! Caused by: java.io.FileNotFoundException: x
//! ```

use super::{Frame, Read, number, typed};

pub(super) fn read(lines: &[&str]) -> Option<Read> {
    let first = lines.first()?.trim();
    let first = match first.strip_prefix("Exception in thread \"") {
        Some(rest) => rest.split_once("\" ").map(|(_, rest)| rest)?,
        None => first,
    };
    let (kind, message) = typed(first)?;
    let mut read = Read { kind, message, ..Read::default() };
    for line in &lines[1..] {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("at ") {
            if read.root.is_none() {
                read.frames.extend(frame(rest));
            }
        } else if let Some(cause) = text.strip_prefix("Caused by: ") {
            // The last one is the root.
            read.root = Some(cause.to_owned());
        } else if !text.starts_with("...") && !text.starts_with("Suppressed:") && !read.frames.is_empty() {
            break;
        }
    }
    (!read.frames.is_empty()).then_some(read)
}

/// `app.Main.load(Main.java:12)`
fn frame(text: &str) -> Option<Frame> {
    let (function, place) = text.split_once('(')?;
    let place = place.trim_end_matches(')');
    let (file, line) = place.split_once(':').unwrap_or((place, ""));
    const RUNTIME: &[&str] = &[
        "java.",
        "javax.",
        "jdk.",
        "sun.",
        "org.junit.",
        "scala.",
        "kotlin.",
        "org.gradle.",
        "org.apache.maven.",
    ];
    let foreign = RUNTIME.iter().any(|p| function.trim_start_matches("java.base/").starts_with(p))
        || text.starts_with("java.base/");
    let file = if foreign { format!("java.base {file}") } else { file.to_owned() };
    Some(Frame { file, line: number(line), function: Some(function.to_owned()) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_cause_is_the_root() {
        let text = "Exception in thread \"main\" java.lang.RuntimeException: a\n\tat app.Main.run(Main.java:5)\nCaused by: java.io.IOException: b\n\tat app.X.y(X.java:1)\n\t... 1 more\nCaused by: java.net.ConnectException: c\n";
        let lines: Vec<_> = text.lines().collect();
        let read = super::read(&lines).unwrap();
        assert_eq!(read.root.as_deref(), Some("java.net.ConnectException: c"));
        assert_eq!(read.frames[0].line, Some(5));
    }
}
