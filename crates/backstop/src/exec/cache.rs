//! Results that can be used again: keyed by all that was declared to matter.

use crate::cli::Exec;
use crate::error::CliError;
use crate::glob;
use backstop_core::Sha256;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The key of a result: the command, the folder, the variables and the content of the files that were declared.
pub(super) fn key(args: &Exec, argv: &[OsString], folder: &Path) -> Result<String, CliError> {
    let mut hasher = Sha256::new();
    let mut add = |kind: &str, bytes: &[u8]| {
        hasher.update(kind.as_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add("folder", folder.as_os_str().as_bytes());
    for word in argv {
        add("word", word.as_bytes());
    }
    for name in &args.cache_env {
        add("name", name.as_bytes());
        match std::env::var_os(name) {
            Some(value) => add("value", value.as_bytes()),
            None => add("unset", b""),
        }
    }
    for pattern in &args.inputs {
        let files = glob::files(folder, pattern)
            .map_err(|error| CliError::Glob { given: pattern.clone(), why: error })?;
        add("pattern", pattern.as_bytes());
        for file in files {
            add("file", file.as_os_str().as_bytes());
            add("content", content(&folder.join(&file))?.as_bytes());
        }
    }
    Ok(hasher.hex())
}

fn content(file: &Path) -> Result<String, CliError> {
    let read_error = |error| CliError::Read { file: file.to_owned(), error };
    let mut hasher = Sha256::new();
    let mut reader = std::fs::File::open(file).map_err(read_error)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer).map_err(read_error)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(hasher.hex())
}
