//! The plan's file: what was typed becomes a plan, or one clear error.

use super::RunError;
use crate::document::{PLAN_BYTES_MAX, Plan, parse};
use backstop_core::{Name, SafeText, Sha256};
use backstop_files::named;
use backstop_runtime::project::secrets_in;
use std::path::{Path, PathBuf};

/// A plan that was read.
#[derive(Debug, Clone)]
pub struct PlanFile {
    /// The plan.
    pub plan: Plan,
    /// The file, without links.
    pub file: PathBuf,
    /// Its path from the project's root, where it is below it.
    pub path: String,
}

impl PlanFile {
    /// Reads the plan at a path.
    pub fn read(given: &Path, project: &Path) -> Result<Self, RunError> {
        let wrong = |error: std::io::Error| RunError::Read { file: given.to_owned(), error };
        let found = given.metadata().map_err(wrong)?;
        if found.is_dir() {
            return Err(RunError::PlanIsFolder { file: given.to_owned(), nearest: plan_in(given) });
        }
        if !found.is_file() {
            return Err(RunError::PlanIsNoFile { file: given.to_owned() });
        }
        if found.len() > PLAN_BYTES_MAX as u64 {
            return Err(RunError::PlanTooLarge { file: given.to_owned(), bytes: found.len() });
        }
        // A link that somebody names is their word: the plan is what it leads to.
        let text = named::read(given, PLAN_BYTES_MAX as u64).map_err(|error| wrong(error.into()))?;
        let file = given.canonicalize().map_err(wrong)?;
        let path = path_in_project(&file, project);
        match parse(&text) {
            Ok(plan) => Ok(Self { plan, file, path }),
            Err(error) => Err(RunError::Plan { file: SafeText::new(path), error: Box::new(error) }),
        }
    }

    /// The values of the variables in its `env` tables that are secrets by their names.
    pub fn secrets(&self) -> Vec<String> {
        let settings = self.plan.phases.iter().map(|phase| &phase.settings).chain([&self.plan.defaults]);
        let variables: Vec<(String, String)> = settings
            .flat_map(|one| one.env.iter())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        secrets_in(&variables, &[])
    }
}

/// A path as it is recorded: from the project's root, where it is below it.
pub fn path_in_project(file: &Path, project: &Path) -> String {
    let root = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    file.strip_prefix(&root).unwrap_or(file).to_string_lossy().into_owned()
}

/// A plan that somebody may have meant by naming its folder.
fn plan_in(folder: &Path) -> Option<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.into_iter().find(|file| file.extension().is_some_and(|ext| ext == "md"))
}

/// The name of a plan's views: readable, and its own wherever the plan lies.
pub fn view_name(path: &str) -> Name {
    let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let mut slug: String = stem
        .chars()
        .take(40)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .collect();
    slug = slug.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    let plain = slug == stem && path == format!("{stem}.md");
    let name = if plain {
        slug
    } else {
        format!("{}{}", if slug.is_empty() { "plan".to_owned() } else { slug }, hash_suffix(path))
    };
    name.parse().unwrap_or_else(|_| fallback(path))
}

fn hash_suffix(path: &str) -> String {
    format!("-{}", &digest(path)[..6])
}

fn digest(path: &str) -> String {
    Sha256::of(path).hex()
}

/// The name of the lock of a plan.
pub fn lock_name(path: &str) -> Name {
    format!("plan-{}", &digest(path)[..16]).parse().unwrap_or_else(|_| fallback(path))
}

#[expect(clippy::expect_used)] // A letter and digits are a name.
fn fallback(path: &str) -> Name {
    format!("p{}", &digest(path)[..16]).parse().expect("a letter and digits are a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_views_are_readable_and_do_not_collide() {
        assert_eq!(view_name("plan.md").as_str(), "plan");
        let deep = view_name("docs/plan.md");
        assert!(deep.as_str().starts_with("plan-") && deep != view_name("other/plan.md"));
        for odd in ["PLAN.md", "../x.md", ".md", "a b.md", "ä.md", "plan", &"x".repeat(300)] {
            assert_ne!(view_name(odd).as_str(), "plan", "{odd}");
        }
    }
}
