//! Reads a rule pack: TOML in, checked rules out, or an error that names file, line and column.
//!
//! The build script reads the built-in packs with this same code, so that a built-in rule and a
//! user's are checked alike. It must not match anything: that is the matcher's job.

use crate::effect_pack::EffectFile;
use crate::rule::{Example, Rule, RuleOutcome, Text, Trace, Weight};
use backstop_core::{Reason, nearest::nearest};
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// The largest pack, in bytes.
pub const PACK_BYTES_MAX: usize = 4 << 20;
/// The most rules in a pack.
pub const RULES_MAX: usize = 4096;
/// The longest regex, in bytes.
pub const REGEX_BYTES_MAX: usize = 2048;
/// The largest compiled regex, in bytes: what would grow beyond it is refused.
pub const REGEX_COMPILED_BYTES_MAX: usize = 512 << 10;
/// How much a regex may remember between lines: there are hundreds of them.
pub const REGEX_CACHE_BYTES_MAX: usize = 96 << 10;
/// How deep a regex may be nested.
pub const REGEX_NEST_MAX: u32 = 32;
/// The most entries in a rule's list.
pub const LIST_MAX: usize = 256;
/// The shortest literal, in bytes: shorter ones would select every line.
pub const LITERAL_BYTES_MIN: usize = 3;
/// The longest literal, in bytes.
pub const LITERAL_BYTES_MAX: usize = 120;

/// The facts that a named capture may extract.
pub const CAPTURES: &[&str] = &[
    "test",
    "file",
    "line",
    "rule",
    "count",
    "expected",
    "actual",
    "missing",
    "tool",
    "provider",
    "credential",
    "renewal",
    "retry_after",
    "cause",
    "status",
];

/// The facts that `next` may speak of.
pub const TEMPLATE_FACTS: &[&str] =
    &["file", "files", "test", "rule", "missing", "package", "provider", "credential", "renewal", "command"];

/// What is wrong with a pack, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct PackError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackFile {
    #[serde(default)]
    on: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    rule: Vec<Spanned<RuleFile>>,
    #[serde(default)]
    pub(crate) effect: Vec<Spanned<EffectFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    id: Spanned<String>,
    reason: Spanned<String>,
    tier: Option<Spanned<String>>,
    weight: Option<u8>,
    on: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    literals: Vec<Spanned<String>>,
    regex: Option<Spanned<String>>,
    above: Option<Spanned<String>>,
    #[serde(default)]
    above_required: bool,
    #[serde(default)]
    above_lines: u32,
    #[serde(default)]
    below_lines: u32,
    below: Option<Spanned<String>>,
    #[serde(default)]
    below_required: bool,
    join_until: Option<String>,
    #[serde(default)]
    program: Vec<String>,
    #[serde(default)]
    argument: Vec<String>,
    #[serde(default)]
    exit: Vec<i64>,
    #[serde(default)]
    signal: Vec<i64>,
    #[serde(default)]
    status: Vec<u16>,
    #[serde(default)]
    errno: Vec<String>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    silent: bool,
    #[serde(default)]
    skip_warnings: bool,
    #[serde(default)]
    last_lines: u32,
    #[serde(default)]
    max_lines: u32,
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    refines: Vec<Spanned<String>>,
    #[serde(default)]
    per_failure: bool,
    cause: Option<u8>,
    #[serde(default)]
    pick_last: bool,
    next: Option<Spanned<String>>,
    tool: Option<String>,
    provider: Option<String>,
    credential: Option<String>,
    renewal: Option<String>,
    trace: Option<Spanned<String>>,
    #[serde(default, rename = "match")]
    matches: Vec<ExampleFile>,
    #[serde(default, rename = "miss")]
    misses: Vec<ExampleFile>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ExampleFile {
    Text(String),
    Full(ExampleTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleTable {
    #[serde(default)]
    text: String,
    command: Option<String>,
    exit: Option<i64>,
    signal: Option<i64>,
    #[serde(default)]
    timed_out: bool,
    status: Option<u16>,
    errno: Option<String>,
}

impl From<ExampleFile> for Example {
    fn from(file: ExampleFile) -> Self {
        let table = match file {
            ExampleFile::Text(text) => ExampleTable {
                text,
                command: None,
                exit: None,
                signal: None,
                timed_out: false,
                status: None,
                errno: None,
            },
            ExampleFile::Full(table) => table,
        };
        Self {
            text: Cow::Owned(table.text),
            command: table.command.map(Cow::Owned),
            exit: table.exit,
            signal: table.signal,
            timed_out: table.timed_out,
            status: table.status,
            errno: table.errno.map(Cow::Owned),
        }
    }
}

/// Reads the tables of a pack, unchecked.
pub(crate) fn open<'s>(file: &'s str, source: &'s str) -> Result<(Place<'s>, PackFile), PackError> {
    let lines = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let place = Place { file, source, lines };
    if source.len() > PACK_BYTES_MAX {
        return Err(
            place.error(0, format!("the pack has {} bytes, more than {PACK_BYTES_MAX}", source.len()))
        );
    }
    let pack: PackFile = toml::from_str(source).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let mut refused = place.error(at, error.message().to_owned());
        refused.hint = unknown_key_hint(error.message());
        refused
    })?;
    if pack.rule.len() > RULES_MAX {
        return Err(place.error(0, format!("the pack has {} rules, more than {RULES_MAX}", pack.rule.len())));
    }
    Ok((place, pack))
}

/// Reads the rules of a pack.
pub fn parse(file: &str, source: &str) -> Result<Vec<Rule>, PackError> {
    let (place, pack) = open(file, source)?;
    let surfaces = match &pack.on {
        Some(on) => place.surfaces(on)?,
        None => (true, false),
    };
    let pack_name = place.pack_name().to_owned();
    let mut rules: Vec<Rule> = Vec::with_capacity(pack.rule.len());
    for rule in pack.rule {
        let at = rule.span().start;
        let rule = place.rule(rule.into_inner(), at, surfaces, &pack_name)?;
        if rules.iter().any(|known| known.id == rule.id) {
            return Err(place.error(at, format!("rule id `{}` is used twice", rule.id)));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// Checks what one rule says of others: every id must name a rule among all packs.
pub fn check_references(rules: &[Rule]) -> Result<(), PackError> {
    for rule in rules {
        for other in rule.requires.iter().chain(rule.unless.iter()) {
            let known =
                |r: &Rule| r.id == *other || other.strip_suffix(".*").is_some_and(|p| r.id.starts_with(p));
            if !rules.iter().any(known) {
                return Err(PackError {
                    file: rule.source.to_string(),
                    line: rule.pack_line as usize,
                    column: 1,
                    message: format!("rule `{}` speaks of `{other}`, which is no rule", rule.id),
                    hint: nearest(other, rules.iter().map(|r| &*r.id))
                        .map(|near| format!("did you mean `{near}`?")),
                });
            }
        }
    }
    Ok(())
}

/// Builds a rule's regex as the matcher does: bytes, ASCII classes, bounded size.
pub fn build_regex(pattern: &str) -> Result<regex::bytes::Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(REGEX_COMPILED_BYTES_MAX)
        .dfa_size_limit(REGEX_CACHE_BYTES_MAX)
        .nest_limit(REGEX_NEST_MAX)
        .build()
}

/// The fact that a capture is for. A regex may name a fact once, so that alternatives are numbered:
/// `file`, `file2`.
pub fn fact_name(capture: &str) -> Option<&'static str> {
    let name = capture.trim_end_matches(|c: char| c.is_ascii_digit());
    CAPTURES.iter().find(|known| **known == name).copied()
}

pub(crate) struct Place<'s> {
    pub(crate) file: &'s str,
    source: &'s str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Place<'_> {
    pub(crate) fn pack_name(&self) -> &str {
        let name = self.file.rsplit('/').next().unwrap_or(self.file);
        name.strip_suffix(".toml").unwrap_or(name)
    }

    pub(crate) fn error(&self, at: usize, message: String) -> PackError {
        let at = self.source.floor_char_boundary(at);
        let line = self.lines.partition_point(|start| *start <= at);
        let column = at - self.lines[line - 1] + 1;
        PackError { file: self.file.to_owned(), line, column, message, hint: None }
    }

    pub(crate) fn line(&self, at: usize) -> u32 {
        u32::try_from(self.lines.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    fn surfaces(&self, on: &Spanned<Vec<String>>) -> Result<(bool, bool), PackError> {
        let mut surfaces = (false, false);
        for name in on.get_ref() {
            match name.as_str() {
                "command" => surfaces.0 = true,
                "response" => surfaces.1 = true,
                other => {
                    let message = format!("unknown surface `{other}`: `command` or `response`");
                    return Err(self.error(on.span().start, message));
                }
            }
        }
        Ok(surfaces)
    }

    fn rule(&self, rule: RuleFile, at: usize, surfaces: (bool, bool), pack: &str) -> Result<Rule, PackError> {
        self.check_id(&rule.id)?;
        let outcome = self.outcome(&rule.reason)?;
        let weight = self.weight(&rule)?;
        let (on_command, on_response) = rule.on.as_ref().map_or(Ok(surfaces), |on| self.surfaces(on))?;
        self.check_literals(&rule)?;
        let lists = [
            rule.program.len(),
            rule.argument.len(),
            rule.exit.len(),
            rule.signal.len(),
            rule.status.len(),
            rule.errno.len(),
        ];
        let more = [
            rule.literals.len(),
            rule.requires.len(),
            rule.unless.len(),
            rule.matches.len(),
            rule.misses.len(),
        ];
        if lists.into_iter().chain(more).any(|length| length > LIST_MAX) {
            return Err(self.error(
                at,
                format!("rule `{}` has a list of more than {LIST_MAX} entries", rule.id.get_ref()),
            ));
        }
        for regex in [&rule.regex, &rule.above, &rule.below].into_iter().flatten() {
            self.check_regex(regex)?;
        }
        if rule.regex.is_some() && rule.literals.is_empty() {
            return Err(self.error(
                at,
                format!("rule `{}` has a regex but no literals to select lines", rule.id.get_ref()),
            ));
        }
        let circumstances = rule.timed_out
            || !(rule.exit.is_empty()
                && rule.signal.is_empty()
                && rule.status.is_empty()
                && rule.errno.is_empty())
            || (!rule.program.is_empty() && rule.literals.is_empty());
        if rule.literals.is_empty() && !circumstances {
            return Err(self.error(at, format!("rule `{}` looks for nothing", rule.id.get_ref())));
        }
        if rule.matches.is_empty() || rule.misses.is_empty() {
            let what = if rule.matches.is_empty() {
                "`match`: a text that must match"
            } else {
                "`miss`: a near miss that must not"
            };
            return Err(self.error(at, format!("rule `{}` has no example: add {what}", rule.id.get_ref())));
        }
        if let Some(next) = &rule.next {
            self.check_template(next)?;
        }
        let trace = rule.trace.as_ref().map(|trace| self.trace(trace)).transpose()?;
        let mut refines = Vec::new();
        for code in &rule.refines {
            refines.push(self.reason(code)?);
        }
        let cause = rule.cause.unwrap_or(match weight.0 {
            90.. => 1,
            70.. => 4,
            50.. => 7,
            30.. => 5,
            _ => 3,
        });
        let text = |s: String| -> Text { Cow::Owned(s) };
        let texts = |list: Vec<String>| Cow::Owned(list.into_iter().map(Cow::Owned).collect::<Vec<Text>>());
        Ok(Rule {
            id: text(rule.id.into_inner()),
            pack: text(pack.to_owned()),
            source: text(self.file.to_owned()),
            pack_line: self.line(at),
            outcome,
            weight,
            on_command,
            on_response,
            literals: Cow::Owned(rule.literals.into_iter().map(|l| Cow::Owned(l.into_inner())).collect()),
            regex: rule.regex.map(|r| text(r.into_inner())),
            above: rule.above.map(|r| text(r.into_inner())),
            above_required: rule.above_required,
            above_lines: rule.above_lines,
            below_lines: rule.below_lines,
            below: rule.below.map(|r| text(r.into_inner())),
            below_required: rule.below_required,
            join_until: rule.join_until.map(text),
            program: texts(rule.program),
            argument: texts(rule.argument),
            exit: Cow::Owned(rule.exit),
            signal: Cow::Owned(rule.signal),
            status: Cow::Owned(rule.status),
            errno: texts(rule.errno),
            timed_out: rule.timed_out,
            silent: rule.silent,
            skip_warnings: rule.skip_warnings,
            last_lines: rule.last_lines,
            max_lines: rule.max_lines,
            requires: texts(rule.requires),
            unless: texts(rule.unless),
            refines: Cow::Owned(refines),
            per_failure: rule.per_failure,
            cause,
            pick_last: rule.pick_last,
            next: rule.next.map(|n| text(n.into_inner())),
            tool: rule.tool.map(text),
            provider: rule.provider.map(text),
            credential: rule.credential.map(text),
            renewal: rule.renewal.map(text),
            trace,
            matches: Cow::Owned(rule.matches.into_iter().map(Example::from).collect()),
            misses: Cow::Owned(rule.misses.into_iter().map(Example::from).collect()),
        })
    }

    pub(crate) fn check_id(&self, id: &Spanned<String>) -> Result<(), PackError> {
        let text = id.get_ref();
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
        if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
            let message =
                format!("rule id `{}` is not 1 to 64 of a-z, 0-9, `.`, `_`, `-`", text.escape_debug());
            return Err(self.error(id.span().start, message));
        }
        Ok(())
    }

    fn outcome(&self, reason: &Spanned<String>) -> Result<RuleOutcome, PackError> {
        if reason.get_ref() == "status" {
            return Ok(RuleOutcome::Status);
        }
        self.reason(reason).map(RuleOutcome::Reason)
    }

    fn reason(&self, code: &Spanned<String>) -> Result<Reason, PackError> {
        code.get_ref().parse::<Reason>().map_err(|unknown| {
            let mut error = self.error(code.span().start, unknown.to_string());
            error.hint = Some("`backstop reasons` lists them all".to_owned());
            error
        })
    }

    fn weight(&self, rule: &RuleFile) -> Result<Weight, PackError> {
        if let (Some(_), Some(tier)) = (rule.weight, &rule.tier) {
            return Err(self.error(tier.span().start, "a rule has a tier or a weight, not both".to_owned()));
        }
        if let Some(weight) = rule.weight {
            return Ok(Weight(weight.min(99)));
        }
        let Some(tier) = &rule.tier else { return Ok(Weight(60)) };
        match Weight::TIERS.iter().find(|(name, _)| name == tier.get_ref()) {
            Some((_, weight)) => Ok(Weight(*weight)),
            None => {
                let names: Vec<_> = Weight::TIERS.iter().map(|(name, _)| *name).collect();
                let message = format!("unknown tier `{}`: one of {}", tier.get_ref(), names.join(", "));
                Err(self.error(tier.span().start, message))
            }
        }
    }

    fn trace(&self, trace: &Spanned<String>) -> Result<Trace, PackError> {
        Ok(match trace.get_ref().as_str() {
            "python" => Trace::Python,
            "javascript" => Trace::JavaScript,
            "java" => Trace::Java,
            "go" => Trace::Go,
            "rust" => Trace::Rust,
            "ruby" => Trace::Ruby,
            other => return Err(self.error(trace.span().start, format!("unknown trace `{other}`"))),
        })
    }

    fn check_literals(&self, rule: &RuleFile) -> Result<(), PackError> {
        for literal in &rule.literals {
            let length = literal.get_ref().len();
            if !(LITERAL_BYTES_MIN..=LITERAL_BYTES_MAX).contains(&length) {
                let message = format!(
                    "a literal has {LITERAL_BYTES_MIN} to {LITERAL_BYTES_MAX} bytes, this one has {length}"
                );
                return Err(self.error(literal.span().start, message));
            }
            if literal.get_ref().contains(['\n', '\r', '\0']) {
                return Err(self.error(literal.span().start, "a literal is part of one line".to_owned()));
            }
        }
        Ok(())
    }

    fn check_template(&self, next: &Spanned<String>) -> Result<(), PackError> {
        for part in next.get_ref().split('{').skip(1) {
            let name = part.split('}').next().unwrap_or(part);
            if !TEMPLATE_FACTS.contains(&name) {
                let mut error =
                    self.error(next.span().start, format!("`next` speaks of `{{{name}}}`, which is no fact"));
                let near = nearest(name, TEMPLATE_FACTS.iter().copied());
                error.hint = Some(near.map_or_else(
                    || format!("facts are {}", TEMPLATE_FACTS.join(", ")),
                    |n| format!("did you mean `{{{n}}}`?"),
                ));
                return Err(error);
            }
        }
        Ok(())
    }

    fn check_regex(&self, regex: &Spanned<String>) -> Result<(), PackError> {
        let pattern = regex.get_ref();
        let at = regex.span().start;
        if pattern.len() > REGEX_BYTES_MAX {
            return Err(
                self.error(at, format!("the regex has {} bytes, more than {REGEX_BYTES_MAX}", pattern.len()))
            );
        }
        let built = build_regex(pattern).map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => self.error(
                at,
                format!("the regex grows beyond {limit} bytes when compiled: bound its repetitions"),
            ),
            error => self.error(at, format!("broken regex: {}", last_line(&error.to_string()))),
        })?;
        for name in built.capture_names().flatten() {
            if fact_name(name).is_none() {
                let mut error = self.error(at, format!("the regex captures `{name}`, which is no fact"));
                let near = nearest(name, CAPTURES.iter().copied());
                error.hint = near.map_or_else(
                    || Some(format!("facts are {}", CAPTURES.join(", "))),
                    |n| Some(format!("did you mean `{n}`?")),
                );
                return Err(error);
            }
        }
        Ok(())
    }
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or(text).trim_start_matches("error: ")
}

/// For an unknown key: the nearest known one.
fn unknown_key_hint(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field `")?;
    let (given, known) = rest.split_once('`')?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    nearest(given, known).map(|near| format!("did you mean `{near}`?"))
}
