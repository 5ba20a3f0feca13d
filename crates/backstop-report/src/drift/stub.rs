//! A proposed rule for an unknown message, complete but for its reason.

use std::fmt::Write as _;

/// The placeholders for variable parts in a signature.
const STAND_INS: [&str; 5] = ["<n>", "<id>", "<path>", "<url>", "<name>"];
/// The shortest and the longest literal of a rule, in bytes.
const LITERAL_BYTES: std::ops::RangeInclusive<usize> = 3..=120;
/// The longest id of a rule.
const ID_CHARS_MAX: usize = 40;

/// The id of a rule: the program, then the first words of the message.
pub(super) fn rule_id(operation: &str, signature: &str) -> String {
    let program = operation.split_whitespace().next().unwrap_or_default();
    let program = word(program.rsplit('/').next().unwrap_or_default());
    let words: Vec<String> = constants(signature)
        .flat_map(str::split_whitespace)
        .map(word)
        .filter(|w| w.len() > 1)
        .take(3)
        .collect();
    let part = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
    let id = format!("{}.{}", part(program, "local"), part(words.join("_"), "unknown"));
    id.chars().take(ID_CHARS_MAX).collect()
}

/// The letters and digits of a word, in lower case.
fn word(text: &str) -> String {
    text.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).take(16).collect()
}

/// A rule in TOML that matches messages with this signature: its literal is the longest constant
/// part, its regex the message with any text in place of the variable parts. `None` where the
/// message has no constant part.
pub fn rule_stub(id: &str, signature: &str, example: &str) -> Option<String> {
    let literal = literal(signature, example)?;
    let mut out = format!(
        "[[rule]]\nid = {}\nreason = \"unknown\" # choose one: `backstop reasons` lists them\nliterals = [{}]\n",
        quoted(id),
        quoted(literal)
    );
    if let Some(regex) = regex(signature) {
        let _ = writeln!(out, "regex = {}", pattern(&regex));
    }
    let _ = write!(out, "match = [{}]\nmiss = [{}]\n", quoted(example), quoted(&near_miss(literal)));
    Some(out)
}

/// The parts of a signature that do not vary.
fn constants(signature: &str) -> impl Iterator<Item = &str> {
    Pieces(signature).filter_map(|(piece, constant)| constant.then_some(piece))
}

/// The longest constant part that the example contains verbatim, cut to the length of a literal.
fn literal<'s>(signature: &'s str, example: &str) -> Option<&'s str> {
    let fits = |part: &&str| {
        LITERAL_BYTES.contains(&part.len())
            && part.chars().filter(|c| c.is_alphanumeric()).count() >= *LITERAL_BYTES.start()
            && !part.chars().any(char::is_control)
            && example.contains(part)
    };
    let cut = |part: &'s str| {
        let part = part.trim();
        part[..part.floor_char_boundary(*LITERAL_BYTES.end())].trim_end()
    };
    // Where the example has other spacing than its signature, both still share single words.
    let whole = constants(signature).map(cut).filter(fits).max_by_key(|part| part.len());
    let word = || constants(signature).flat_map(str::split_whitespace).map(cut).filter(fits);
    whole.or_else(|| word().max_by_key(|part| part.len()))
}

/// The regex of a signature: any text in place of its variable parts; `None` where nothing varies.
fn regex(signature: &str) -> Option<String> {
    let mut out = String::new();
    let mut varies = false;
    for (piece, constant) in Pieces(signature) {
        if !constant {
            varies = true;
            out.push_str("\\S+");
            continue;
        }
        for c in piece.chars() {
            match c {
                ' ' => out.push_str("\\s+"),
                c if r"\.+*?()|[]{}^$".contains(c) => out.extend(['\\', c]),
                c if c.is_control() => out.push('.'),
                c => out.push(c),
            }
        }
    }
    varies.then_some(out)
}

/// A near miss: a text that does not contain the literal, and begins like it where it can.
fn near_miss(literal: &str) -> String {
    let start = literal.rsplit_once(' ').map(|(start, _)| start).filter(|start| !start.trim().is_empty());
    let texts = [start.map(|start| format!("{start} something else")), Some("something else".to_owned())];
    let misses = |text: &String| !text.to_lowercase().contains(&literal.to_lowercase());
    // The last one is shorter than any literal.
    texts.into_iter().flatten().find(misses).unwrap_or_else(|| "42".to_owned())
}

/// The pieces of a signature: constant text, and placeholders.
struct Pieces<'s>(&'s str);

impl<'s> Iterator for Pieces<'s> {
    type Item = (&'s str, bool);

    fn next(&mut self) -> Option<Self::Item> {
        let first = STAND_INS.iter().filter_map(|mark| Some((self.0.find(mark)?, mark.len()))).min();
        let (end, constant) = match first {
            _ if self.0.is_empty() => return None,
            Some((0, length)) => (length, false),
            Some((at, _)) => (at, true),
            None => (self.0.len(), true),
        };
        let (piece, rest) = self.0.split_at(end);
        self.0 = rest;
        Some((piece, constant))
    }
}

/// A pattern as a TOML string: a literal one where possible.
fn pattern(text: &str) -> String {
    let plain = quoted(&text.replace('\\', "")).len() == text.replace('\\', "").len() + 2;
    if plain && !text.contains('\'') { format!("'{text}'") } else { quoted(text) }
}

/// A text as a TOML string without terminal control sequences.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if backstop_core::SafeText::new(c).terminal() != c.to_string() => {
                let code = u32::from(c);
                let _ =
                    if code > 0xffff { write!(out, "\\U{code:08X}") } else { write!(out, "\\u{code:04X}") };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_constant_part_is_looked_for() {
        assert_eq!(literal("worker-<n> died after <n>ms", "worker-8 died after 1ms"), Some("died after"));
        assert_eq!(literal("a  b  <n> other", "x"), None);
        assert_eq!(literal("<n> <path>", "7 /x"), None);
        assert_eq!(literal("disk is gone", "disk   is gone"), Some("gone"));
        assert_eq!(regex("worker-<n> died").as_deref(), Some(r"worker-\S+\s+died"));
        assert_eq!(regex("a.b (<n>) <b>").as_deref(), Some(r"a\.b\s+\(\S+\)\s+<b>"));
        assert_eq!(regex("no number"), None);
        assert_eq!(
            rule_id("/usr/bin/npm test", "Error: <n> Flux capacitor offline"),
            "npm.error_flux_capacitor"
        );
        assert_eq!(rule_id("", ""), "local.unknown");
    }
}
