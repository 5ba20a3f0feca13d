//! The name of a project's database: readable, and safe as part of a path whatever the folder is
//! called.

use backstop_core::fnv1a;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The readable part is cut to this length.
const SLUG_BYTES_MAX: usize = 40;

/// The hash is written with this many hexadecimal digits.
const HASH_DIGITS: usize = 16;

/// The key of a project: a readable slug of its folder, and a hash of its whole path. It prints as
/// `shop-9f0c2b7a51d3e846`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectKey(String);

/// Something is not a project's key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a project's key: it looks like shop-9f0c2b7a51d3e846")]
pub struct KeyError {
    /// What was given, escaped and cut short.
    pub given: String,
}

impl ProjectKey {
    /// The key of the project at this canonical path.
    pub fn of(path: &Path) -> Self {
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        let mut slug = String::new();
        for c in last.chars().take(SLUG_BYTES_MAX) {
            let c = c.to_ascii_lowercase();
            slug.push(if allowed(c) { c } else { '-' });
        }
        let slug = slug.trim_matches('-');
        let slug = if slug.is_empty() { "project" } else { slug };
        Self(format!("{slug}-{:016x}", fnv1a(path.as_os_str().as_bytes())))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the database's file.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.db", self.0)
    }
}

impl std::str::FromStr for ProjectKey {
    type Err = KeyError;

    fn from_str(given: &str) -> Result<Self, KeyError> {
        let good = given.rsplit_once('-').is_some_and(|(slug, hash)| {
            (1..=SLUG_BYTES_MAX).contains(&slug.len())
                && slug.chars().all(allowed)
                && hash.len() == HASH_DIGITS
                && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        if good {
            Ok(Self(given.to_owned()))
        } else {
            Err(KeyError { given: given.chars().take(40).flat_map(char::escape_default).collect() })
        }
    }
}

impl std::fmt::Display for ProjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

fn allowed(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn no_folder_name_leaves_the_state_folder() {
        let long = "x".repeat(300);
        let names: [&[u8]; 9] = [
            b"/",
            b"/a/..",
            b"/a/../../x",
            b"/a/\n\x1b[2J",
            b"/a/.hidden",
            b"/a/\xff\xfe",
            "/a/Übung".as_bytes(),
            b"/a/--",
            long.as_bytes(),
        ];
        for name in names {
            let key = ProjectKey::of(Path::new(OsStr::from_bytes(name)));
            assert_eq!(key.as_str().parse::<ProjectKey>().as_ref(), Ok(&key));
            assert!(key.file_name().bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)));
        }
        assert!(ProjectKey::of(Path::new("/srv/Shop")).as_str().starts_with("shop-"));
        assert_ne!(ProjectKey::of(Path::new("/a/shop")), ProjectKey::of(Path::new("/b/shop")));
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        for bad in ["", "../../x", "shop", "shop-123", "-9f0c2b7a51d3e846", "a/b-9f0c2b7a51d3e846"] {
            assert!(bad.parse::<ProjectKey>().is_err(), "{bad}");
        }
    }
}
