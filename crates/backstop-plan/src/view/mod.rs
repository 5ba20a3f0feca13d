//! The project's `.backstop/`: views of a run, for people and for tools that read files.
//!
//! No run depends on it: it can be deleted, and is written again. A status that a person changes in
//! a state file is read back as an edit. [`ViewFolder`] knows the paths, [`PhaseFile`] the format
//! of a state file, [`Edits`] what was changed. This module must not decide what an edit means for
//! the run.
//!
//! The project may come from somebody else: everything here is opened by [`Folder`], which follows
//! no link below the project's root and opens regular files only.

mod edits;
mod phase_file;

pub use edits::{Edit, EditError, Edits};
pub(crate) use phase_file::blockers;
pub use phase_file::{PHASE_FILE_SCHEMA, PhaseFile};

use crate::record::RunRecord;
use backstop_core::Name;
use backstop_files::{Durability, FileError, Folder};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The folder of all views, in the project.
pub const FOLDER: &str = ".backstop";

/// How many views that cannot be written are named in a warning.
const SHOWN_MAX: usize = 5;
/// How many earlier views of a plan are kept beside its own.
const ASIDE_MAX: u32 = 10_000;

/// The views of one plan.
#[derive(Debug, Clone)]
pub struct ViewFolder {
    project: Folder,
    root: PathBuf,
    path: PathBuf,
}

/// Views that cannot be written, and why.
#[derive(Debug)]
pub struct ViewErrors(Vec<FileError>);

impl From<FileError> for ViewErrors {
    fn from(error: FileError) -> Self {
        Self(vec![error])
    }
}

impl std::fmt::Display for ViewErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, error) in self.0.iter().take(SHOWN_MAX).enumerate() {
            write!(f, "{}{error}", if n == 0 { "" } else { "; " })?;
        }
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl ViewFolder {
    /// The views of the plan of this name, in a project.
    pub fn new(project: &Path, plan: &Name) -> Self {
        let root = project.join(FOLDER);
        Self { project: Folder::new(project), path: root.join("runs").join(plan.as_str()), root }
    }

    /// The folder of this plan's views.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the state files.
    pub fn phases(&self) -> PathBuf {
        self.path.join("phases")
    }

    /// The folder of the logs.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// The execution log.
    pub fn execution_log(&self) -> PathBuf {
        self.logs().join("execution.log")
    }

    /// `commits.sh`, the script of `--commit message-only`.
    pub fn commits_script(&self) -> PathBuf {
        self.path.join("commits.sh")
    }

    /// The state file of a phase. `id` must be a checked name.
    pub fn phase_file(&self, id: &str) -> PathBuf {
        self.phases().join(format!("phase-{id}.json"))
    }

    /// The log of an attempt. Attempts are counted over the whole run, so that no log is
    /// overwritten.
    pub fn attempt_log(&self, id: &str, attempt: u32) -> PathBuf {
        self.logs().join(format!("phase-{id}")).join(format!("attempt-{attempt}.log"))
    }

    /// Creates the folders, with a `.gitignore` that keeps them out of version control.
    pub fn make(&self) -> Result<(), FileError> {
        self.project.make_folder(&self.phases())?;
        self.project.make_folder(&self.logs())?;
        let ignore = self.root.join(".gitignore");
        if !self.project.exists(&ignore)? {
            self.write(&ignore, b"*\n")?;
        }
        Ok(())
    }

    fn write(&self, file: &Path, content: &[u8]) -> Result<(), FileError> {
        self.project.replace(file, content, Durability::Later)
    }

    /// Whether the folder of the state files is there.
    fn has_phases(&self) -> bool {
        self.project.has_folder(&self.phases())
    }

    /// Reads a view that a person may have changed; `None` if there is none.
    fn read(&self, file: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
        self.project.read(file, bytes_max)
    }

    /// Opens the log of an attempt for appending.
    pub(crate) fn open_attempt_log(&self, id: &str, attempt: u32) -> Result<File, FileError> {
        let log = self.attempt_log(id, attempt);
        self.project.make_folder(log.parent().unwrap_or(&self.path))?;
        self.project.append(&log)
    }

    /// Opens the log of checks that belong to no phase, for appending.
    pub(crate) fn open_base_log(&self) -> Result<File, FileError> {
        self.project.make_folder(&self.logs())?;
        self.project.append(&self.logs().join("base.log"))
    }

    /// The output of runs that were resumed without a person.
    pub fn resumed_log(&self) -> PathBuf {
        self.logs().join("resumed.log")
    }

    /// Opens the log of runs that were resumed without a person, for appending.
    pub(crate) fn open_resumed_log(&self) -> Result<File, FileError> {
        self.make()?;
        self.project.append(&self.resumed_log())
    }

    /// Opens the log of an attempt for reading.
    pub fn read_attempt_log(&self, id: &str, attempt: u32) -> Result<File, FileError> {
        self.project.open(&self.attempt_log(id, attempt))
    }

    /// Writes a prompt of an attempt beside its log, with this ending.
    pub(crate) fn write_prompt(
        &self,
        id: &str,
        attempt: u32,
        ending: &str,
        prompt: &[u8],
    ) -> Result<(), FileError> {
        self.write(&self.attempt_log(id, attempt).with_extension(ending), prompt)
    }

    /// Writes the state files of these phases. One that cannot be written keeps no other from it.
    pub fn write_phases(&self, record: &RunRecord, phases: &[usize]) -> Result<(), ViewErrors> {
        let mut errors = Vec::new();
        for &at in phases {
            let Some(id) = record.progress.order.get(at) else { continue };
            let text = PhaseFile::of(record, at).to_text();
            errors.extend(self.again(|| self.write(&self.phase_file(id), text.as_bytes())).err());
        }
        if errors.is_empty() { Ok(()) } else { Err(ViewErrors(errors)) }
    }

    /// Writes `config.json`, the summary of the run.
    pub fn write_config(&self, config: &serde_json::Value) -> Result<(), FileError> {
        let text = format!("{}\n", backstop_report::to_json(config));
        self.again(|| self.write(&self.path.join("config.json"), text.as_bytes()))
    }

    /// Writes `commits.sh`.
    pub fn write_commits(&self, script: &[u8]) -> Result<(), FileError> {
        self.again(|| self.write(&self.commits_script(), script))
    }

    /// Appends lines to the execution log.
    pub fn log(&self, lines: &str) -> Result<(), FileError> {
        self.again(|| self.project.append_lines(&self.execution_log(), lines.as_bytes()))
    }

    /// Writes, and once more where somebody has deleted the folder meanwhile.
    fn again(&self, write: impl Fn() -> Result<(), FileError>) -> Result<(), FileError> {
        match write() {
            Err(error) if error.is_not_found() => {
                self.make()?;
                write()
            }
            done => done,
        }
    }

    /// Renames the folder of this plan's views, and returns its new path. Nothing where there is no
    /// such folder.
    pub fn put_aside(&self) -> Result<Option<PathBuf>, FileError> {
        if !self.project.exists(&self.path)? {
            return Ok(None);
        }
        for n in 1..ASIDE_MAX {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".old-{n}"));
            let target = self.path.with_file_name(name);
            if !self.project.exists(&target)? {
                self.project.rename(&self.path, &target)?;
                return Ok(Some(target));
            }
        }
        let source = std::io::Error::other("there are too many old views; remove some");
        Err(FileError::Io { path: self.path.clone(), source })
    }
}
