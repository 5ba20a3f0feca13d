//! Why a commit was not made: what `git commit` said, read.

use super::GitError;
use super::answer::{GitOutput, has};
use backstop_core::SafeText;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Hooks that can keep a commit from being made.
const HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction"];

/// How much of what was said is kept: the end of it.
const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// What git says when it does not know who commits.
const NOBODY: [&str; 4] =
    ["Please tell me who you are", "unable to auto-detect email", "empty ident name", "no email was given"];

/// What git says when it cannot sign.
const UNSIGNED: [&str; 4] =
    ["failed to sign the data", "failed to write commit object", "gpg.ssh", "Couldn't load public key"];

/// Why a commit was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitTrouble {
    /// There is nothing to commit.
    #[error("there is nothing to commit")]
    NoChange,
    /// A hook of the user's said no.
    #[error("a git hook refused the commit: {}", output.line(400))]
    Hook {
        /// What it printed.
        output: SafeText,
    },
    /// Git does not know who commits.
    #[error("git does not know who commits")]
    Identity {
        /// What git said.
        output: SafeText,
    },
    /// The commit could not be signed.
    #[error("the commit could not be signed: {}", output.line(400))]
    Signing {
        /// What git said.
        output: SafeText,
    },
    /// Git could not do it for another reason.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl CommitTrouble {
    /// What to type or do next.
    pub fn hint(&self) -> String {
        match self {
            CommitTrouble::NoChange => "see what there is: `git status`".to_owned(),
            CommitTrouble::Hook { .. } => {
                "see which hooks there are: `ls \"$(git rev-parse --git-path hooks)\"`; put right what it names".to_owned()
            }
            CommitTrouble::Identity { .. } => {
                "`git config user.name \"Your Name\"` and `git config user.email you@example.com`".to_owned()
            }
            CommitTrouble::Signing { .. } => {
                "try it by hand: `git commit --allow-empty -S -m test`; or `git config commit.gpgSign false`".to_owned()
            }
            CommitTrouble::Git(error) => error.hint(),
        }
    }
}

/// Whether git says that it does not know who commits.
pub(crate) fn nobody(answer: &GitOutput) -> bool {
    answer.code != 0 && NOBODY.iter().any(|words| answer.mentions(words))
}

/// Reads a failed `git commit`. `hooks` is the folder where hooks would be.
pub(crate) fn read(answer: &GitOutput, hooks: &Path) -> CommitTrouble {
    let mut all = answer.stderr.clone();
    all.extend_from_slice(&answer.stdout);
    let cut = all.len().saturating_sub(OUTPUT_BYTES_MAX);
    let output = SafeText::from_bytes(all[cut..].trim_ascii());
    if answer.not_written().is_some() {
        return CommitTrouble::Git(answer.failed());
    }
    if nobody(answer) {
        return CommitTrouble::Identity { output };
    }
    if UNSIGNED.iter().any(|words| has(&all, words)) {
        return CommitTrouble::Signing { output };
    }
    // Git itself fails with 128; 1 without words of its own is what a hook that says no makes of
    // it.
    if has(&all, "aborted by hook") || (answer.code == 1 && any_hook(hooks)) {
        return CommitTrouble::Hook { output };
    }
    CommitTrouble::Git(answer.failed())
}

fn any_hook(folder: &Path) -> bool {
    let runs =
        |path: &Path| path.metadata().is_ok_and(|f| f.is_file() && f.permissions().mode() & 0o111 != 0);
    HOOKS.iter().any(|name| runs(&folder.join(name)))
}
