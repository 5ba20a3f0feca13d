//! The plan's file: what was typed becomes a plan, or one clear error.

use super::RunError;
use crate::document::{By, Format, PLAN_BYTES_MAX, Plan, PlanText, ReadOptions, read, stories_of};
use crate::record::RunRecord;
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
    /// The other files of the plan, without links: BMAD's stories.
    pub others: Vec<PathBuf>,
}

/// The file of BMAD that lists the states of stories.
const SPRINT: &str = "sprint-status.yaml";

impl PlanFile {
    /// Reads the plan at a path. A folder with a `sprint-status.yaml` and a story that it lists are
    /// the plan of all its stories.
    pub fn read(given: &Path, project: &Path, options: &ReadOptions) -> Result<Self, RunError> {
        let sprint = sprint_of(given);
        let given = sprint.as_deref().unwrap_or(given);
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
        let others = story_files(&file, &text);
        let stories = read_all(&others);
        match read(&texts(&file, &text, &others, &stories), options) {
            Ok(plan) => Ok(Self { plan, file, path, others }),
            Err(errors) => Err(RunError::Plan { file: SafeText::new(path), errors: Box::new(errors) }),
        }
    }

    /// All files of the plan, the one that was named first.
    pub fn files(&self) -> Vec<PathBuf> {
        std::iter::once(&self.file).chain(&self.others).cloned().collect()
    }

    /// How the plan was read: the same document is read the same way again.
    pub fn options(&self) -> ReadOptions {
        ReadOptions { format: Some(self.plan.format), by: Some(self.plan.by) }
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

/// How a recorded run read its plan.
pub fn recorded_options(record: &RunRecord) -> ReadOptions {
    let format = record.plan.format.as_deref().and_then(Format::from_name);
    let by = record.plan.by.as_deref().and_then(By::from_name);
    // Without a record it is Backstop's own, or was never run.
    ReadOptions { format: format.or_else(|| (!record.is_empty()).then_some(Format::Backstop)), by }
}

/// The `sprint-status.yaml` that is meant: of a folder, or of a story that it lists.
fn sprint_of(given: &Path) -> Option<PathBuf> {
    if given.is_dir() {
        return Some(given.join(SPRINT)).filter(|file| file.is_file());
    }
    if given.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let folder = given.canonicalize().ok()?.parent()?.to_owned();
    let name = given.file_name()?;
    let sprint =
        [folder.join(SPRINT), folder.parent()?.join(SPRINT)].into_iter().find(|file| file.is_file())?;
    let text = named::read(&sprint, PLAN_BYTES_MAX as u64).ok()?;
    let stories = story_files(&sprint, &text);
    stories.iter().any(|story| story.file_name() == Some(name)).then_some(sprint)
}

/// The files of the stories that a `sprint-status.yaml` lists, where they are there.
pub(crate) fn story_files(file: &Path, text: &[u8]) -> Vec<PathBuf> {
    let Some((place, keys)) = stories_of(text) else { return Vec::new() };
    let folder = file.parent().unwrap_or(Path::new("."));
    let place =
        place.filter(|place| !place.contains("..") && !place.starts_with('/') && !place.contains('{'));
    let folders =
        [Some(folder.to_owned()), Some(folder.join("stories")), place.map(|place| folder.join(place))];
    let mut found = Vec::new();
    for (key, id) in keys {
        let names = [
            format!("{key}.md"),
            format!("story-{key}.md"),
            format!("story-{id}.md"),
            format!("{id}.story.md"),
        ];
        let paths = folders.iter().flatten().flat_map(|folder| names.iter().map(|name| folder.join(name)));
        found.extend(paths.filter_map(|path| path.canonicalize().ok()).find(|path| path.is_file()));
    }
    found
}

/// The content of these files; of one that cannot be read, nothing.
fn read_all(files: &[PathBuf]) -> Vec<Vec<u8>> {
    files.iter().map(|file| named::read(file, PLAN_BYTES_MAX as u64).unwrap_or_default()).collect()
}

/// The files of a plan with their names.
pub(crate) fn texts<'t>(
    file: &'t Path,
    text: &'t [u8],
    others: &'t [PathBuf],
    stories: &'t [Vec<u8>],
) -> Vec<PlanText<'t>> {
    let name = |path: &'t Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let first = PlanText { name: name(file), text };
    let stories = others.iter().zip(stories).map(|(path, text)| PlanText { name: name(path), text });
    std::iter::once(first).chain(stories).collect()
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
