//! Which git this is, and whether it will do.

use super::GitError;
use super::call::Settings;
use backstop_core::SafeText;
use std::path::Path;

/// The oldest git that merges without a checkout.
const OLDEST: (u32, u32) = (2, 38);
const OLDEST_TEXT: &str = "2.38";

/// Sees to it that git is there and new enough.
pub(crate) fn check(settings: &Settings, folder: &Path) -> Result<(), GitError> {
    let answer = settings.call(folder).arg("--version").done()?;
    let text = String::from_utf8_lossy(answer.line()).into_owned();
    let Some(found) = numbers(&text) else { return Err(answer.odd()) };
    if found >= OLDEST {
        return Ok(());
    }
    Err(GitError::TooOld { found: SafeText::new(format!("{}.{}", found.0, found.1)), needed: OLDEST_TEXT })
}

/// The first two numbers of `git version 2.39.5 (Apple Git-154)`.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix("git version ")?.split(['.', ' ', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_every_vendor_writes_them() {
        for (text, expected) in [
            ("git version 2.39.5", Some((2, 39))),
            ("git version 2.39.5 (Apple Git-154)", Some((2, 39))),
            ("git version 2.47.windows.1", Some((2, 47))),
            ("git version 3.0-rc1", Some((3, 0))),
            ("hub version 2", None),
            ("git version x", None),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
        assert!((2, 37) < OLDEST && (3, 0) > OLDEST);
    }
}
