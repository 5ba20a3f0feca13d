//! ```text
//! thread 'main' panicked at src/main.rs:4:10:
//! called `Option::unwrap()` on a `None` value
//! ```
//!
//! Before Rust 1.73 the message came first:
//! `thread 'main' panicked at 'message', src/main.rs:4:10`.

use super::{Frame, Read, number};

pub(super) fn read(lines: &[&str]) -> Option<Read> {
    let (_, rest) = lines.first()?.split_once(" panicked at ")?;
    let (message, place) = match rest.strip_prefix('\'').and_then(|r| r.rsplit_once("', ")) {
        Some((message, place)) => (message.to_owned(), place),
        None => {
            let message: Vec<&str> = lines[1..]
                .iter()
                .take_while(|l| !l.starts_with("note: ") && !l.starts_with("stack backtrace:"))
                .take(6)
                .copied()
                .collect();
            (message.join("\n"), rest.trim_end_matches(':'))
        }
    };
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    let mut read = Read { kind: "panic".to_owned(), message: message.trim().to_owned(), ..Read::default() };
    read.frames.push(Frame { file: file.to_owned(), line: number(line), function: None });
    // With a backtrace there are functions: `   3: demo::load` and `at ./src/main.rs:4:10` below
    // it.
    for pair in lines.windows(2) {
        let Some(place) = pair[1].trim().strip_prefix("at ") else { continue };
        let Some((_, function)) = pair[0].trim().split_once(": ") else { continue };
        let mut parts = place.rsplitn(3, ':');
        if let (Some(_), Some(line), Some(file)) = (parts.next(), parts.next(), parts.next()) {
            let same = file.trim_start_matches("./") == read.frames[0].file.trim_start_matches("./");
            if same && read.frames[0].function.is_none() {
                read.frames[0].function = Some(function.to_owned());
            }
            read.frames.push(Frame {
                file: file.to_owned(),
                line: number(line),
                function: Some(function.to_owned()),
            });
        }
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_forms() {
        let new =
            super::read(&["thread 'main' (99) panicked at src/main.rs:4:10:", "no value", "note: run with"])
                .unwrap();
        assert_eq!((new.message.as_str(), new.frames[0].line), ("no value", Some(4)));
        let old = super::read(&["thread 'main' panicked at 'no value', src/main.rs:4:10"]).unwrap();
        assert_eq!((old.message.as_str(), old.frames[0].file.as_str()), ("no value", "src/main.rs"));
    }
}
