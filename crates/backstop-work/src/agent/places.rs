//! The files of one attempt: prompt, result, schema, last message, retry context.
//!
//! They lie in a private folder that the caller made, outside of the tree. The result has a folder
//! of its own in there, the only one that an agent is let into. What is left of an earlier attempt
//! is taken away first: an old result is no result.

use super::schema::RESULT_SCHEMA;
use super::trouble::ResultTrouble;
use backstop_core::fnv1a;
use backstop_files::{FileError, Folder};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of a result file is read; a longer one is no result.
pub const RESULT_BYTES_MAX: u64 = 1 << 20;

/// The file that a result is to be written to, for an attempt with this scratch folder.
pub fn result_file(scratch: &Path) -> PathBuf {
    scratch.join("out").join("result.json")
}

/// Where the files of one attempt are.
#[derive(Debug)]
pub(super) struct Places {
    scratch: PathBuf,
    folder: PathBuf,
}

impl Places {
    pub(super) fn new(scratch: &Path, folder: &Path) -> Self {
        Self { scratch: scratch.to_owned(), folder: folder.to_owned() }
    }

    pub(super) fn scratch(&self) -> &Path {
        &self.scratch
    }

    pub(super) fn prompt(&self) -> PathBuf {
        self.scratch.join("prompt.md")
    }

    pub(super) fn result(&self) -> PathBuf {
        result_file(&self.scratch)
    }

    /// The folder of the result, which holds nothing else.
    pub(super) fn result_folder(&self) -> PathBuf {
        self.scratch.join("out")
    }

    pub(super) fn last_message(&self) -> PathBuf {
        self.scratch.join("last-message.txt")
    }

    pub(super) fn schema(&self) -> PathBuf {
        self.scratch.join("result.schema.json")
    }

    /// Where an agent writes the tokens that it used.
    pub(super) fn usage(&self) -> PathBuf {
        self.scratch.join("usage.json")
    }

    /// The settings for the agent alone.
    pub(super) fn settings(&self) -> PathBuf {
        self.scratch.join("settings.json")
    }

    /// An id for a new session, for an agent that takes one: a UUID made of the attempt's own
    /// folder, which no other attempt has. So it is known before the agent says anything.
    pub(super) fn new_session(&self) -> String {
        let hash = |salt: u8| fnv1a(&[&[salt], self.scratch.as_os_str().as_encoded_bytes()].concat());
        let (high, low) = (hash(1), hash(2));
        format!(
            "{:08x}-{:04x}-8{:03x}-a{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0xfff,
            low & 0xffff_ffff_ffff
        )
    }

    pub(super) fn retry_context(&self) -> PathBuf {
        self.scratch.join("retry-context.json")
    }

    /// What a placeholder becomes.
    pub(super) fn filled(&self, placeholder: &str) -> OsString {
        match placeholder {
            "prompt_file" => self.prompt().into(),
            "result_file" => self.result().into(),
            "result_folder" => self.result_folder().into(),
            "last_message_file" => self.last_message().into(),
            "schema_file" => self.schema().into(),
            "schema" => RESULT_SCHEMA.into(),
            "folder" => self.folder.clone().into(),
            "usage_file" => self.usage().into(),
            "settings_file" => self.settings().into(),
            "session" => self.new_session().into(),
            _ => OsString::new(),
        }
    }

    /// Takes away what an earlier attempt left, and makes the folder of the result.
    pub(super) fn clear(&self) -> Result<(), (PathBuf, std::io::Error)> {
        // The process runs elsewhere, and is told the path in a variable.
        if !self.scratch.is_absolute() || self.scratch.to_str().is_none() {
            let error = std::io::Error::new(ErrorKind::InvalidInput, "not an absolute path in UTF-8");
            return Err((self.scratch.clone(), error));
        }
        for path in [self.result(), self.last_message(), self.usage()] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err((path, error)),
                _ => {}
            }
        }
        let out = self.result_folder();
        Folder::new(&self.scratch).make_folder(&out).map_err(|error| (out, error.into()))
    }

    /// Writes a file that only we may read, in place of what is there.
    pub(super) fn write(path: &Path, text: &str) -> Result<(), (PathBuf, std::io::Error)> {
        let write = || {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|error| (path.to_owned(), error))
    }
}

/// Reads a file below the scratch folder that the process was to write; `None` where it did not.
/// Its folder is the process's, too: a link on the way is refused like one in its place.
pub(super) fn read_written(scratch: &Path, path: &Path) -> Result<Option<Vec<u8>>, ResultTrouble> {
    let invalid = |what: String| ResultTrouble::invalid("BACKSTOP_RESULT", what);
    Folder::new(scratch).read(path, RESULT_BYTES_MAX).map_err(|error| match error {
        FileError::Io { source, .. } => invalid(format!("cannot be read: {source}")),
        FileError::TooLarge { bytes_max, .. } => invalid(format!("is larger than {bytes_max} bytes")),
        _ => invalid("is not a regular file".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_some_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(read_written(folder.path(), &at("none")), Ok(None));
        std::fs::write(at("file"), b"{}").unwrap();
        assert_eq!(read_written(folder.path(), &at("file")), Ok(Some(b"{}".to_vec())));
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::File::create(at("large")).unwrap().set_len(RESULT_BYTES_MAX + 1).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["link", "folder", "large", "pipe"] {
            assert!(read_written(folder.path(), &at(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn what_an_earlier_attempt_left_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::new(folder.path(), folder.path());
        places.clear().unwrap();
        std::fs::write(places.result(), "{}").unwrap();
        std::fs::write(places.last_message(), "{}").unwrap();
        places.clear().unwrap();
        assert!(!places.result().exists() && !places.last_message().exists());
        Places::write(&places.prompt(), "a").unwrap();
        Places::write(&places.prompt(), "b").unwrap();
        assert_eq!(std::fs::read_to_string(places.prompt()).unwrap(), "b");
    }

    #[test]
    fn each_attempt_has_an_id_of_its_own_for_a_new_session() {
        let id = |scratch: &str| Places::new(Path::new(scratch), Path::new("F")).new_session();
        assert_eq!(id("/s/r-1/2a-1"), id("/s/r-1/2a-1"));
        assert_ne!(id("/s/r-1/2a-1"), id("/s/r-1/2a-2"));
        let lengths: Vec<usize> = id("/s").split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{}", id("/s"));
    }
}
