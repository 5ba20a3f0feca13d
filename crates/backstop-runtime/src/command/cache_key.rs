//! The key under which a result is kept: everything that was declared to matter.

use super::input_files;
use backstop_core::{ErrorKind, HintedError, Sha256};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a result depends on.
#[derive(Debug)]
pub struct CacheKey<'k> {
    /// The command.
    pub argv: &'k [OsString],
    /// The folder that it runs in.
    pub folder: &'k Path,
    /// Environment variables, with their values where they are set.
    pub variables: Vec<(String, Option<OsString>)>,
    /// Patterns of files whose content matters.
    pub inputs: &'k [String],
}

/// Why a key cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CacheKeyError {
    /// A pattern names no files.
    #[error("`{given}` names no input: {why}")]
    Pattern {
        /// The pattern.
        given: String,
        /// Why not.
        why: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

impl HintedError for CacheKeyError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Pattern { .. } => "for example: `--input 'src/**'`",
            Self::Read { .. } => "check the path, and that it is a file that you may read",
        };
        vec![hint.to_owned()]
    }
}

impl CacheKey<'_> {
    /// The key, as text.
    pub fn hash(&self) -> Result<String, CacheKeyError> {
        let mut hasher = Sha256::new();
        let mut add = |kind: &str, bytes: &[u8]| {
            hasher.update(kind);
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add("folder", self.folder.as_os_str().as_bytes());
        for word in self.argv {
            add("word", OsStr::as_bytes(word));
        }
        for (name, value) in &self.variables {
            add("name", name.as_bytes());
            match value {
                Some(value) => add("value", value.as_bytes()),
                None => add("unset", b""),
            }
        }
        for pattern in self.inputs {
            let files = input_files::files(self.folder, pattern)
                .map_err(|why| CacheKeyError::Pattern { given: pattern.clone(), why })?;
            add("pattern", pattern.as_bytes());
            for file in files {
                add("file", file.as_os_str().as_bytes());
                add("content", content(&self.folder.join(&file))?.as_bytes());
            }
        }
        Ok(hasher.hex())
    }
}

fn content(file: &Path) -> Result<String, CacheKeyError> {
    let unreadable = |error| CacheKeyError::Read { file: file.to_owned(), error };
    let mut hasher = Sha256::new();
    let mut reader = backstop_files::named::open(file).map_err(|error| unreadable(error.into()))?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer).map_err(unreadable)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(hasher.hex())
}
