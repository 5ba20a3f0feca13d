//! What pyproject.toml, requirements and ini files show.

use super::evidence::Evidence;
use super::files::Files;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Files that name packages line by line.
pub(super) const REQUIREMENTS: &[&str] = &[
    "requirements.txt",
    "requirements-dev.txt",
    "requirements_dev.txt",
    "requirements-test.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
];
/// Files whose sections configure tools.
const INI: &[&str] = &["setup.cfg", "tox.ini"];

pub(super) fn evidence(files: &mut Files<'_>) -> Evidence {
    let mut evidence = Evidence::default();
    if let Some(project) = files.toml("pyproject.toml") {
        pyproject(&project, &mut evidence);
    }
    for name in REQUIREMENTS {
        if let Some(text) = files.text(name) {
            evidence.packages.extend(text.lines().filter_map(package));
        }
    }
    for name in INI {
        if let Some(text) = files.text(name) {
            evidence.sections.extend(text.lines().filter_map(section));
        }
    }
    evidence
}

fn pyproject(project: &Table, evidence: &mut Evidence) {
    let tool = project.get("tool").and_then(Value::as_table);
    evidence.sections.extend(tool.into_iter().flat_map(|tool| tool.keys().cloned()));
    let packages = &mut evidence.packages;
    let at = |path: &[&str]| {
        let first = project.get(*path.first()?)?;
        path[1..].iter().try_fold(first, |value, key| value.get(*key))
    };
    // Lists of requirements, alone or in groups.
    for path in [
        &["project", "dependencies"][..],
        &["project", "optional-dependencies"],
        &["dependency-groups"],
        &["tool", "uv", "dev-dependencies"],
        &["tool", "pdm", "dev-dependencies"],
    ] {
        if let Some(value) = at(path) {
            listed(value, packages);
        }
    }
    // Poetry has tables whose keys are the packages.
    for path in [&["tool", "poetry", "dependencies"][..], &["tool", "poetry", "dev-dependencies"]] {
        keys(at(path), packages);
    }
    let groups = at(&["tool", "poetry", "group"]).and_then(Value::as_table);
    for group in groups.into_iter().flat_map(Table::values) {
        keys(group.get("dependencies"), packages);
    }
}

fn listed(value: &Value, packages: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => packages.extend(list.iter().filter_map(Value::as_str).filter_map(package)),
        Value::Table(groups) => {
            groups.values().filter(|group| group.is_array()).for_each(|group| listed(group, packages));
        }
        _ => {}
    }
}

fn keys(value: Option<&Value>, packages: &mut BTreeSet<String>) {
    let table = value.and_then(Value::as_table);
    packages.extend(table.into_iter().flat_map(|table| table.keys()).filter_map(|key| package(key)));
}

/// The package of a requirement, such as `pytest[x]>=8 ; python_version > "3"`, as it is written
/// everywhere.
fn package(line: &str) -> Option<String> {
    let name = line.trim().split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).next()?;
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts.then(|| name.to_ascii_lowercase().replace(['_', '.'], "-"))
}

/// The tool of a section, such as `[tool:pytest]` or `[mypy]`.
fn section(line: &str) -> Option<String> {
    let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
    Some(name.strip_prefix("tool:").unwrap_or(name).to_owned())
}
