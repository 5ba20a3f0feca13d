//! An effect rule: a kind of command that changes something outside the project, or that is known
//! to be safe to repeat. The built-in ones are such values in the binary; users' packs are parsed
//! into the same type.

use crate::rule::{List, Text};

/// How many changes a command makes, as far as its failure tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// At most one, with its last request: a failure to connect, or a refusal, means that nothing
    /// was changed.
    One,
    /// At most one, by a program that repeats its requests itself: a refusal means that nothing was
    /// changed; a failure to connect may have come after a request that was sent.
    Refused,
    /// Many, and it prints a line to standard output for each: a failure to connect means that
    /// nothing was changed if nothing was printed there.
    Reported,
    /// Many, or nobody knows: no failure says that nothing was changed.
    Many,
}

/// A kind of command, and whether it may be repeated by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRule {
    /// Its id, such as `curl.send`.
    pub id: Text,
    /// The pack it comes from.
    pub pack: Text,
    /// The file of that pack.
    pub source: Text,
    /// The line in the file where it begins.
    pub pack_line: u32,
    /// What such a command does, as the end of the sentence "it …".
    pub does: Text,
    /// Whether it may be repeated all the same.
    pub repeatable: bool,
    /// How many changes it makes.
    pub changes: Changes,
    /// The programs, by base name; `*` stands for anything.
    pub program: List<Text>,
    /// Subcommands, one of which must be there: words, each with alternatives (`pr create|merge`).
    pub subcommand: List<Text>,
    /// Options, one of which must be there, unless an argument is: `-d`, `--data*`, `-X!=GET|HEAD`.
    pub option: List<Text>,
    /// Arguments, one of which must be there, unless an option is; `~` begins a regex.
    pub argument: List<Text>,
    /// Options, one of which must be there too.
    pub also: List<Text>,
    /// Options of the program itself, first operands, or commands after `--`, none of which may be
    /// there.
    pub unless: List<Text>,
    /// Options whose value is a list of statements; `*` is any argument that looks like one. One
    /// statement must do more than read.
    pub statement: List<Text>,
    /// The first words of statements that only read.
    pub reads: List<Text>,
    /// Addresses, `host/path`: every address of the command must be one of these.
    pub url: List<Text>,
    /// The one-letter options that take a value, so that `-sXPOST` can be taken apart.
    pub short_values: Text,
    /// Long options that take no value, and so leave the next word alone.
    pub flags: List<Text>,
    /// Long options whose value is the next word.
    pub values: List<Text>,
    /// Exit codes that mean that nothing was sent.
    pub unsent_exit: List<i64>,
    /// Commands that it must match.
    pub matches: List<Text>,
    /// Near misses: commands that it must not match.
    pub misses: List<Text>,
}
