//! Diagnostic lines, as compilers and checkers of every kind write them: where, how bad, what, and
//! by which rule.

use backstop_core::Reason;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// It says `error` or `fatal`.
    Error,
    /// It says `warning`, `style`, `info` or the like.
    Warning,
    /// It does not say.
    Unsaid,
}

/// One diagnostic line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    pub(crate) file: String,
    pub(crate) line: Option<u64>,
    pub(crate) level: Level,
    /// The rule or code of the checker: `unused-import`, `E501`.
    pub(crate) rule: Option<String>,
    pub(crate) text: String,
}

/// Endings of files that hold data, not code.
const DATA: &[&str] = &[
    "json",
    "yaml",
    "yml",
    "xml",
    "toml",
    "csv",
    "conf",
    "cfg",
    "ini",
    "cnf",
    "xsd",
    "rng",
    "ldif",
    "desktop",
    "html",
    "properties",
    "env",
    "po",
    "plist",
    "sql",
    "tsv",
    "jsonl",
];

impl Diagnostic {
    fn is_data(&self) -> bool {
        self.file
            .rsplit_once('.')
            .is_some_and(|(_, ending)| DATA.contains(&ending.to_ascii_lowercase().as_str()))
    }
}

/// Reads one line: `path:line[:col]: [severity:] message [rule]`,
/// `path(line,col): error CODE: message`, `--> path:line`, `at path:line`, `"path" line N:`,
/// `path line N`, `line N column M - Error:`.
pub(crate) fn read(line: &str) -> Option<Diagnostic> {
    let text = line.trim();
    let (file, number, message) =
        colons(text).or_else(|| parentheses(text)).or_else(|| arrow(text)).or_else(|| worded(text))?;
    let (level, message) = severity(message);
    Some(Diagnostic {
        file: file.to_owned(),
        line: number,
        level,
        rule: rule(message).map(str::to_owned),
        text: text.to_owned(),
    })
}

/// `path:12:3: message`, also with the program's name before it.
fn colons(text: &str) -> Option<(&str, Option<u64>, &str)> {
    let mut start = 0;
    for _ in 0..3 {
        let rest = &text[start..];
        let colon = rest.find(':')?;
        let (path, after) = (&rest[..colon], &rest[colon + 1..]);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let follows = after[digits..].bytes().next();
        if digits > 0
            && digits < 8
            && matches!(follows, Some(b':' | b' ' | b'.' | b',') | None)
            && is_path(path)
        {
            let number = after[..digits].parse().ok();
            let mut message = after[digits..].trim_start_matches([':', '.', ',']);
            let column = message.bytes().take_while(u8::is_ascii_digit).count();
            if column > 0 {
                message = &message[column..];
            }
            return Some((path.trim(), number, message.trim_start_matches([':', ' ', '-'])));
        }
        start += colon + 1;
        start += text[start..].len() - text[start..].trim_start().len();
    }
    None
}

/// `path(12,3): error X1: message`
fn parentheses(text: &str) -> Option<(&str, Option<u64>, &str)> {
    let open = text.find('(')?;
    let path = &text[..open];
    let rest = &text[open + 1..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let close = rest.find(')')?;
    let fits = digits > 0 && rest[digits..close].bytes().all(|b| b.is_ascii_digit() || b",-:".contains(&b));
    let after = rest[close + 1..].trim_start();
    (fits && is_path(path) && (after.starts_with(':') || after.starts_with("error")))
        .then(|| (path, rest[..digits].parse().ok(), after.trim_start_matches([':', ' '])))
}

/// `--> path:12:3`, `at path:12`, `in path:12`
fn arrow(text: &str) -> Option<(&str, Option<u64>, &str)> {
    let rest = ["--> ", "at ", "in ", "==> "].iter().find_map(|mark| text.strip_prefix(mark))?;
    let word = rest.split_whitespace().next()?;
    let mut parts = word.split(':');
    let path = parts.next()?;
    let number = parts.next().and_then(|n| n.parse().ok());
    (number.is_some() && is_path(path)).then_some((path, number, ""))
}

/// `"path" line 12: message`, `path line 12: message`, `... in path line 12: message`, `line 12
/// column 3 - Error: message`
fn worded(text: &str) -> Option<(&str, Option<u64>, &str)> {
    let at = ["line ", "Line "].iter().find_map(|word| text.find(word))?;
    let rest = &text[at + 5..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 7 {
        return None;
    }
    let before = text[..at].trim_end_matches([' ', ',', ':', '(']);
    let path = before.rsplit([' ', '\t']).next().unwrap_or("").trim_matches(['"', '\'', '`', '(']);
    let message = rest[digits..].trim_start_matches([':', ' ', ',', ')']);
    let number = rest[..digits].parse().ok();
    if is_path(path) {
        return Some((path, number, message));
    }
    let message = message
        .strip_prefix("column ")
        .map_or(message, |m| m.trim_start_matches(|c: char| c.is_ascii_digit() || " -:".contains(c)));
    before.is_empty().then_some(("", number, message))
}

/// Whether this looks like a file: something with an ending or a slash and without a space.
fn is_path(text: &str) -> bool {
    let text = text.trim();
    let name = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let has_ending = name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=10).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'+')
            && ending.bytes().any(|b| b.is_ascii_alphabetic())
    });
    let plain = !text.is_empty()
        && text.len() <= 200
        && !text.contains("//")
        && !text.contains([' ', '\t', '"', '\'', '(', ')', '=', '@', '<', '>']);
    plain && (has_ending || text.contains('/') || name == "Makefile" || name == "Dockerfile")
}

fn severity(message: &str) -> (Level, &str) {
    let trimmed = message.trim_start_matches(['[', '(', '-', ' ']);
    let word = trimmed.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
    let level = match word.to_ascii_lowercase().as_str() {
        "error" | "fatal" | "err" => Level::Error,
        "warning" | "warn" | "style" | "info" | "note" | "convention" | "refactor" | "hint"
        | "performance" | "portability" | "suggestion" => Level::Warning,
        _ => return (Level::Unsaid, message),
    };
    (level, trimmed[word.len()..].trim_start_matches([':', ']', ')', ' ']))
}

/// The rule that a message names: `[rule]` or `(rule)` at its end, or a code at its beginning.
fn rule(message: &str) -> Option<&str> {
    let text = message.trim_end();
    let bracketed = [('[', ']'), ('(', ')')].iter().find_map(|(open, close)| {
        let inner = text.strip_suffix(*close)?;
        let rule = &inner[inner.rfind(*open)? + 1..];
        let rule = rule.strip_prefix("check: ").unwrap_or(rule);
        let looks = rule.len() >= 3
            && rule.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_/.@".contains(&b))
            && rule.bytes().any(|b| b.is_ascii_alphabetic());
        looks.then_some(rule)
    });
    bracketed.or_else(|| {
        let word = text.split([' ', ':']).next()?;
        let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
        let digits = word[letters..].bytes().take_while(u8::is_ascii_digit).count();
        ((1..=6).contains(&letters) && (2..=5).contains(&digits) && letters + digits == word.len())
            .then_some(word)
    })
}

/// What all diagnostics of a failure speak for, and the line to quote.
pub(super) fn speaks_for(all: &[Diagnostic]) -> Option<(&'static str, Reason, String)> {
    let with_file: Vec<&Diagnostic> = all.iter().filter(|d| !d.file.is_empty()).collect();
    let first = with_file.first()?;
    let error = with_file.iter().find(|d| d.level == Level::Error);
    if with_file.iter().filter(|d| d.rule.is_some()).count() * 2 > with_file.len() {
        let quoted = error.unwrap_or(first);
        return Some(("grammar.diagnostic_rule", Reason::LintError, quoted.text.clone()));
    }
    if with_file.iter().all(|d| d.level == Level::Warning) {
        return Some(("grammar.diagnostic_warning", Reason::LintError, first.text.clone()));
    }
    let quoted = error.unwrap_or(first);
    Some(match (quoted.is_data(), quoted.level) {
        (true, _) => ("grammar.diagnostic_data", Reason::Validation, quoted.text.clone()),
        (false, Level::Error) => ("grammar.diagnostic_error", Reason::CompileError, quoted.text.clone()),
        (false, _) => ("grammar.diagnostic", Reason::CompileError, quoted.text.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_levels_and_rules_are_read() {
        let read = |line: &str| {
            let d = read(line).unwrap_or_else(|| panic!("{line}"));
            (d.file, d.line, d.level, d.rule)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("src/a.c:3:5: error: no"), ("src/a.c".into(), Some(3), Level::Error, None));
        assert_eq!(read("m4:config.m4:1: ERROR: end"), ("config.m4".into(), Some(1), Level::Error, None));
        assert_eq!(
            read("a.py:7:80: E501 line too long"),
            ("a.py".into(), Some(7), Level::Unsaid, some("E501"))
        );
        assert_eq!(
            read("a.ts(3,5): error TS2304: no"),
            ("a.ts".into(), Some(3), Level::Error, some("TS2304"))
        );
        assert_eq!(read("  --> src/main.rs:4:9"), ("src/main.rs".into(), Some(4), Level::Unsaid, None));
        assert_eq!(
            read("\"plot.gp\" line 2: unfinished range"),
            ("plot.gp".into(), Some(2), Level::Unsaid, None)
        );
        assert_eq!(
            read("x.tf:1: warning: y [terraform_z]"),
            ("x.tf".into(), Some(1), Level::Warning, some("terraform_z"))
        );
        assert_eq!(read("line 4 column 7 - Error: <b> is bad"), (String::new(), Some(4), Level::Error, None));
        assert_eq!(
            read("catalog.xml:4.11: tag mismatch"),
            ("catalog.xml".into(), Some(4), Level::Unsaid, None)
        );
    }

    #[test]
    fn times_addresses_and_sentences_are_no_diagnostics() {
        for line in [
            "12:30:45: started",
            "http://127.0.0.1:8080: refused",
            "at 10:20 it ended",
            "error: no",
            "",
            "a: b: c",
            "x (3)",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
