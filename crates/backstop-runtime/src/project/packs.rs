//! Rule packs of the user's own: read, checked, and put beside the built-in rules.

use super::ProjectError;
use backstop_classify::{Classifier, PackError, Rule, check_examples, pack};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The classifier with these packs, and the ids of their rules. A pack whose examples fail is
/// refused.
pub fn classifier_with_packs(packs: &[PathBuf]) -> Result<(Classifier, BTreeSet<String>), ProjectError> {
    let rules = read(packs)?;
    let ids: BTreeSet<String> = rules.iter().map(|rule| rule.id.to_string()).collect();
    let classifier = Classifier::with_packs(rules)?;
    let failures = check_examples(&classifier, |rule| ids.contains(&*rule.id));
    if failures.is_empty() { Ok((classifier, ids)) } else { Err(ProjectError::Examples(failures)) }
}

fn read(files: &[PathBuf]) -> Result<Vec<Rule>, ProjectError> {
    let mut rules = Vec::new();
    for file in files {
        let unreadable = |error| ProjectError::Read { file: file.clone(), error };
        let mut bytes = Vec::new();
        let opened = File::open(file).map_err(unreadable)?;
        opened.take(pack::PACK_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        let source = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..at];
            let line = before.iter().filter(|b| **b == b'\n').count() + 1;
            let column = at - before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1) + 1;
            PackError {
                file: file.display().to_string(),
                line,
                column,
                message: "the pack is not UTF-8".to_owned(),
                hint: None,
            }
        })?;
        rules.extend(pack::parse(&file.display().to_string(), &source)?);
    }
    Ok(rules)
}
