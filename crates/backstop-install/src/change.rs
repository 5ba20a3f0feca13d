//! A planned change of one settings file: computed, shown as a diff, applied.

use super::agent::Target;
use super::diff::unified;
use super::error::InstallError;
use super::hooks::hooks;
use super::merge::merge;
use super::patch::{apply, inverse};
use super::plugin::{OwnFile, own_file};
use super::record::{Record, Records, Undo, hash};
use super::strip::strip;
use backstop_core::FileAction;
use backstop_files::{Folder, named};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The size limit of a settings file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A planned change of one settings file. Nothing is written before [`Change::apply`].
#[derive(Debug)]
pub struct Change {
    /// The agent and its settings file.
    pub target: Target,
    /// The target of the symbolic link, if the settings file is one.
    pub leads_to: Option<PathBuf>,
    /// The events whose hooks are added or removed.
    pub events: Vec<String>,
    /// The number of hooks that call Backstop and stay, because they were edited.
    pub left: usize,
    before: Option<String>,
    after: Option<String>,
    /// Folders that are created or removed, outermost first.
    folders: Vec<PathBuf>,
    /// The record to store afterwards.
    record: Option<Record>,
    is_removal: bool,
}

impl Change {
    fn new(target: &Target, is_removal: bool) -> Result<Self, InstallError> {
        let before = read(target)?;
        let is_link = target.file.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        let leads_to = is_link.then(|| target.file.canonicalize().ok()).flatten();
        let target = target.clone();
        let (after, events, folders) = (before.clone(), Vec::new(), Vec::new());
        Ok(Self { target, leads_to, events, left: 0, before, after, folders, record: None, is_removal })
    }

    /// Plans to add our hooks.
    pub fn install(target: &Target, records: &Records) -> Result<Self, InstallError> {
        let mut change = Self::new(target, false)?;
        let file = &target.file;
        let known = records.load(file);
        let missing = if change.before.is_none() { missing_folders(file) } else { Vec::new() };
        let still = known.iter().flat_map(|record| record.folders.clone()).filter(|folder| folder.is_dir());
        let folders = still.chain(missing.iter().cloned()).collect();
        let made_file = change.before.is_none() || known.as_ref().is_some_and(|record| record.made_file);
        let mut record = Record::new(file, made_file, folders);
        change.folders = missing;
        change.record = known.clone();
        if let Some(own) = own_file(target.agent) {
            return change.install_own_file(own, record);
        }
        let text = change.before.as_deref().unwrap_or_default();
        let merge = merge(text, hooks(target.agent)).map_err(|error| InstallError::at(file, text, error))?;
        if merge.patches.is_empty() {
            return Ok(change);
        }
        // The patches were made from this text, so both always apply.
        let after = apply(text, &merge.patches).unwrap_or_else(|| text.to_owned());
        let patches = inverse(text, &merge.patches).unwrap_or_default();
        change.events = merge.events.iter().map(ToString::to_string).collect();
        record.made = merge.made;
        change.record = if !merge.was_there {
            record.undo = Some(Undo { hash: hash(&after), patches, part: None });
            Some(record)
        } else if let Some(known) = known {
            record.made.extend(known.made);
            Some(record)
        } else {
            // Which of the other hooks were added by init is unknown: no record is better than a
            // partial one.
            None
        };
        change.after = Some(after);
        Ok(change)
    }

    fn install_own_file(mut self, own: OwnFile, record: Record) -> Result<Self, InstallError> {
        match self.before.as_deref() {
            Some(text) if !own.is_ours(text) => {
                return Err(InstallError::NotOurs { file: self.target.file });
            }
            Some(text) if text == own.text => {}
            _ => {
                self.after = Some(own.text.to_owned());
                self.record = Some(record);
            }
        }
        Ok(self)
    }

    /// Plans to remove our hooks.
    pub fn remove(target: &Target, records: &Records) -> Result<Self, InstallError> {
        let mut change = Self::new(target, true)?;
        let known = records.load(&target.file);
        // Only parent folders of the file are removed, whatever a record says.
        let made = known.iter().flat_map(|record| record.folders.clone());
        let around = made.filter(|folder| target.file.starts_with(folder) && folder.is_dir()).collect();
        let Some(text) = change.before.as_deref() else {
            change.folders = around;
            return Ok(change);
        };
        let is_ours_alone = if let Some(own) = own_file(target.agent) {
            if !own.is_ours(text) {
                return Ok(change);
            }
            true
        } else {
            let at = |error| InstallError::at(&target.file, text, error);
            let strip = strip(text, known.as_ref().map(|record| &record.made)).map_err(at)?;
            let exact = known.as_ref().and_then(|record| record.undo.as_ref());
            let exact = exact.filter(|undo| undo.hash == hash(text));
            let exact = exact.and_then(|undo| apply(text, &undo.patches));
            let after = exact.or_else(|| apply(text, &strip.patches)).unwrap_or_else(|| text.to_owned());
            let is_empty = matches!(after.trim(), "" | "{}");
            change.events = strip.events;
            change.left = strip.left;
            let is_changed = after != text;
            change.after = Some(after);
            // Without a record, a file with no other content is assumed to be ours.
            is_changed
                && is_empty
                && change.leads_to.is_none()
                && known.as_ref().is_none_or(|record| record.made_file)
        };
        if is_ours_alone {
            change.after = None;
            change.folders = around;
        }
        Ok(change)
    }

    /// What the change does to the file.
    pub fn action(&self) -> FileAction {
        match (&self.before, &self.after) {
            (None, None) => FileAction::Absent,
            (None, Some(_)) => FileAction::Made,
            (Some(_), None) => FileAction::Removed,
            (Some(before), Some(after)) if before == after => FileAction::Unchanged,
            (Some(_), Some(_)) => FileAction::Changed,
        }
    }

    /// The folders that are created or removed with the file, outermost first.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The change as `diff -u` would show it under `name`; empty if nothing changes. It contains
    /// text of the file.
    pub fn diff(&self, name: &str) -> String {
        let side = |text: &Option<String>| if text.is_some() { name } else { "/dev/null" }.to_owned();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        match self.action() {
            FileAction::Absent | FileAction::Unchanged => String::new(),
            _ => {
                let body = unified(&text(&self.before), &text(&self.after));
                format!("--- {}\n+++ {}\n{body}", side(&self.before), side(&self.after))
            }
        }
    }

    /// Writes the change. Returns whether the record could be stored, where one is needed.
    pub fn apply(&self, records: &Records) -> Result<bool, InstallError> {
        let file = &self.target.file;
        if read(&self.target)? != self.before {
            return Err(InstallError::Changed { file: file.clone() });
        }
        // A read-only file could be replaced all the same, but whoever made it read-only did not
        // want that.
        let writes = !matches!(self.action(), FileAction::Unchanged | FileAction::Absent);
        if writes && file.metadata().is_ok_and(|meta| meta.permissions().readonly()) {
            let error = std::io::Error::new(ErrorKind::PermissionDenied, "it is read-only");
            return Err(InstallError::Write { file: file.clone(), error });
        }
        if self.is_removal { self.take_out(records) } else { self.put_in(records) }
    }

    fn put_in(&self, records: &Records) -> Result<bool, InstallError> {
        let file = &self.target.file;
        let (Some(after), FileAction::Made | FileAction::Changed) = (&self.after, self.action()) else {
            return Ok(true);
        };
        // The record is stored before the file is written.
        let known = records.load(file);
        let remembered = records.save(file, self.record.as_ref());
        let write = || -> Result<(), (PathBuf, std::io::Error)> {
            for folder in &self.folders {
                match std::fs::create_dir(folder) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                        return Err((folder.clone(), error));
                    }
                    _ => {}
                }
            }
            self.target.write(after.as_bytes()).map_err(|error| (file.clone(), error))
        };
        write().map_err(|(file, error)| {
            records.save(&self.target.file, known.as_ref());
            self.remove_folders();
            InstallError::Write { file, error }
        })?;
        Ok(remembered)
    }

    fn take_out(&self, records: &Records) -> Result<bool, InstallError> {
        let file = &self.target.file;
        let done = match (&self.after, self.action()) {
            (_, FileAction::Removed) => std::fs::remove_file(file),
            (Some(after), FileAction::Changed) => self.target.write(after.as_bytes()),
            _ => Ok(()),
        };
        done.map_err(|error| InstallError::Write { file: file.clone(), error })?;
        self.remove_folders();
        records.save(file, None);
        Ok(true)
    }

    /// Removes folders, innermost first. A folder that is not empty stays.
    fn remove_folders(&self) {
        for folder in self.folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The missing parent folders of a file, outermost first.
fn missing_folders(file: &Path) -> Vec<PathBuf> {
    let above = file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let mut missing: Vec<PathBuf> =
        above.take_while(|folder| folder.symlink_metadata().is_err()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// The content of a settings file; `None` if it does not exist.
pub(crate) fn read(target: &Target) -> Result<Option<String>, InstallError> {
    read_in(target.project.as_deref(), &target.file)
}

/// The content of a file; `None` if it does not exist. In a project no link is followed.
pub(crate) fn read_in(project: Option<&Path>, file: &Path) -> Result<Option<String>, InstallError> {
    let read = match project {
        Some(project) => Folder::new(project).read(file, FILE_BYTES_MAX),
        None => named::read(file, FILE_BYTES_MAX).map(Some),
    };
    let bytes = match read {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) if error.is_not_found() => {
            // There is something that leads nowhere.
            let is_link = file.symlink_metadata().is_ok_and(|found| found.is_symlink());
            return if is_link { Err(InstallError::Dangling { file: file.to_owned() }) } else { Ok(None) };
        }
        Err(error) => return Err(InstallError::refused(file, error)),
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let good =
            String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let (line, column) = backstop_core::json::place(&good, good.len());
        InstallError::NotText { file: file.to_owned(), line, column }
    })
}
