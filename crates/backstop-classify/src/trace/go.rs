//! ```text
//! panic: runtime error: index out of range [5] with length 3
//!
//! goroutine 1 [running]:
//! main.load(...)
//!     /app/main.go:12 +0x1d
//! ```

use super::{Frame, Read, number};

pub(super) fn read(lines: &[&str]) -> Option<Read> {
    let first = lines.first()?.trim();
    let (kind, message) = first.split_once(": ")?;
    let mut read = Read { kind: kind.to_owned(), message: message.to_owned(), ..Read::default() };
    let mut function = None;
    let mut started = false;
    for line in &lines[1..] {
        if line.starts_with("goroutine ") {
            if started && !read.frames.is_empty() {
                break;
            }
            started = true;
        } else if let Some(place) = line.strip_prefix('\t').filter(|_| started) {
            let (file, rest) =
                place.rsplit_once(".go:").map(|(f, r)| (format!("{f}.go"), r)).unwrap_or_default();
            if !file.is_empty() {
                read.frames.push(Frame { file, line: number(rest), function: function.take() });
            }
        } else if started && !line.trim().is_empty() {
            function = line.rsplit_once('(').map(|(name, _)| name.to_owned());
        }
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    #[test]
    fn frames_of_the_first_goroutine() {
        let text = "panic: boom\n\ngoroutine 1 [running]:\nmain.load(...)\n\t/app/main.go:12 +0x1d\nmain.main()\n\t/app/main.go:3\n\ngoroutine 2 [select]:\nx()\n\t/y.go:1\n";
        let lines: Vec<_> = text.lines().collect();
        let read = super::read(&lines).unwrap();
        assert_eq!(read.message, "boom");
        assert_eq!(read.frames.len(), 2);
        assert_eq!(read.frames[0].function.as_deref(), Some("main.load"));
    }
}
