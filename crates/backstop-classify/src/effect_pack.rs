//! Reads the effect rules of a pack: the `[[effect]]` tables beside its `[[rule]]` tables.
//!
//! The build script reads the built-in ones with this same code. It must not match anything.

use crate::effect_rule::{Changes, EffectRule};
use crate::pack::{LIST_MAX, PackError, Place, build_regex, open};
use crate::rule::{List, Text};
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// The longest entry of a list, in bytes.
const ENTRY_BYTES_MAX: usize = 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EffectFile {
    id: Spanned<String>,
    does: String,
    #[serde(default)]
    repeatable: bool,
    changes: Option<Spanned<String>>,
    program: Vec<String>,
    #[serde(default)]
    subcommand: Vec<String>,
    #[serde(default)]
    option: Vec<String>,
    #[serde(default)]
    argument: Vec<Spanned<String>>,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    statement: Vec<String>,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    url: Vec<String>,
    #[serde(default)]
    short_values: String,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    unsent_exit: Vec<i64>,
    #[serde(default, rename = "match")]
    matches: Vec<String>,
    #[serde(default, rename = "miss")]
    misses: Vec<String>,
}

/// Reads the effect rules of a pack.
pub fn parse_effects(file: &str, source: &str) -> Result<Vec<EffectRule>, PackError> {
    let (place, pack) = open(file, source)?;
    let mut effects: Vec<EffectRule> = Vec::with_capacity(pack.effect.len());
    for effect in pack.effect {
        let at = effect.span().start;
        let effect = checked(&place, effect.into_inner(), at)?;
        if effects.iter().any(|known| known.id == effect.id) {
            return Err(place.error(at, format!("effect id `{}` is used twice", effect.id)));
        }
        effects.push(effect);
    }
    Ok(effects)
}

fn checked(place: &Place<'_>, effect: EffectFile, at: usize) -> Result<EffectRule, PackError> {
    place.check_id(&effect.id)?;
    let id = effect.id.into_inner();
    let wrong = |message: String| Err(place.error(at, message));
    let changes = match effect.changes.as_ref().map(|changes| changes.get_ref().as_str()) {
        Some("one") => Changes::One,
        Some("refused") => Changes::Refused,
        Some("reported") => Changes::Reported,
        None | Some("many") => Changes::Many,
        Some(other) => {
            return wrong(format!(
                "unknown `changes` of effect `{id}`: `{other}`: one, refused, reported or many"
            ));
        }
    };
    if effect.program.is_empty() {
        return wrong(format!("effect `{id}` names no program"));
    }
    if effect.statement.is_empty() != effect.reads.is_empty() {
        return wrong(format!("effect `{id}` has `statement` or `reads`, and needs both"));
    }
    if effect.matches.is_empty() || effect.misses.is_empty() {
        let what = if effect.matches.is_empty() {
            "`match`: a command that it is about"
        } else {
            "`miss`: a near miss that it is not about"
        };
        return wrong(format!("effect `{id}` has no example: add {what}"));
    }
    for argument in &effect.argument {
        if let Some(regex) = argument.get_ref().strip_prefix('~')
            && build_regex(regex).is_err()
        {
            return Err(place.error(argument.span().start, format!("broken regex in effect `{id}`")));
        }
    }
    let argument: Vec<String> = effect.argument.into_iter().map(Spanned::into_inner).collect();
    let lists = [
        effect.program,
        effect.subcommand,
        effect.option,
        argument,
        effect.also,
        effect.unless,
        effect.statement,
        effect.reads,
        effect.url,
        effect.flags,
        effect.values,
        effect.matches,
        effect.misses,
    ];
    if lists.iter().any(|list| list.len() > LIST_MAX || list.iter().any(|e| e.len() > ENTRY_BYTES_MAX)) {
        return wrong(format!(
            "effect `{id}` has a list of more than {LIST_MAX} entries, or one of more than {ENTRY_BYTES_MAX} bytes"
        ));
    }
    let [
        program,
        subcommand,
        option,
        argument,
        also,
        unless,
        statement,
        reads,
        url,
        flags,
        values,
        matches,
        misses,
    ] = lists.map(texts);
    Ok(EffectRule {
        id: Cow::Owned(id),
        pack: Cow::Owned(place.pack_name().to_owned()),
        source: Cow::Owned(place.file.to_owned()),
        pack_line: place.line(at),
        does: Cow::Owned(effect.does),
        repeatable: effect.repeatable,
        changes,
        program,
        subcommand,
        option,
        argument,
        also,
        unless,
        statement,
        reads,
        url,
        short_values: Cow::Owned(effect.short_values),
        flags,
        values,
        unsent_exit: Cow::Owned(effect.unsent_exit),
        matches,
        misses,
    })
}

fn texts(list: Vec<String>) -> List<Text> {
    Cow::Owned(list.into_iter().map(Cow::Owned).collect())
}
