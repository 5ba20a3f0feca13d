//! What a folder shows of one stack: packages that it names, tools that it configures, scripts that
//! it has.

use super::files::Files;
use super::table::{Manager, Needs};
use super::{node, python};
use std::collections::{BTreeMap, BTreeSet};

/// What a folder shows of one stack.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Packages that it depends on, for work and for use.
    pub(super) packages: BTreeSet<String>,
    /// Tools that it configures inside a shared file: `[tool.ruff]`, `"eslintConfig"`.
    pub(super) sections: BTreeSet<String>,
    /// Scripts that can be used, by name.
    pub(super) scripts: BTreeMap<String, String>,
    /// The package manager that it says it wants.
    pub(super) manager: Option<String>,
}

impl Evidence {
    /// Reads what there is.
    pub(super) fn of(stack: &str, files: &mut Files<'_>) -> Self {
        match stack {
            "rust" => {
                rust(files);
                Self::default()
            }
            "node" => node::evidence(files),
            "python" => python::evidence(files),
            _ => Self::default(),
        }
    }

    /// Whether a row's needs are met.
    pub(super) fn fits(&self, needs: &Needs, files: &Files<'_>) -> bool {
        let any_file = |names: &[&str]| names.iter().any(|name| files.has(name));
        match needs {
            Needs::Nothing => true,
            Needs::Script(name) => self.scripts.contains_key(*name),
            Needs::Files(names) => any_file(names),
            Needs::Installed { package, files: names, section } => {
                self.packages.contains(*package) && (any_file(names) || self.sections.contains(*section))
            }
            Needs::Named { package, files: names, section } => {
                self.packages.contains(*package) || any_file(names) || self.sections.contains(*section)
            }
        }
    }

    /// Whether this is the package manager.
    pub(super) fn has_manager(&self, manager: &Manager, files: &Files<'_>) -> bool {
        match &self.manager {
            Some(wanted) => wanted == manager.name,
            None => {
                manager.usual
                    || manager.files.iter().any(|name| files.has(name))
                    || (!manager.section.is_empty() && self.sections.contains(manager.section))
            }
        }
    }
}

/// Cargo knows all about its own file; here it is only looked at for what a reader should know.
fn rust(files: &mut Files<'_>) {
    let Some(manifest) = files.toml("Cargo.toml") else { return };
    if manifest.contains_key("workspace") && manifest.contains_key("package") {
        let note = "Cargo.toml is a package and a workspace: cargo checks the package alone; \
                    name gates with `--workspace` in the plan to check all of it";
        files.notes.push(note.to_owned());
    }
}
