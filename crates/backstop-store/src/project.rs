//! Lists the projects of a state folder, and finds a run in them.

use crate::{Journal, ProjectKey, StateFolder, StoreError};
use backstop_core::RunId;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The largest number of projects that are read.
const PROJECTS_MAX: usize = 10_000;

/// A project that has a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its key.
    pub key: ProjectKey,
    /// The path when the database was created; `None` if the database cannot be read.
    pub path: Option<PathBuf>,
    /// The path of the database.
    pub file: PathBuf,
}

impl StateFolder {
    /// All projects, by key.
    pub fn projects(&self) -> Result<Vec<Project>, StoreError> {
        let describe = |key: ProjectKey| {
            let journal = Journal::open_key(self, &key).ok().flatten();
            let path = journal.and_then(|journal| journal.project_path().ok().flatten());
            Project { path, file: self.project_file(&key), key }
        };
        Ok(self.keys()?.into_iter().map(describe).collect())
    }

    /// The journal that contains this run. Ids are unique within a project: if several projects
    /// have it, the one begun last counts. An unreadable database is skipped, and reported only if
    /// nothing is found.
    pub fn find_run(&self, run: RunId) -> Result<Option<Journal>, StoreError> {
        let mut unreadable = None;
        let mut newest = None;
        for key in self.keys()? {
            let look = || -> Result<_, StoreError> {
                let Some(journal) = Journal::open_key(self, &key)? else { return Ok(None) };
                Ok(journal.run(run)?.map(|found| (found.started_at, journal)))
            };
            match look() {
                Ok(Some((at, journal))) => {
                    if newest.as_ref().is_none_or(|(newest, _)| *newest <= at) {
                        newest = Some((at, journal));
                    }
                }
                Ok(None) => {}
                Err(error) => unreadable = Some(error),
            }
        }
        match (newest, unreadable) {
            (Some((_, journal)), _) => Ok(Some(journal)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    /// The journals of all projects. An unreadable database is skipped, and its error is given
    /// beside them.
    pub fn journals(&self) -> Result<(Vec<Journal>, Vec<StoreError>), StoreError> {
        let (mut journals, mut unreadable) = (Vec::new(), Vec::new());
        for key in self.keys()? {
            match Journal::open_key(self, &key) {
                Ok(journal) => journals.extend(journal),
                Err(error) => unreadable.push(error),
            }
        }
        Ok((journals, unreadable))
    }

    fn keys(&self) -> Result<Vec<ProjectKey>, StoreError> {
        let folder = self.projects_folder();
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| StoreError::io(&folder, &error))?,
        };
        let mut keys = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| StoreError::io(&folder, &error))?.file_name();
            // Other files there (logs, copies, databases moved aside) are not in use.
            let key = name.to_str().and_then(|name| name.strip_suffix(".db")).map(str::parse);
            if let Some(Ok(key)) = key
                && keys.len() < PROJECTS_MAX
            {
                keys.push(key);
            }
        }
        keys.sort();
        Ok(keys)
    }
}
