//! The words of a call, taken apart: which are options of the program, which are values of those
//! options, and which are operands. Where nobody knows whether an option takes a value, the word
//! after it is doubtful: it can speak against a command, never for it.

use super::glob_exact;
use crate::effect_rule::EffectRule;
use std::borrow::Cow;

/// Options that take no value, whatever the program.
const FLAGS: &[&str] = &[
    "--all",
    "--allow-dirty",
    "--amend",
    "--atomic",
    "--auto-approve",
    "--ci",
    "--compressed",
    "--debug",
    "--delete",
    "--draft",
    "--dry-run",
    "--dryrun",
    "--fail",
    "--fail-with-body",
    "--fill",
    "--follow-tags",
    "--force",
    "--force-with-lease",
    "--frozen",
    "--generate-notes",
    "--help",
    "--ignore-scripts",
    "--insecure",
    "--install",
    "--interactive",
    "--list",
    "--location",
    "--locked",
    "--mirror",
    "--offline",
    "--prod",
    "--provenance",
    "--quiet",
    "--recursive",
    "--show-error",
    "--silent",
    "--skip-existing",
    "--squash",
    "--sudo",
    "--verbose",
    "--version",
    "--yes",
    "-V",
    "-help",
    "-q",
    "-v",
    "-vv",
    "-y",
];
/// Values that switch an option off.
const OFF: &[&str] = &["false", "no", "none", "off", "0", "never", "disabled"];
/// How many doubtful words are read in both ways.
const DOUBTFUL_MAX: usize = 8;
/// How many operands a pattern of subcommands can ask for.
const OPERANDS_MAX: usize = 5;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Operand,
}

#[derive(Debug, Clone, Copy)]
struct Word<'w> {
    text: &'w str,
    kind: Kind,
    /// Whether it may be the value of the option before it.
    is_doubtful: bool,
    /// Where it stands among the words of the call.
    at: usize,
}

/// What an option does with the word that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Perhaps,
    Value,
}

/// The words of a call. Values of options that are known to take one are left out.
pub(super) struct Line<'w> {
    all: &'w [&'w str],
    words: Vec<Word<'w>>,
    short_values: &'w str,
    /// The words after `--`.
    after_dashes: &'w [&'w str],
}

impl<'w> Line<'w> {
    /// Takes the words of a call apart, with what a rule knows about the options of its program.
    pub(super) fn new(all: &'w [&'w str], rule: &'w EffectRule) -> Self {
        let mut words = Vec::with_capacity(all.len());
        let mut before = Takes::Nothing;
        // After `--` there are operands only; where the `--` itself may be a value, nobody knows.
        let (mut has_ended, mut may_have_ended) = (false, false);
        let mut after_dashes: &[&str] = &[];
        for (at, text) in all.iter().enumerate() {
            let takes = std::mem::replace(&mut before, Takes::Nothing);
            if has_ended {
                words.push(Word { text, kind: Kind::Operand, is_doubtful: false, at });
                continue;
            }
            if takes == Takes::Value {
                continue;
            }
            let is_doubtful = takes == Takes::Perhaps || may_have_ended;
            if *text == "--" {
                after_dashes = &all[at + 1..];
                (has_ended, may_have_ended) = (!is_doubtful, is_doubtful);
            } else if text.starts_with('-') && text.len() > 1 {
                words.push(Word { text, kind: Kind::Flag, is_doubtful, at });
                before = match takes_value(text, rule) {
                    Takes::Value if is_doubtful => Takes::Perhaps,
                    takes => takes,
                };
            } else if !text.starts_with('+') {
                // `cargo +nightly publish` has an operand less.
                words.push(Word { text, kind: Kind::Operand, is_doubtful, at });
            }
        }
        Self { all, words, short_values: &rule.short_values, after_dashes }
    }

    /// The words that are operands, or may be: each with whether it may be a value instead.
    pub(super) fn operands(&self) -> impl Iterator<Item = (&'w str, bool)> + '_ {
        let operands = self.words.iter().filter(|word| word.kind == Kind::Operand);
        operands.map(|word| (word.text, word.is_doubtful))
    }

    /// The first word after `--`.
    pub(super) fn command(&self) -> Option<&'w str> {
        self.after_dashes.first().copied()
    }

    /// Whether the program is given this option, for certain, and not switched off: `-n`,
    /// `--dry-run`, `--dry-run=client|server`.
    pub(super) fn has_flag(&self, spec: &str) -> bool {
        let (name, wanted) = spec.split_once('=').map_or((spec, None), |(name, values)| (name, Some(values)));
        let is_short = name.len() == 2;
        let mut is_on = false;
        for word in self.words.iter().filter(|word| word.kind == Kind::Flag) {
            let (given, value) = word.text.split_once('=').map_or((word.text, None), |(g, v)| (g, Some(v)));
            let next = || self.all.get(word.at + 1).copied().filter(|next| !next.starts_with('-'));
            if given.strip_prefix("--no-").is_some_and(|rest| name.strip_prefix("--") == Some(rest)) {
                return false;
            }
            let value = if is_short {
                match self.letter(word.text, name) {
                    Some("") => next(),
                    Some(rest) => Some(rest),
                    None => continue,
                }
            } else if glob_exact(name, given) {
                value.or_else(next)
            } else {
                continue;
            };
            if value.is_some_and(|value| OFF.iter().any(|off| off.eq_ignore_ascii_case(value))) {
                return false;
            }
            let has_value = wanted.is_none_or(|wanted| {
                value.is_some_and(|value| wanted.split('|').any(|one| super::glob(one, value)))
            });
            // `./deploy.sh -h db.example`: of a program whose options nobody knows, a letter before
            // a word may be another option.
            let is_other = is_short && wanted.is_none() && self.short_values.is_empty() && next().is_some();
            is_on |= has_value && !word.is_doubtful && !is_other;
        }
        is_on
    }

    /// What follows a letter in a group of them, if it is there: nothing after `n` in `-rlptn`,
    /// `GET` after `X` in `-sXGET`. Only where it is known which letters take a value can a group
    /// be taken apart.
    fn letter(&self, given: &'w str, name: &str) -> Option<&'w str> {
        if given == name {
            return Some("");
        }
        if self.short_values.is_empty() || given.starts_with("--") {
            return None;
        }
        let letters = &given[1..];
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            let takes_rest = self.short_values.contains(letter);
            if name[1..].starts_with(letter) {
                return Some(if takes_rest { rest.trim_start_matches('=') } else { "" });
            }
            if takes_rest || !letter.is_ascii_alphanumeric() {
                return None;
            }
        }
        None
    }

    /// Every way to read the first operands, where each doubtful word is one or is none. `None`
    /// where there are too many ways.
    pub(super) fn readings(&self) -> Option<Vec<Vec<&'w str>>> {
        let operands: Vec<(&str, bool)> = self.operands().collect();
        let mut readings: Vec<Vec<&str>> = vec![Vec::new()];
        let mut doubtful = 0;
        for (word, is_doubtful) in operands {
            if readings.iter().all(|reading| reading.len() >= OPERANDS_MAX) {
                break;
            }
            if is_doubtful {
                doubtful += 1;
                if doubtful > DOUBTFUL_MAX {
                    return None;
                }
                let without = readings.clone();
                readings.iter_mut().for_each(|reading| reading.push(word));
                readings.extend(without);
            } else {
                readings.iter_mut().for_each(|reading| reading.push(word));
            }
        }
        Some(readings)
    }
}

fn takes_value(option: &str, rule: &EffectRule) -> Takes {
    let has = |list: &[Cow<'static, str>]| list.iter().any(|one| one == option);
    // An option of the rule whose value counts has one.
    let asks_value = |list: &[Cow<'static, str>]| {
        list.iter()
            .filter_map(|spec| spec.split_once('='))
            .any(|(name, _)| name.trim_end_matches('!') == option)
    };
    if option.contains('=') {
        return Takes::Nothing;
    }
    if has(&rule.values) || has(&rule.statement) || asks_value(&rule.option) {
        return Takes::Value;
    }
    if has(&rule.flags) || option.starts_with("--no-") {
        return Takes::Nothing;
    }
    if option.starts_with("--") || rule.short_values.is_empty() {
        return if FLAGS.contains(&option) { Takes::Nothing } else { Takes::Perhaps };
    }
    for (at, letter) in option.char_indices().skip(1) {
        if rule.short_values.contains(letter) {
            let is_last = at + letter.len_utf8() == option.len();
            return if is_last { Takes::Value } else { Takes::Nothing };
        }
        if !letter.is_ascii_alphanumeric() {
            return Takes::Perhaps;
        }
    }
    Takes::Nothing
}
