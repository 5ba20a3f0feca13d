//! Which gates a folder has.
//!
//! It reads a bounded number of small files of the folder itself and runs nothing. What it looks
//! for is a table (`table.rs`); `evidence.rs` is what a folder shows of a stack, `files.rs` how
//! files are read. What cannot be read is a note, never an error. Subfolders are not looked into.

mod evidence;
mod files;
mod node;
mod python;
mod table;

use super::{CommandLine, Gate, Origin};
use evidence::Evidence;
use files::Files;
use std::collections::BTreeMap;
use std::path::Path;
use table::{Fix, MANAGERS, Manager, Needs, ROWS, Row, STACKS};

pub use files::FILE_BYTES_MAX;

/// How many entries of the folder are looked at for projects below it.
const ENTRIES_MAX: usize = 500;
/// How many of those are named.
const NAMED_MAX: usize = 5;
/// Folders that hold other people's projects.
const NOT_OURS: &[&str] =
    &["node_modules", "target", "vendor", "venv", "env", "dist", "build", "third_party"];

/// A language with its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack {
    /// `rust`, `node`, `python` or `go`.
    pub name: &'static str,
    /// Its package manager, where there are several: `pnpm`, `uv`.
    pub manager: Option<&'static str>,
}

/// What was found in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detected {
    /// The stacks, always in the same order.
    pub stacks: Vec<Stack>,
    /// Their gates: for each stack lint, format, typecheck, test, where it has them.
    pub gates: Vec<Gate>,
    /// What a reader should know: what could not be read, what was left out. Text from the folder
    /// is escaped in it.
    pub notes: Vec<String>,
}

/// Says which gates a folder has.
pub fn detect(folder: &Path) -> Detected {
    let mut files = Files::new(folder);
    let mut detected = Detected::default();
    for (stack, markers) in STACKS {
        if !markers.iter().any(|marker| files.has(marker)) {
            continue;
        }
        let evidence = Evidence::of(stack, &mut files);
        let manager =
            MANAGERS.iter().find(|manager| manager.stack == *stack && evidence.has_manager(manager, &files));
        detected.stacks.push(Stack { name: stack, manager: manager.map(|manager| manager.name) });
        detected.gates.extend(gates(stack, manager, &evidence, &files));
    }
    qualify(&mut detected.gates);
    detected.notes = std::mem::take(&mut files.notes);
    detected.notes.extend(below(folder, &detected.stacks));
    detected
}

/// The scripts of a folder's package.json, where it can be read.
pub fn package_scripts(folder: &Path) -> Option<BTreeMap<String, String>> {
    let mut files = Files::new(folder);
    let evidence = Evidence::of("node", &mut files);
    // A package.json that was read has keys, and each is a section.
    (!evidence.sections.is_empty()).then_some(evidence.scripts)
}

/// The gates of one stack: for each name, the first row that fits.
fn gates(
    stack: &'static str,
    manager: Option<&Manager>,
    evidence: &Evidence,
    files: &Files<'_>,
) -> Vec<Gate> {
    let mut gates: Vec<Gate> = Vec::new();
    for row in ROWS.iter().filter(|row| row.stack == stack) {
        if gates.iter().all(|gate| gate.name != row.gate) && evidence.fits(&row.needs, files) {
            gates.push(gate(row, manager, evidence));
        }
    }
    gates
}

fn gate(row: &Row, manager: Option<&Manager>, evidence: &Evidence) -> Gate {
    let line = |words: &[&'static str]| {
        let mut line = Vec::new();
        for word in words {
            match *word {
                "{run}" => line.extend(manager.map_or(&[][..], |m| m.run)),
                "{exec}" => line.extend(manager.map_or(&[][..], |m| m.exec)),
                word => line.push(word),
            }
        }
        CommandLine::words_of(&line)
    };
    let mut gate = Gate::new(row.gate, line(row.check), Origin::Detected(row.stack));
    gate.fix = match row.fix {
        Fix::None => None,
        Fix::Line(words) => Some(line(words)),
        Fix::Script(name) => evidence.scripts.contains_key(name).then(|| line(&["{run}", name])),
    };
    gate.passes = row.passes;
    gate.install = install(row, manager, evidence);
    gate
}

fn install(row: &Row, manager: Option<&Manager>, evidence: &Evidence) -> Option<String> {
    if !row.install.is_empty() {
        return Some(row.install.to_owned());
    }
    let manager = manager?;
    let declared = matches!(row.needs, Needs::Script(_)) || evidence.packages.contains(row.tool);
    Some(if declared { manager.install } else { manager.add }.replace("{tool}", row.tool))
}

/// A name that two stacks give is followed by the stack.
fn qualify(gates: &mut [Gate]) {
    let names: Vec<String> = gates.iter().map(|gate| gate.name.clone()).collect();
    for gate in gates {
        if names.iter().filter(|name| **name == gate.name).count() > 1
            && let Origin::Detected(stack) = gate.origin
        {
            gate.name = format!("{}:{stack}", gate.name);
        }
    }
}

/// Projects of other stacks below the folder, which are not looked into.
fn below(folder: &Path, stacks: &[Stack]) -> Option<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .take(ENTRIES_MAX)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()))
        .collect();
    names.sort();
    let other = |name: &&String| {
        STACKS
            .iter()
            .filter(|(stack, _)| stacks.iter().all(|known| known.name != *stack))
            .any(|(_, markers)| markers.iter().any(|marker| folder.join(name).join(marker).is_file()))
    };
    let found: Vec<&String> = names.iter().filter(other).collect();
    if found.is_empty() {
        return None;
    }
    let shown: Vec<String> = found.iter().take(NAMED_MAX).map(|name| files::shown(name)).collect();
    let more = if found.len() > NAMED_MAX { " and more" } else { "" };
    Some(format!(
        "subfolders are not looked into: {}{more} have projects of their own; name their gates in the plan",
        shown.join(", ")
    ))
}

#[cfg(test)]
mod tests;
