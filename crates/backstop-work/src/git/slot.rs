//! Worktrees of ours, in which attempts work.
//!
//! A slot is made once and kept warm. It is detached, so that it pins no branch, and locked, so
//! that nobody prunes it. A mark in its git folder says that it was made to the end and at which
//! commit it was last put. It must not be made over anything that is there, and it must not be
//! removed by force.

use super::call::{Call, Settings};
use super::changes::status_paths;
use super::working::Stamp;
use super::{GitError, Repo, Sha, repo};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The mark of a slot that was made to the end.
const MARK: &str = "backstop-slot";
/// The longest mark or lock reason that is read.
const MARK_BYTES_MAX: u64 = 4096;

/// A worktree of ours.
#[derive(Debug)]
pub struct Slot {
    pub(crate) repo: Repo,
    pub(crate) path: PathBuf,
    pub(crate) git_dir: PathBuf,
    /// What belongs to no attempt.
    pub(crate) exclude: Vec<PathBuf>,
    /// What was put here from the user's tree: where, and where from.
    pub(crate) provided: Vec<(PathBuf, PathBuf)>,
    /// The message of what is committed in submodules.
    pub(crate) submodule_message: String,
    /// What is known of the indexes.
    indexes: Mutex<Indexes>,
    reused: bool,
}

/// What is known of the two indexes of a slot, so that git need not read them to say so.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    /// The commit from which excluded paths are in the index that is kept.
    pub(crate) excluded_at: Option<Sha>,
    /// The tree in the index that is kept, and how its file was then.
    pub(crate) kept: Option<(Stamp, Sha)>,
    /// The same of the slot's own index.
    pub(crate) own: Option<(Stamp, Sha)>,
    /// How often changes were looked for.
    pub(crate) looks: u32,
}

impl Slot {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Git's own folder for it.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Whether it was there already, perhaps with work that a crash left.
    pub fn was_there(&self) -> bool {
        self.reused
    }

    /// Paths below the root that belong to no attempt: the plan, the folder of Backstop. They are
    /// in nothing that is saved, and untracked ones are not cleaned away.
    pub fn exclude(&mut self, paths: &[PathBuf]) {
        for path in paths {
            let path = self.repo.below_root(path);
            if path.is_relative() && !path.as_os_str().is_empty() && !self.exclude.contains(&path) {
                self.exclude.push(path);
                self.indexes().excluded_at = None;
            }
        }
    }

    /// The message of commits that are made in submodules, of what an attempt leaves there.
    pub fn set_submodule_message(&mut self, message: String) {
        self.submodule_message = message;
    }

    pub(crate) fn indexes(&self) -> MutexGuard<'_, Indexes> {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commit at which the slot was last put.
    pub fn at(&self) -> Result<Sha, GitError> {
        let ours = || GitError::NotOurs { path: self.path.clone() };
        read_short(&self.git_dir.join(MARK)).and_then(|text| text.trim().parse().ok()).ok_or_else(ours)
    }

    /// The commit that is checked out. None where whoever worked here left a branch without
    /// commits.
    pub fn head(&self) -> Result<Option<Sha>, GitError> {
        repo::head_sha(&self.repo, &self.path, &self.git_dir)
    }

    /// The tracked files that match these patterns (`**` over folders), with the hashes of their
    /// contents, as git lists them.
    pub fn tracked(&self, patterns: &[String]) -> Result<Vec<u8>, GitError> {
        let patterns = patterns.iter().map(|pattern| format!(":(top,glob){pattern}"));
        let call = self.call().args(["ls-files", "-s", "-z", "--"]).args(patterns).read_only();
        Ok(call.done()?.stdout)
    }

    /// A git in the slot: nothing of the user's that would make it slow, refuse a line end or reach
    /// into submodules.
    pub(crate) fn call(&self) -> Call<'_> {
        slot_call(&self.repo.settings, &self.path)
    }

    pub(crate) fn set_mark(&self, at: &Sha) -> Result<(), GitError> {
        let file = self.git_dir.join(MARK);
        let new = self.git_dir.join("backstop-slot.new");
        let written = std::fs::write(&new, format!("{at}\n")).and_then(|()| std::fs::rename(&new, &file));
        written.map_err(|error| GitError::io(&file, &error))
    }

    /// What git calls changed or untracked here.
    pub(crate) fn unclean(&self) -> Result<Vec<PathBuf>, GitError> {
        let call = self.call().args(["status", "--porcelain=v1", "-z", "--no-renames"]);
        let call = call.args(["--untracked-files=normal", "--ignore-submodules=none"]).read_only();
        Ok(status_paths(&call.done()?))
    }
}

fn slot_call<'a>(settings: &'a Settings, folder: &'a Path) -> Call<'a> {
    let call = settings.call(folder).config("core.fsmonitor=false").config("core.safecrlf=false");
    call.config("submodule.recurse=false").config("advice.addEmbeddedRepo=false")
}

impl Repo {
    /// Makes a slot at a commit, or opens the one that is there, with whatever is in it. One that a
    /// crash left half-made is completed. The folder is absolute and not in the user's tree.
    pub fn add_slot(&self, path: &Path, at: &Sha, reason: &str) -> Result<Slot, GitError> {
        let slot = self.make_slot(path, at, reason)?;
        if !slot.was_there() {
            slot.place_submodules(at)?;
        }
        Ok(slot)
    }

    fn make_slot(&self, path: &Path, at: &Sha, reason: &str) -> Result<Slot, GitError> {
        // Git reads the others' entries while it makes one, and does not like half of one.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = self.open_slot(path)? {
            return Ok(slot);
        }
        if self.is_half_made(path, reason)? {
            return self.complete(path, at);
        }
        match std::fs::remove_dir(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                return Err(GitError::NotOurs { path: path.to_owned() });
            }
            done => done.map_err(|error| GitError::io(path, &error))?,
        }
        self.forget_missing(path)?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| GitError::io(parent, &error))?;
        }
        let call = slot_call(&self.settings, self.root()).args(["worktree", "add", "--detach", "--lock"]);
        call.arg("--reason").arg(reason).arg("--").arg(path).arg(at).done()?;
        let slot = self.slot_at(path, false)?;
        slot.set_mark(at)?;
        Ok(slot)
    }

    /// The slot in a folder. None where there is none that was made to the end.
    pub fn open_slot(&self, path: &Path) -> Result<Option<Slot>, GitError> {
        if !self.is_worktree(path)? {
            return Ok(None);
        }
        let slot = self.slot_at(path, true)?;
        Ok(slot.at().is_ok().then_some(slot))
    }

    /// Removes a slot that has nothing in it that is not committed; ignored files go with it. Its
    /// commit must be saved elsewhere. Otherwise it is left as it is.
    pub fn remove_slot(&self, slot: Slot) -> Result<(), GitError> {
        let path = slot.path.clone();
        if let Some(head) = slot.head()?
            && head != slot.at()?
            && !self.is_kept(&head)?
        {
            return Err(GitError::HeadNotSaved { path, head });
        }
        slot.remove_provided();
        slot.remove_submodules()?;
        let files = slot.unclean()?;
        if !files.is_empty() {
            return Err(GitError::NotClean { path, files });
        }
        let reason = read_short(&slot.git_dir.join("locked"));
        let worktree = |verb: &str| self.call().args(["worktree", verb]);
        if reason.is_some() {
            worktree("unlock").arg("--").arg(&path).done()?;
        }
        let mut removed = worktree("remove").arg("--").arg(&path).done();
        if removed.is_err() && slot.has_submodules()? {
            // Git removes no worktree with a submodule otherwise. That it is clean was seen above.
            removed = worktree("remove").arg("--force").arg("--").arg(&path).done();
        }
        if removed.is_err() && path.exists() {
            // It stays, and nobody shall prune it.
            worktree("lock").arg("--reason").arg(reason.unwrap_or_default()).arg("--").arg(&path).answer()?;
        }
        removed.map(|_| ())
    }

    /// Whether a folder is the top of a worktree of this repository.
    fn is_worktree(&self, path: &Path) -> Result<bool, GitError> {
        if !path.join(".git").is_file() {
            return Ok(false);
        }
        let call = || self.settings.call(path).args(["rev-parse", "--path-format=absolute"]).read_only();
        let mut common = call().arg("--git-common-dir").answer()?;
        if common.code != 0 {
            // The repository may have moved: then both ends of the link are put right. Nothing else
            // is touched.
            self.call().args(["worktree", "repair", "--"]).arg(path).answer()?;
            common = call().arg("--git-common-dir").answer()?;
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(common.code == 0 && real(&common.path()) == real(self.common_dir()))
    }

    fn slot_at(&self, path: &Path, reused: bool) -> Result<Slot, GitError> {
        let path = path.canonicalize().map_err(|error| GitError::io(path, &error))?;
        let call = self.settings.call(&path).args(["rev-parse", "--path-format=absolute", "--git-dir"]);
        let git_dir = call.read_only().done()?.path();
        if git_dir == self.git_dir() || path == self.root() {
            return Err(GitError::NotOurs { path });
        }
        Ok(Slot {
            repo: self.clone(),
            path,
            git_dir,
            exclude: Vec::new(),
            provided: Vec::new(),
            submodule_message: "Work in a submodule".to_owned(),
            indexes: Mutex::default(),
            reused,
        })
    }

    /// Whether a folder is a worktree that we began to make: it has our reason, and no mark.
    fn is_half_made(&self, path: &Path, reason: &str) -> Result<bool, GitError> {
        if !path.join(".git").is_file() {
            return Ok(false);
        }
        let registered = self.registered(path)?;
        let ours = registered.as_ref().is_some_and(|git_dir| {
            let found = read_short(&git_dir.join("locked"));
            let begun = found.as_deref().map(str::trim);
            !git_dir.join(MARK).exists() && (begun == Some(reason.trim()) || begun == Some("initializing"))
        });
        if ours { Ok(true) } else { Err(GitError::NotOurs { path: path.to_owned() }) }
    }

    /// Makes a half-made worktree whole. Nobody has ever worked in it.
    fn complete(&self, path: &Path, at: &Sha) -> Result<Slot, GitError> {
        let not_ours = || GitError::NotOurs { path: path.to_owned() };
        let git_dir = self.registered(path)?.ok_or_else(not_ours)?;
        for name in ["index.lock", "HEAD.lock"] {
            remove_if_there(&git_dir.join(name))?;
        }
        for (name, text) in [("commondir", "../..\n".to_owned()), ("HEAD", format!("{at}\n"))] {
            let file = git_dir.join(name);
            std::fs::write(&file, text).map_err(|error| GitError::io(&file, &error))?;
        }
        let slot = self.slot_at(path, false)?;
        slot.call().args(["reset", "--hard", "-q"]).arg(at).done()?;
        slot.set_mark(at)?;
        Ok(slot)
    }

    /// Drops what git knows about a worktree whose folder is gone. Its last commit is kept.
    fn forget_missing(&self, path: &Path) -> Result<(), GitError> {
        let Some(git_dir) = self.registered(path)? else { return Ok(()) };
        let head = read_short(&git_dir.join("HEAD")).and_then(|text| text.trim().parse::<Sha>().ok());
        let exists = |sha: &Sha| self.call().args(["cat-file", "-e"]).arg(format!("{sha}^{{commit}}")).done();
        if let Some(head) = head.filter(|head| exists(head).is_ok()) {
            self.keep(&head)?;
        }
        if git_dir.join("locked").exists() {
            self.call().args(["worktree", "unlock", "--"]).arg(path).done()?;
        }
        self.call().args(["worktree", "remove", "--"]).arg(path).done().map(|_| ())
    }

    /// Git's folder for a worktree that it knows at a path, whether or not anything is there.
    fn registered(&self, path: &Path) -> Result<Option<PathBuf>, GitError> {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        let real = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
        let dot_git = real.unwrap_or_else(|| path.to_owned()).join(".git");
        let all = self.common_dir().join("worktrees");
        let Ok(entries) = std::fs::read_dir(&all) else { return Ok(None) };
        for entry in entries {
            let entry = entry.map_err(|error| GitError::io(&all, &error))?.path();
            let Ok(link) = std::fs::read(entry.join("gitdir")) else { continue };
            let link = Path::new(OsStr::from_bytes(link.trim_ascii_end()));
            if link == dot_git || entry.join(link) == dot_git {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

/// The text of a small file. None where it is not there, too long or no text.
pub(crate) fn read_short(file: &Path) -> Option<String> {
    let found = file.symlink_metadata().ok()?;
    (found.is_file() && found.len() <= MARK_BYTES_MAX).then(|| std::fs::read_to_string(file).ok()).flatten()
}

pub(crate) fn remove_if_there(file: &Path) -> Result<(), GitError> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(GitError::io(file, &error)),
        _ => Ok(()),
    }
}
