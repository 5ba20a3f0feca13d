//! The project's `.backstop/`: views of a run, for people and for tools that read files.
//!
//! No run depends on it: it can be deleted, and is written again. A status that a person changes in
//! a state file is read back as an edit. [`ViewFolder`] knows the paths, [`PhaseFile`] the format
//! of a state file, [`Edits`] what was changed. This module must not decide what an edit means for
//! the run.

mod edits;
mod phase_file;

pub use edits::{Edit, EditError, Edits};
pub(crate) use phase_file::blockers;
pub use phase_file::{PHASE_FILE_SCHEMA, PhaseFile};

use crate::record::RunRecord;
use backstop_core::Name;
use backstop_store::write_view;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of all views, in the project.
pub const FOLDER: &str = ".backstop";

/// The views of one plan.
#[derive(Debug, Clone)]
pub struct ViewFolder {
    root: PathBuf,
    path: PathBuf,
}

impl ViewFolder {
    /// The views of the plan of this name, in a project.
    pub fn new(project: &Path, plan: &Name) -> Self {
        let root = project.join(FOLDER);
        Self { path: root.join("runs").join(plan.as_str()), root }
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
    pub fn make(&self) -> std::io::Result<()> {
        std::fs::create_dir_all(self.phases())?;
        std::fs::create_dir_all(self.logs())?;
        let ignore = self.root.join(".gitignore");
        if ignore.symlink_metadata().is_err() {
            write_view(&ignore, b"*\n")?;
        }
        Ok(())
    }

    /// Writes the state files of these phases.
    pub fn write_phases(&self, record: &RunRecord, phases: &[usize]) -> std::io::Result<()> {
        for &at in phases {
            let Some(id) = record.progress.order.get(at) else { continue };
            let text = PhaseFile::of(record, at).to_text();
            self.again(|| write_view(&self.phase_file(id), text.as_bytes()))?;
        }
        Ok(())
    }

    /// Writes `config.json`, the summary of the run.
    pub fn write_config(&self, config: &serde_json::Value) -> std::io::Result<()> {
        let text = format!("{}\n", backstop_report::to_json(config));
        self.again(|| write_view(&self.path.join("config.json"), text.as_bytes()))
    }

    /// Writes `commits.sh`.
    pub fn write_commits(&self, script: &[u8]) -> std::io::Result<()> {
        self.again(|| write_view(&self.commits_script(), script))
    }

    /// Appends lines to the execution log.
    pub fn log(&self, lines: &str) -> std::io::Result<()> {
        let append = || {
            let mut file = OpenOptions::new().create(true).append(true).open(self.execution_log())?;
            file.write_all(lines.as_bytes())
        };
        self.again(append)
    }

    /// Writes, and once more where somebody has deleted the folder meanwhile.
    fn again(&self, write: impl Fn() -> std::io::Result<()>) -> std::io::Result<()> {
        match write() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.make()?;
                write()
            }
            done => done,
        }
    }

    /// Renames the folder of this plan's views, and returns its new path. Nothing where there is no
    /// such folder.
    pub fn put_aside(&self) -> std::io::Result<Option<PathBuf>> {
        if self.path.symlink_metadata().is_err() {
            return Ok(None);
        }
        for n in 1..10_000u32 {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".old-{n}"));
            let target = self.path.with_file_name(name);
            if target.symlink_metadata().is_err() {
                std::fs::rename(&self.path, &target)?;
                return Ok(Some(target));
            }
        }
        Err(std::io::Error::other("there are too many old views; remove some"))
    }
}
