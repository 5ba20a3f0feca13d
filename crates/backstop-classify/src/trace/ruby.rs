//! ```text
//! app.rb:3:in 'Object#load': no config (RuntimeError)
//!     from app.rb:7:in '<main>'
//! ```

use super::{Frame, Read, number};

pub(super) fn read(lines: &[&str]) -> Option<Read> {
    let first = lines.first()?.trim();
    let frame = frame(first)?;
    let (_, rest) = first.split_once(":in ")?;
    let (_, rest) = rest.split_once(": ")?;
    let (message, kind) = match rest.rsplit_once(" (") {
        Some((message, kind)) => (message, kind.trim_end_matches(')')),
        None => (rest, "RuntimeError"),
    };
    let mut read = Read { kind: kind.to_owned(), message: message.to_owned(), ..Read::default() };
    read.frames.push(frame);
    for line in &lines[1..] {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("from ") {
            if read.root.is_none() {
                read.frames.extend(self::frame(rest));
            }
        } else if text.contains(":in ") && text.ends_with(')') {
            // The cause comes after the frames, in the same form.
            read.root =
                text.split_once(":in ").and_then(|(_, r)| r.split_once(": ")).map(|(_, r)| r.to_owned());
        } else if !text.is_empty() {
            break;
        }
    }
    Some(read)
}

/// `app.rb:3:in 'load'`, with a backtick before 3.4.
fn frame(text: &str) -> Option<Frame> {
    let (place, rest) = text.split_once(":in ")?;
    let (file, line) = place.rsplit_once(':')?;
    let name = rest.trim_start_matches(['`', '\'']);
    let function = name.find('\'').map(|end| name[..end].to_owned());
    Some(Frame { file: file.to_owned(), line: number(line), function })
}

#[cfg(test)]
mod tests {
    #[test]
    fn old_and_new_quotes() {
        for text in
            ["app.rb:3:in `load': no config (RuntimeError)", "app.rb:3:in 'load': no config (RuntimeError)"]
        {
            let read = super::read(&[text, "\tfrom app.rb:7:in `<main>'"]).unwrap();
            assert_eq!((read.kind.as_str(), read.message.as_str()), ("RuntimeError", "no config"));
            assert_eq!(read.frames[0].function.as_deref(), Some("load"));
            assert_eq!(read.frames.len(), 2);
        }
    }
}
