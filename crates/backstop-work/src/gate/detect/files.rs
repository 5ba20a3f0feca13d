//! The files of a folder: small ones, and few of them.

use backstop_core::SafeText;
use backstop_files::{FileError, named};
use std::path::Path;

/// A file larger than this is not read.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// So many files are read, no more.
const FILES_MAX: u32 = 40;
/// How much of a name is shown in a note.
const SHOWN_CHARS_MAX: usize = 80;

/// A folder that is being read, and what there is to say about it.
pub(super) struct Files<'f> {
    folder: &'f Path,
    left: u32,
    pub(super) notes: Vec<String>,
}

impl<'f> Files<'f> {
    pub(super) fn new(folder: &'f Path) -> Self {
        Self { folder, left: FILES_MAX, notes: Vec::new() }
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, name: &str) -> bool {
        // Through links: a config may be linked. A pipe or a device is no file.
        self.folder.join(name).metadata().is_ok_and(|found| found.is_file())
    }

    /// Whether there is such a folder.
    pub(super) fn has_folder(&self, name: &str) -> bool {
        self.folder.join(name).is_dir()
    }

    /// The text of a file. Nothing, where there is none or it cannot be read, which is noted.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        if !self.has(name) {
            return None;
        }
        if self.left == 0 {
            self.notes.push(format!("{name} was not read: {FILES_MAX} files were read before it"));
            return None;
        }
        self.left -= 1;
        match self.read(name) {
            Ok(text) => Some(text),
            Err(why) => {
                self.notes.push(format!("{name} was not read: {why}"));
                None
            }
        }
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let bytes = match named::read(&self.folder.join(name), FILE_BYTES_MAX) {
            Err(FileError::Io { source, .. }) => return Err(source.to_string()),
            Err(FileError::TooLarge { .. }) => {
                return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
            }
            read => read.map_err(|error| error.to_string())?,
        };
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// Says that a file is broken.
    pub(super) fn broken(&mut self, name: &str, why: &str) {
        let why = SafeText::new(why.lines().next().unwrap_or_default()).line(SHOWN_CHARS_MAX);
        self.notes.push(format!("{name} cannot be understood: {why}"));
    }

    /// The value of a TOML file.
    pub(super) fn toml(&mut self, name: &str) -> Option<toml::Table> {
        let text = self.text(name)?;
        match text.parse::<toml::Table>() {
            Ok(table) => Some(table),
            Err(error) => {
                self.broken(name, error.message());
                None
            }
        }
    }

    /// The value of a JSON file.
    pub(super) fn json(&mut self, name: &str) -> Option<serde_json::Value> {
        let text = self.text(name)?;
        match serde_json::from_str(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.broken(name, &error.to_string());
                None
            }
        }
    }
}

/// A name from outside in a note.
pub(super) fn shown(name: &str) -> String {
    SafeText::new(name).line(SHOWN_CHARS_MAX)
}
