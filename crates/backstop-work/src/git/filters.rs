//! Filters (Git LFS, git-crypt) whose program is not installed.
//!
//! Git cannot check a file out by such a filter, and refuses. It is switched off for every call of
//! ours: files stay as they are in the repository, which for LFS are pointers. What is written to
//! such a file would be committed without its filter, so it is told and not kept.

use super::call::{Settings, nul_list};
use super::changes::{Changed, How};
use super::{GitError, Slot};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the file begins that LFS keeps in place of the content.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// Says whether there is a program of this name, by the shell that git would start it with.
const LOOK: &str = "alias.backstop-look=!f() { command -v \"$1\" >/dev/null 2>&1; }; f";

/// The names of the filters that are set up here and whose program is not there.
pub(super) fn missing(settings: &Settings, folder: &Path) -> Result<Vec<String>, GitError> {
    let call = settings.call(folder).args(["config", "-z", "--get-regexp"]);
    let found = call.arg(r"^filter\..*\.(clean|smudge|process)$").read_only().answer()?;
    let mut missing: Vec<String> = Vec::new();
    let mut known: Vec<(String, bool)> = Vec::new();
    for part in found.parts() {
        let text = String::from_utf8_lossy(part);
        let Some((key, command)) = text.split_once('\n') else { continue };
        let name = key.strip_prefix("filter.").and_then(|key| key.rsplit_once('.')).map(|(name, _)| name);
        let program = command.split_whitespace().next();
        let (Some(name), Some(program)) = (name, program) else { continue };
        // What is more than a program and its arguments only the shell can judge.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
        if missing.iter().any(|known| known == name) || !program.chars().all(is_plain) {
            continue;
        }
        let is_there = match known.iter().find(|(known, _)| known == program) {
            Some((_, is_there)) => *is_there,
            None => {
                let look = settings.call(folder).config(LOOK).args(["backstop-look", program]).answer()?;
                known.push((program.to_owned(), look.code == 0));
                look.code == 0
            }
        };
        if !is_there {
            missing.push(name.to_owned());
        }
    }
    Ok(missing)
}

/// The settings that switch a filter off.
pub(super) fn switched_off(name: &str) -> impl Iterator<Item = String> + '_ {
    let off = ["clean=", "smudge=", "process=", "required=false"];
    off.into_iter().map(move |setting| format!("filter.{name}.{setting}"))
}

impl Slot {
    /// The changed files that need a filter whose program is missing.
    pub(super) fn unfiltered(&self, changed: &[Changed]) -> Result<Vec<PathBuf>, GitError> {
        let missing = self.repo.missing_filters();
        let written: Vec<&OsStr> =
            changed.iter().filter(|one| one.how != How::Deleted).map(|one| one.path.as_os_str()).collect();
        if missing.is_empty() || written.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.call().args(["check-attr", "-z", "--stdin", "filter"]);
        let found = call.stdin(nul_list(&written)).read_only().done()?;
        let parts: Vec<&[u8]> = found.parts().collect();
        let needs = |part: &&[&[u8]]| {
            let name = part.get(2).copied().unwrap_or_default();
            missing.iter().any(|missing| missing.as_bytes() == name)
        };
        let paths = parts.chunks(3).filter(needs).map(|part| PathBuf::from(OsStr::from_bytes(part[0])));
        Ok(paths.filter(|path| !is_pointer(&self.path.join(path))).collect())
    }
}

fn is_pointer(file: &Path) -> bool {
    let mut start = Vec::with_capacity(POINTER.len());
    let is_file = file.symlink_metadata().is_ok_and(|found| found.is_file());
    let opened = if is_file { std::fs::File::open(file).ok() } else { None };
    let read = opened.and_then(|file| file.take(POINTER.len() as u64).read_to_end(&mut start).ok());
    read.is_some() && start == POINTER
}
