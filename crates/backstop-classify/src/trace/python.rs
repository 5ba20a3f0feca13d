//! ```text
//! Traceback (most recent call last):
//!   File "app.py", line 3, in main
//!     run()
//! KeyError: 'x'
//! ```

use super::{Frame, Read, number, typed};

pub(super) fn read(lines: &[&str]) -> Option<Read> {
    // An exception group draws its traces into a margin.
    let margin = lines.first()?.find("Traceback").or_else(|| lines[0].find("Exception Group"))?;
    let mut read = Read::default();
    for line in &lines[1..] {
        let line = line.get(margin.min(line.len())..)?;
        if let Some(frame) = frame(line) {
            read.frames.insert(0, frame);
        } else if !line.starts_with(' ')
            && !line.trim().is_empty()
            && !line.trim_start().starts_with(['|', '+'])
        {
            let (kind, message) = typed(line)?;
            read.kind = kind;
            read.message = message;
            return Some(read);
        }
    }
    None
}

/// `  File "x.py", line 3, in f`
fn frame(line: &str) -> Option<Frame> {
    let rest = line.trim_start().trim_start_matches("| ").trim_start().strip_prefix("File \"")?;
    let (file, rest) = rest.split_once('"')?;
    let rest = rest.strip_prefix(", line ")?;
    let function = rest.split_once(", in ").map(|(_, f)| f.to_owned());
    Some(Frame { file: file.to_owned(), line: number(rest), function })
}

#[cfg(test)]
mod tests {
    #[test]
    fn frames_are_innermost_first() {
        let text = "Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\n    f()\n  File \"b.py\", line 2, in f\n    x\n    ^\nKeyError: 'k'\n";
        let lines: Vec<_> = text.lines().collect();
        let read = super::read(&lines).unwrap();
        assert_eq!((read.kind.as_str(), read.message.as_str()), ("KeyError", "'k'"));
        assert_eq!(read.frames[0].file, "b.py");
        assert_eq!(read.frames[0].line, Some(2));
        assert_eq!(read.frames[0].function.as_deref(), Some("f"));
        assert!(super::read(&["Traceback (most recent call last):"]).is_none());
    }
}
