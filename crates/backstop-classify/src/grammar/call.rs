//! Which part of its own call a tool complains about: an option, an option's value, a subcommand or
//! a file.

/// How short a word of a call may be to be told from others.
const WORD_BYTES_MIN: usize = 3;
/// How many words of a call are read.
const WORDS_MAX: usize = 40;

/// A word of the call, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    kind: &'static str,
    text: String,
}

/// The parts of a lower-case command line that a tool may complain about.
pub(super) fn parts(command: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut add = |kind, text: &str| {
        let text = text.trim_matches(|c: char| matches!(c, '"' | '\'' | ';' | '(' | ')'));
        if text.len() >= WORD_BYTES_MIN && parts.iter().all(|part| part.text != text) {
            parts.push(Part { kind, text: text.to_owned() });
        }
    };
    let mut follows_option = false;
    for (at, word) in command.split_whitespace().take(WORDS_MAX).enumerate().skip(1) {
        if word.starts_with('-') {
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            add("grammar.names_option", name);
            if let Some(value) = value {
                add(kind_of_value(value, "grammar.names_value"), value);
            } else if name.len() > 4 && !name.starts_with("--") {
                // A short option with its value: `-Tdocx`.
                add("grammar.names_value", &name[2..]);
            }
            follows_option = value.is_none();
            continue;
        }
        let kind = match (follows_option, at) {
            (true, _) => "grammar.names_value",
            (false, 1) => "grammar.names_subcommand",
            (false, _) => "grammar.names_argument",
        };
        add(kind_of_value(word, kind), word);
        follows_option = false;
    }
    parts
}

/// The kind of a word that may be a file.
fn kind_of_value(word: &str, otherwise: &'static str) -> &'static str {
    if word.contains("://") {
        return "grammar.names_address";
    }
    let is_file = word.contains('/') || crate::mentioned::files(word).next().is_some();
    if is_file { "grammar.names_file" } else { otherwise }
}

/// The kind of the first part that a lower-case line names.
pub(super) fn named(line: &str, parts: &[Part]) -> Option<&'static str> {
    parts.iter().find(|part| stands_in(line, &part.text)).map(|part| part.kind)
}

/// Whether a text stands in a line with no letter or digit before or after it.
fn stands_in(line: &str, text: &str) -> bool {
    let bytes = line.as_bytes();
    let is_inner = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'-');
    line.match_indices(text).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|n| bytes.get(n));
        !is_inner(before) && !is_inner(bytes.get(at + text.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_a_part_of_the_call() {
        let parts = parts("frob build --frm=elf65 -o out.bin -tdocx --level verbos a.c http://x/y");
        let named = |line: &str| named(line, &parts);
        assert_eq!(named("frob: unknown level: verbos"), Some("grammar.names_value"));
        assert_eq!(named("frob: format docx is unknown"), Some("grammar.names_value"));
        assert_eq!(named("frob: no object format `elf65'"), Some("grammar.names_value"));
        assert_eq!(named("frob: bad option '--frm'"), Some("grammar.names_option"));
        assert_eq!(named("a.c:3: it is bad"), Some("grammar.names_file"));
        assert_eq!(named("no task 'build'"), Some("grammar.names_subcommand"));
        assert_eq!(named("http://x/y gone"), Some("grammar.names_address"));
        assert_eq!(named("rebuilding the verbosity"), None);
    }
}
