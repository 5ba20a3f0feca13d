//! Rule packs of the user's own: read, checked, and put beside the built-in rules.

use super::ProjectError;
use backstop_classify::{
    Classifier, EffectRule, Effects, PackError, Rule, check_examples, effect_pack, pack,
};
use backstop_files::named;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The classifier with these packs, and the ids of their rules. A pack whose examples fail is
/// refused.
pub fn classifier_with_packs(packs: &[PathBuf]) -> Result<(Classifier, BTreeSet<String>), ProjectError> {
    let rules = read(packs)?;
    let ids: BTreeSet<String> = rules.iter().map(|rule| rule.id.to_string()).collect();
    let classifier = Classifier::with_packs(rules)?;
    let failures = check_examples(&classifier, |rule| ids.contains(&*rule.id));
    if failures.is_empty() { Ok((classifier, ids)) } else { Err(ProjectError::Examples(failures)) }
}

/// The table of commands that change something, with these packs, and the ids of their effect
/// rules. A pack whose examples fail is refused.
pub fn effects_with_packs(packs: &[PathBuf]) -> Result<(Effects, BTreeSet<String>), ProjectError> {
    let mut rules: Vec<EffectRule> = Vec::new();
    for file in packs {
        rules.extend(effect_pack::parse_effects(&file.display().to_string(), &source(file)?)?);
    }
    let ids: BTreeSet<String> = rules.iter().map(|rule| rule.id.to_string()).collect();
    let effects = Effects::with_packs(rules);
    let failures = effects.check_examples(|rule| ids.contains(&*rule.id));
    if failures.is_empty() { Ok((effects, ids)) } else { Err(ProjectError::Examples(failures)) }
}

/// Checks packs and runs their examples. Gives the number of their rules, and of their examples.
pub fn tested_packs(packs: &[PathBuf]) -> Result<(usize, usize), ProjectError> {
    let (classifier, ids) = classifier_with_packs(packs)?;
    let (effects, effect_ids) = effects_with_packs(packs)?;
    let rules = classifier.rules().iter().filter(|rule| ids.contains(&*rule.id));
    let of_rules: usize = rules.map(|rule| rule.matches.len() + rule.misses.len()).sum();
    let rules = effects.rules().iter().filter(|rule| effect_ids.contains(&*rule.id));
    let of_effects: usize = rules.map(|rule| rule.matches.len() + rule.misses.len()).sum();
    Ok((ids.len() + effect_ids.len(), of_rules + of_effects))
}

fn read(files: &[PathBuf]) -> Result<Vec<Rule>, ProjectError> {
    let mut rules = Vec::new();
    for file in files {
        rules.extend(pack::parse(&file.display().to_string(), &source(file)?)?);
    }
    Ok(rules)
}

/// The text of a pack.
fn source(file: &Path) -> Result<String, ProjectError> {
    let unreadable = |error| ProjectError::Read { file: file.to_owned(), error };
    let opened = named::open(file).map_err(|error| unreadable(error.into()))?;
    let mut bytes = Vec::new();
    opened.take(pack::PACK_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = at - before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1) + 1;
        let file = file.display().to_string();
        PackError { file, line, column, message: "the pack is not UTF-8".to_owned(), hint: None }.into()
    })
}
