//! Private refs: the tip of a run and its saved attempts, moved by compare-and-swap.
//!
//! It must not move a ref that is no longer where its caller saw it.

use super::{GitError, Repo, Sha, loose};
use backstop_core::{Name, RunId, SafeText};

/// Where all refs of ours are.
const OURS: &str = "refs/backstop";

/// The ref of a run's tip.
pub fn tip_ref(run: RunId) -> String {
    format!("{OURS}/{run}/tip")
}

/// The ref of a saved attempt. No name of a phase gives the ref of another, or one that git does
/// not take.
pub fn attempt_ref(run: RunId, phase: &Name, attempt: u32) -> String {
    let phase = phase.as_str();
    let refused = phase.contains("..") || phase.ends_with('.') || phase.ends_with(".lock");
    // A name has no `%`, so nothing else can be written like this.
    let phase = match phase {
        "tip" => "%tip".to_owned(),
        _ if refused => phase.replace('.', "%2e"),
        _ => phase.to_owned(),
    };
    format!("{OURS}/{run}/{phase}/{attempt}")
}

/// A name that means itself wherever git takes a ref.
fn checked(name: &str) -> Result<&str, GitError> {
    let part = |p: &str| {
        !p.is_empty()
            && !p.starts_with('.')
            && !p.ends_with(".lock")
            && !p.ends_with('.')
            && !p.contains("..")
    };
    let plain = |b: u8| !b.is_ascii_control() && !b" ~^:?*[\\".contains(&b);
    if name.starts_with("refs/")
        && name.bytes().all(plain)
        && name.split('/').all(part)
        && !name.contains("@{")
    {
        Ok(name)
    } else {
        Err(GitError::BadRef { name: SafeText::from(name) })
    }
}

impl Repo {
    /// Where a ref is. None where there is none.
    pub fn read_ref(&self, name: &str) -> Result<Option<Sha>, GitError> {
        let name = checked(name)?;
        if let Some(sha) = loose::shared(self.common_dir(), name) {
            return Ok(Some(sha));
        }
        let found = self.list(name)?;
        Ok(found.into_iter().find(|(found, _)| found == name).map(|(_, sha)| sha))
    }

    /// Moves a ref from `old` to `new`; `None` means that there must be none. False where somebody
    /// else moved it: then nothing was done.
    pub fn set_ref(&self, name: &str, new: &Sha, old: Option<&Sha>) -> Result<bool, GitError> {
        let old_text = old.map_or("", Sha::as_str);
        let call = self.call().args(["update-ref", "--no-deref", checked(name)?]).arg(new).arg(old_text);
        let answer = call.answer()?;
        if answer.code == 0 {
            return Ok(true);
        }
        if self.read_ref(name)?.as_ref() == old { Err(answer.failed()) } else { Ok(false) }
    }

    /// All refs of a run.
    pub fn runs_refs(&self, run: RunId) -> Result<Vec<(String, Sha)>, GitError> {
        self.list(&format!("{OURS}/{run}"))
    }

    /// Whether a commit is reachable from any ref.
    pub(crate) fn is_kept(&self, commit: &Sha) -> Result<bool, GitError> {
        let call = self.call().args(["for-each-ref", "--count=1", "--format=%(refname)", "--contains"]);
        Ok(!call.arg(commit).read_only().done()?.stdout.is_empty())
    }

    /// Keeps a commit that would be reachable from nowhere.
    pub(crate) fn keep(&self, commit: &Sha) -> Result<(), GitError> {
        if self.is_kept(commit)? {
            return Ok(());
        }
        self.set_ref(&format!("{OURS}/kept/{commit}"), commit, None).map(|_| ())
    }

    fn list(&self, below: &str) -> Result<Vec<(String, Sha)>, GitError> {
        let call = self.call().args(["for-each-ref", "--format=%(objectname) %(refname)", "--", below]);
        let answer = call.read_only().done()?;
        let mut found = Vec::new();
        for line in answer.text()?.lines() {
            let (sha, name) = line.split_once(' ').ok_or_else(|| answer.odd())?;
            found.push((name.to_owned(), sha.parse().map_err(|_| answer.odd())?));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_names_that_mean_themselves_are_taken() {
        for good in ["refs/backstop/r-7f3a/tip", "refs/heads/a-b", "refs/backstop/r-7f3a/%tip/1"] {
            assert_eq!(checked(good).unwrap(), good);
        }
        for bad in [
            "HEAD",
            "",
            "refs/",
            "refs//x",
            "refs/a..b",
            "refs/*",
            "refs/x.lock",
            "-d",
            "refs/a b",
            "refs/a\nb",
        ] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_phase_has_a_ref_of_its_own(a in "[a-z0-9][a-z0-9._-]{0,8}", b in "(tip|[a-z]\\.\\.?(lock)?)") {
            let run: RunId = "r-7f3a".parse().unwrap();
            let of = |phase: &str| attempt_ref(run, &phase.parse().unwrap(), 1);
            for name in [of(&a), of(&b)] {
                prop_assert!(checked(&name).is_ok(), "{}", name);
                let below_the_tip = name.starts_with(&format!("{}/", tip_ref(run)));
                prop_assert!(!below_the_tip);
            }
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }
    }
}
