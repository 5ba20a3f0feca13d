//! Why git could not do something: what happened, where, and what to type next.
//!
//! The words of git are read in `answer.rs` and `trouble.rs`, and nowhere else.

use super::Sha;
use backstop_core::SafeText;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many files an error names.
const FILES_SHOWN_MAX: usize = 5;

/// Why git could not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// There is no git program.
    #[error("cannot run `{program}`: {why}")]
    NoGit {
        /// What was looked for.
        program: String,
        /// What the system said.
        why: String,
    },
    /// Git is too old.
    #[error("git is version {found}, and {needed} or later is needed")]
    TooOld {
        /// What it says about itself.
        found: SafeText,
        /// The oldest that will do.
        needed: &'static str,
    },
    /// The repository belongs to somebody else, and git does not trust it.
    #[error("git does not trust {}: it belongs to another user", folder.display())]
    NotTrusted {
        /// Where.
        folder: PathBuf,
    },
    /// A file that git reads at once is none: a pipe would make it wait, a device never ends.
    #[error("{} is {kind}, which git cannot read", file.display())]
    NoFile {
        /// The file.
        file: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The repository has no working tree.
    #[error("{} is a bare repository: there are no files to work on", folder.display())]
    Bare {
        /// Where.
        folder: PathBuf,
    },
    /// The folder is inside git's own folder.
    #[error("{} is inside git's own folder", folder.display())]
    InsideGitDir {
        /// Where.
        folder: PathBuf,
    },
    /// Somebody else holds a lock, and did not let go of it in time.
    #[error("{} is held by another git process", file.display())]
    Locked {
        /// The lock.
        file: PathBuf,
    },
    /// Git took too long and was killed.
    #[error("`{command}` in {} was killed: it took longer than {} s", folder.display(), after.as_secs())]
    TimedOut {
        /// What was run.
        command: String,
        /// Where.
        folder: PathBuf,
        /// The limit.
        after: Duration,
    },
    /// Somebody asked for the end, and git was ended or not started.
    #[error("`{command}` in {} was interrupted", folder.display())]
    Interrupted {
        /// What was run.
        command: String,
        /// Where.
        folder: PathBuf,
    },
    /// Git said more than is read.
    #[error("`{command}` in {} printed more than {bytes_max} bytes", folder.display())]
    TooMuch {
        /// What was run.
        command: String,
        /// Where.
        folder: PathBuf,
        /// The limit.
        bytes_max: usize,
    },
    /// Git failed.
    #[error("`{command}` failed in {} with exit code {code}: {}", folder.display(), said.line(400))]
    Failed {
        /// What was run.
        command: String,
        /// Where.
        folder: PathBuf,
        /// The exit code.
        code: i32,
        /// What git said.
        said: SafeText,
    },
    /// Git could not write: the disk is full.
    #[error("`{command}` failed in {}: the disk is full: {}", folder.display(), said.line(400))]
    NoRoom {
        /// What was run.
        command: String,
        /// Where.
        folder: PathBuf,
        /// What git said.
        said: SafeText,
    },
    /// Git could not write: the file system is read-only.
    #[error("`{command}` failed in {}: the file system is read-only: {}", folder.display(), said.line(400))]
    ReadOnly {
        /// What was run.
        command: String,
        /// Where.
        folder: PathBuf,
        /// What git said.
        said: SafeText,
    },
    /// Git printed something that it should not.
    #[error("`{command}` in {} printed something unexpected: {}", folder.display(), said.line(200))]
    Odd {
        /// What was run.
        command: String,
        /// Where.
        folder: PathBuf,
        /// What it printed.
        said: SafeText,
    },
    /// The system reported an error.
    #[error("cannot use {}: {why}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A ref has a name that cannot be used.
    #[error("`{}` is not a name for a ref", name.line(100))]
    BadRef {
        /// The name.
        name: SafeText,
    },
    /// A folder is there that is not a worktree of ours.
    #[error("{} is there already and is not a worktree that Backstop made of this repository", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// There is work in a worktree that is not saved. Nothing was changed.
    #[error("{} has work that is not saved: {}", path.display(), shown(files))]
    NotSaved {
        /// The worktree.
        path: PathBuf,
        /// What is not saved, as far as it is known.
        files: Vec<PathBuf>,
    },
    /// A commit in a worktree is reachable from nowhere else. Nothing was changed.
    #[error("{} is at commit {head}, which is saved nowhere else", path.display())]
    HeadNotSaved {
        /// The worktree.
        path: PathBuf,
        /// The commit.
        head: Sha,
    },
    /// A worktree cannot be removed because something is left in it.
    #[error("{} is not removed: {}", path.display(), shown(files))]
    NotClean {
        /// The worktree.
        path: PathBuf,
        /// What is left in it.
        files: Vec<PathBuf>,
    },
    /// A process still works in a worktree.
    #[error("a process still works in {}", path.display())]
    InUse {
        /// The worktree.
        path: PathBuf,
    },
}

impl GitError {
    /// What to type or do next.
    pub fn hint(&self) -> String {
        match self {
            GitError::NoGit { .. } => "install git 2.38 or later, or use `--isolation none`".to_owned(),
            GitError::TooOld { .. } => "update git; `git --version` shows what you have".to_owned(),
            GitError::NotTrusted { folder } => {
                format!("if you trust it: `git config --global --add safe.directory {}`", folder.display())
            }
            GitError::NoFile { file, .. } => format!("look at it, and remove it: `rm {}`", file.display()),
            GitError::Bare { .. } => "run in a clone with files: `git worktree add ../work`".to_owned(),
            GitError::InsideGitDir { .. } => "run in the folder of the project".to_owned(),
            GitError::Locked { file } => format!(
                "wait for the other git to finish and repeat the command; if none runs, `rm {}`",
                file.display()
            ),
            GitError::TimedOut { .. } => {
                "see whether a hook, a filter or a prompt waits for something, then repeat the command"
                    .to_owned()
            }
            GitError::Interrupted { .. } => "resume the run to do it again".to_owned(),
            GitError::TooMuch { folder, .. }
            | GitError::Failed { folder, .. }
            | GitError::Odd { folder, .. } => {
                format!("see what git says: `git -C {} status`", folder.display())
            }
            GitError::NoRoom { folder, .. } => {
                format!("free some space (`df -h {}`), then repeat the command", folder.display())
            }
            GitError::ReadOnly { folder, .. } => {
                format!("make it writable (`findmnt -T {}`), then repeat the command", folder.display())
            }
            GitError::Io { path, .. } => format!("check it: `ls -ld {}`", path.display()),
            GitError::BadRef { .. } => "see which names will do: `git help check-ref-format`".to_owned(),
            GitError::NotOurs { path } => {
                format!("look at it, and move it away: `ls -la {}`", path.display())
            }
            GitError::NotSaved { path, .. } | GitError::NotClean { path, .. } => {
                format!("look at it: `git -C {} status`", path.display())
            }
            GitError::HeadNotSaved { head, .. } => {
                format!("keep it: `git branch kept-{} {head}`", head.short())
            }
            GitError::InUse { path } => format!("see who it is: `fuser -v {}`", path.display()),
        }
    }

    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        GitError::Io { path: path.to_owned(), why: error.to_string() }
    }
}

/// The first of some files, as text that is safe to show.
fn shown(files: &[PathBuf]) -> String {
    if files.is_empty() {
        return "something that git does not name".to_owned();
    }
    let mut names: Vec<String> =
        files.iter().take(FILES_SHOWN_MAX).map(|f| SafeText::new(f.to_string_lossy()).line(200)).collect();
    if files.len() > FILES_SHOWN_MAX {
        names.push(format!("{} more", files.len() - FILES_SHOWN_MAX));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_where_and_what_to_do() {
        let folder = PathBuf::from("/s/x");
        let (path, command) = (folder.clone(), "git x".to_owned());
        let files = vec![PathBuf::from("a\x1b[31m"); 7];
        let said = SafeText::from("\x1b[2Jno");
        let head: Sha = "0".repeat(40).parse().unwrap();
        let all = [
            GitError::NotTrusted { folder: folder.clone() },
            GitError::NoFile { file: folder.clone(), kind: "a named pipe" },
            GitError::Bare { folder: folder.clone() },
            GitError::InsideGitDir { folder: folder.clone() },
            GitError::Locked { file: folder.clone() },
            GitError::TimedOut { command: command.clone(), folder: folder.clone(), after: Duration::ZERO },
            GitError::TooMuch { command: command.clone(), folder: folder.clone(), bytes_max: 1 },
            GitError::Failed {
                command: command.clone(),
                folder: folder.clone(),
                code: 1,
                said: said.clone(),
            },
            GitError::NoRoom { command: command.clone(), folder: folder.clone(), said: said.clone() },
            GitError::ReadOnly { command: command.clone(), folder: folder.clone(), said: said.clone() },
            GitError::Odd { command, folder, said },
            GitError::Io { path: path.clone(), why: "no".into() },
            GitError::NotOurs { path: path.clone() },
            GitError::NotSaved { path: path.clone(), files: files.clone() },
            GitError::HeadNotSaved { path: path.clone(), head },
            GitError::NotClean { path: path.clone(), files },
            GitError::InUse { path },
        ];
        for error in all {
            let text = error.to_string();
            assert!(text.contains("/s/x") && !text.contains('\x1b'), "{text}");
            assert!(!error.hint().is_empty());
        }
    }
}
