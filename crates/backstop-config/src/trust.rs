//! Trust: whether a person has approved a project's file before it may run something.
//!
//! Trust is given to a path and its content together: a changed file, or a copy of it elsewhere,
//! has to be trusted anew. The store keeps what is trusted; this module only asks.

use super::error::ConfigError;
use super::file;
use super::find::{self, FileName, Surroundings};
use backstop_core::Sha256;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The hash that trust is given to: of the file's canonical path and its content.
pub fn hash(canonical: &Path, content: &[u8]) -> String {
    let path = canonical.as_os_str().as_bytes();
    let mut hasher = Sha256::new();
    // The length separates the two: a longer path with a shorter content is another input.
    hasher.update((path.len() as u64).to_le_bytes());
    hasher.update(path);
    hasher.update(content);
    hasher.hex()
}

/// What there is to trust in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The project's file.
    pub file: FileName,
    /// Its canonical path, under which trust is stored.
    pub canonical: PathBuf,
    /// Its current hash.
    pub hash: String,
    /// The settings that need trust: key, value (text from outside: escape it), line.
    pub sets: Vec<(String, String, usize)>,
}

/// What there is to trust here, for a person to read before approving. `None` if there is no
/// project file.
pub fn candidate(around: &Surroundings<'_>) -> Result<Option<Candidate>, ConfigError> {
    let Some(project) = find::project_file(around).map_err(ConfigError::one)? else { return Ok(None) };
    let text = file::text(&project.file, &project.bytes).map_err(ConfigError::one)?;
    let (entries, problems) = file::read(&project.file, text);
    if let Some(error) = ConfigError::of(problems) {
        return Err(error);
    }
    let sets = entries.into_iter().filter(|entry| entry.key.trust);
    Ok(Some(Candidate {
        hash: hash(&project.canonical, &project.bytes),
        sets: sets.map(|entry| (entry.name, entry.written.text, entry.line)).collect(),
        file: project.file,
        canonical: project.canonical,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn the_hash_is_of_place_and_content() {
        let base = hash(Path::new("/a/backstop.toml"), b"x = 1");
        assert_eq!(base.len(), 64);
        assert_eq!(base, hash(Path::new("/a/backstop.toml"), b"x = 1"));
        assert_ne!(base, hash(Path::new("/a/backstop.toml"), b"x = 2"));
        assert_ne!(base, hash(Path::new("/b/backstop.toml"), b"x = 1"));
        assert_ne!(hash(Path::new("/ab"), b"c"), hash(Path::new("/a"), b"bc"));
        // Known from `printf '\1\0\0\0\0\0\0\0/' | sha256sum`.
        assert_eq!(
            hash(Path::new("/"), b""),
            "52849b4b58a8286b04f109d192c5cfa8baf025373dadc78819dc8776e34f340d"
        );
    }

    #[test]
    fn a_candidate_names_what_would_be_trusted() {
        let scratch = Scratch::new();
        assert_eq!(candidate(&scratch.around("")).unwrap(), None);
        scratch.write("backstop.toml", "[exec]\ngrace = \"1s\"\n[rules]\npacks = [\"a.toml\"]\n");
        let found = candidate(&scratch.around("")).unwrap().unwrap();
        assert_eq!(found.sets, [("rules.packs".to_owned(), "[\"a.toml\"]".to_owned(), 4)]);
        scratch.write("backstop.toml", "[exec]\ngrace = \"2s\"\n[rules]\npacks = [\"a.toml\"]\n");
        assert_ne!(candidate(&scratch.around("")).unwrap().unwrap().hash, found.hash);
        scratch.write("backstop.toml", "[exec]\ngarce = \"2s\"\n");
        assert!(candidate(&scratch.around("")).is_err());
    }
}
