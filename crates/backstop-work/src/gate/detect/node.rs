//! What package.json shows.

use super::evidence::Evidence;
use super::files::{Files, shown};
use super::table::MANAGERS;

/// What `npm init` writes where there are no tests.
const NO_TEST: &str = "no test specified";
/// What makes a script a check and not a change.
const CHECKS: &[&str] = &["--check", "--list-different", " -l", " -c "];

pub(super) fn evidence(files: &mut Files<'_>) -> Evidence {
    let mut evidence = Evidence::default();
    let Some(package) = files.json("package.json") else { return evidence };
    for key in ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"] {
        let named = package.get(key).and_then(|value| value.as_object());
        evidence.packages.extend(named.into_iter().flat_map(|named| named.keys().cloned()));
    }
    evidence.sections.extend(package.as_object().into_iter().flat_map(|all| all.keys().cloned()));
    for (name, script) in package.get("scripts").and_then(|value| value.as_object()).into_iter().flatten() {
        match script.as_str().map(str::trim) {
            Some(script) if script.contains(NO_TEST) => {
                files
                    .notes
                    .push(format!("the script `{}` of package.json is npm's placeholder", shown(name)));
            }
            Some(script) if !script.is_empty() => {
                evidence.scripts.insert(name.clone(), script.to_owned());
            }
            _ => {}
        }
    }
    a_format_that_checks(&mut evidence);
    let wanted = package.get("packageManager").and_then(|value| value.as_str());
    if let Some(name) = wanted.and_then(|wanted| wanted.split('@').next()) {
        if MANAGERS.iter().any(|manager| manager.stack == "node" && manager.name == name) {
            evidence.manager = Some(name.to_owned());
        } else {
            files.notes.push(format!(
                "package.json wants the package manager `{}`, which is not known",
                shown(name)
            ));
        }
    }
    if evidence.manager.is_none() {
        several_locks(files);
    }
    if package.get("workspaces").is_some() || files.has("pnpm-workspace.yaml") {
        files.notes.push("package.json has workspaces: only the scripts of the root are used".to_owned());
    }
    if !evidence.packages.is_empty() && !files.has_folder("node_modules") && !files.has(".pnp.cjs") {
        files.notes.push(
            "there is no node_modules folder: packages must be installed before gates can pass".to_owned(),
        );
    }
    evidence
}

/// A script `format` that only checks is a check; one that writes would change the work.
fn a_format_that_checks(evidence: &mut Evidence) {
    if let Some(script) = evidence.scripts.get("format")
        && CHECKS.iter().any(|check| format!("{script} ").contains(check))
    {
        let script = evidence.scripts.remove("format").unwrap_or_default();
        evidence.scripts.insert("format (check)".to_owned(), script);
    }
}

fn several_locks(files: &mut Files<'_>) {
    let locked: Vec<&str> = MANAGERS
        .iter()
        .filter(|manager| manager.stack == "node" && manager.files.iter().any(|name| files.has(name)))
        .map(|manager| manager.name)
        .collect();
    if let [first, _, ..] = locked.as_slice() {
        files.notes.push(format!("there are lock files of {}: {first} is used", locked.join(" and ")));
    }
}
