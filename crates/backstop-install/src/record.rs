//! Records of what `backstop init` changed, stored in the state folder, so that it can be undone to
//! the byte.
//!
//! A lost record costs exactness and nothing else: hooks are recognised by the command that they
//! call. A record holds nothing of a user's settings except white space.

use super::patch::Patch;
use backstop_core::Sha256;
use backstop_files::{Durability, Folder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The version of the format. A record of another version counts as lost.
const SCHEMA: u32 = 1;

/// The size limit of a record, in bytes. A normal one has a few kilobytes.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// What `backstop init` changed in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    schema: u32,
    /// The file.
    file: PathBuf,
    /// Whether init created the file.
    pub(crate) made_file: bool,
    /// Folders that init created, outermost first.
    pub(crate) folders: Vec<PathBuf>,
    /// Objects and lists in the file that init created.
    pub(crate) made: BTreeSet<String>,
    /// How to undo the change, as long as the file is not edited.
    pub(crate) undo: Option<Undo>,
}

/// The way back to the original bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undo {
    /// The hash of the file as init left it.
    pub(crate) hash: String,
    /// The patches to apply.
    pub(crate) patches: Vec<Patch>,
    /// The part that was replaced, where only a part can be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<Part>,
}

/// An object or a table of a file that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) key: String,
    /// What was put there.
    pub(crate) put: String,
    /// What was there before.
    pub(crate) was: String,
}

impl Record {
    /// A record of a file.
    pub(crate) fn new(file: &Path, made_file: bool, folders: Vec<PathBuf>) -> Self {
        let made = BTreeSet::new();
        Self { schema: SCHEMA, file: key(file), made_file, folders, made, undo: None }
    }
}

/// The hash of a text.
pub(crate) fn hash(text: &str) -> String {
    Sha256::of(text).hex()
}

/// The canonical path of a file, whether it and its folder exist or not.
fn key(file: &Path) -> PathBuf {
    let parent = file.parent().unwrap_or(Path::new("/"));
    for folder in parent.ancestors() {
        if let (Ok(real), Ok(rest)) = (folder.canonicalize(), file.strip_prefix(folder)) {
            return real.join(rest);
        }
    }
    file.to_owned()
}

/// All records of a user.
#[derive(Debug, Clone)]
pub struct Records {
    folder: Option<PathBuf>,
}

impl Records {
    /// Stored in `folder`, which need not exist yet. Without a folder, nothing is stored.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    fn file(&self, of: &Path) -> Option<PathBuf> {
        let name = hash(&key(of).to_string_lossy());
        Some(self.folder.as_ref()?.join(format!("{}.json", &name[..32])))
    }

    /// The record of a file. A record that cannot be read counts as lost.
    pub(crate) fn load(&self, of: &Path) -> Option<Record> {
        let folder = Folder::new(self.folder.as_ref()?);
        let text = folder.read(&self.file(of)?, RECORD_BYTES_MAX).ok()??;
        let record: Record = serde_json::from_slice(&text).ok()?;
        (record.schema == SCHEMA && record.file == key(of)).then_some(record)
    }

    /// Stores a record, or removes it. Returns whether that worked.
    pub(crate) fn save(&self, of: &Path, record: Option<&Record>) -> bool {
        let Some(file) = self.file(of) else { return record.is_none() };
        let Some(record) = record else {
            let gone = std::fs::remove_file(&file);
            // The folder is removed with its last record.
            let _ = file.parent().map(std::fs::remove_dir);
            return gone.is_ok() || file.symlink_metadata().is_err();
        };
        let made = file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok());
        let text = serde_json::to_string(record).ok();
        let write = |text: String| {
            let folder = Folder::new(file.parent().unwrap_or(Path::new("/")));
            folder.replace(&file, text.as_bytes(), Durability::OnDisk).is_ok()
        };
        made && text.is_some_and(write)
    }
}
