//! Applying: the user's files are made equal to a commit's, uncommitted, and the index stays as it
//! is.
//!
//! All or nothing as far as the user's changes go: if one path has other content than was expected,
//! none is touched. Every file is written elsewhere first and then moved into place. Called again
//! after a crash, it goes on.

use super::call::nul_list;
use super::changes::Step;
use super::slot::remove_if_there;
use super::working::{Now, Stamp, StepState};
use super::{GitError, Repo, Sha};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where files are written first, and the index that says which. In git's own folder.
const STAGING: &str = "backstop-apply";
const INDEX: &str = "backstop-apply-index";

/// What came of applying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// The user's files are those of the commit.
    Done {
        /// All paths that differ from the base.
        paths: Vec<OsString>,
        /// Nested repositories, whose files are left as they are.
        nested: Vec<OsString>,
    },
    /// Files have other content than was expected. Nothing was touched.
    Refused {
        /// Those files.
        files: Vec<PathBuf>,
    },
}

impl Repo {
    /// Makes the user's files equal to those of `tip` wherever it differs from `base`, but for the
    /// paths in `except`, which may be absolute or below the root.
    pub fn apply_tree(&self, base: &Sha, tip: &Sha, except: &[&Path]) -> Result<Applied, GitError> {
        let except: Vec<PathBuf> = except.iter().map(|path| self.below_root(path)).collect();
        let mut steps = self.steps(base, tip)?;
        steps.retain(|step| !except.iter().any(|path| path.as_os_str() == step.path));
        let looks = self.look(steps)?;
        let paths =
            |now: Now| looks.iter().filter(move |look| look.now == now).map(|look| look.step.path.clone());
        let files: Vec<PathBuf> = paths(Now::Other).map(PathBuf::from).collect();
        if !files.is_empty() {
            return Ok(Applied::Refused { files });
        }
        let todo: Vec<&StepState> = looks.iter().filter(|look| look.now == Now::From).collect();
        let staging = Staging::new(self)?;
        staging.write(tip, &todo)?;
        // Writing may have taken a while: the user's files must still be what they were.
        let written = |look: &&&StepState| Stamp::at(&self.root().join(&look.step.path)) != look.stamp;
        let files: Vec<PathBuf> =
            todo.iter().filter(written).map(|look| PathBuf::from(&look.step.path)).collect();
        if !files.is_empty() {
            return Ok(Applied::Refused { files });
        }
        staging.put(&todo)?;
        let links: Vec<&Step> =
            looks.iter().map(|look| &look.step).filter(|step| step.is_of_links()).collect();
        let moved = self.move_submodules(&links)?;
        let is_left = |path: &OsString| !moved.iter().any(|moved| moved.as_os_str() == path);
        let nested = paths(Now::Nested).filter(&is_left).collect();
        let all = looks
            .iter()
            .map(|look| (look.now, &look.step.path))
            .filter(|(now, path)| *now != Now::Nested || !is_left(path));
        let all = all.map(|(_, path)| path.clone()).collect();
        Ok(Applied::Done { paths: all, nested })
    }
}

/// Files that are written and not yet in place.
struct Staging<'a> {
    repo: &'a Repo,
    folder: PathBuf,
    index: PathBuf,
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        let _ = std::fs::remove_file(&self.index);
    }
}

impl<'a> Staging<'a> {
    /// An empty one: what a crash left goes.
    fn new(repo: &'a Repo) -> Result<Self, GitError> {
        let (folder, index) = (repo.git_dir().join(STAGING), repo.git_dir().join(INDEX));
        remove_if_there(&index)?;
        remove_if_there(&repo.git_dir().join(format!("{INDEX}.lock")))?;
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(GitError::io(&folder, &error)),
            _ => {}
        }
        std::fs::create_dir(&folder).map_err(|error| GitError::io(&folder, &error))?;
        Ok(Self { repo, folder, index })
    }

    /// Writes the new files, as git would check them out.
    fn write(&self, tip: &Sha, todo: &[&StepState]) -> Result<(), GitError> {
        let names: Vec<&OsString> =
            todo.iter().filter(|look| look.step.to.is_some()).map(|look| &look.step.path).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.repo.call().arg("read-tree").arg(tip).index(&self.index).done()?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(&self.folder);
        prefix.push("/");
        let call = self.repo.call().args(["checkout-index", "-f", "-q", "-z", "--stdin"]).arg(prefix);
        call.stdin(nul_list(names)).index(&self.index).done().map(|_| ())
    }

    fn put(&self, todo: &[&StepState]) -> Result<(), GitError> {
        let target = |look: &StepState| self.repo.root().join(&look.step.path);
        for look in todo.iter().filter(|look| look.step.to.is_none()) {
            let target = target(look);
            remove_if_there(&target)?;
            self.remove_empty_parents(&target);
        }
        for look in todo.iter().filter(|look| look.step.to.is_some()) {
            let target = target(look);
            if target.is_dir() && !target.is_symlink() {
                remove_empty(&target).map_err(|error| GitError::io(&target, &error))?;
            }
            place(&self.folder.join(&look.step.path), &target)
                .map_err(|error| GitError::io(&target, &error))?;
        }
        Ok(())
    }

    fn remove_empty_parents(&self, path: &Path) {
        for parent in path.ancestors().skip(1).take_while(|parent| *parent != self.repo.root()) {
            if std::fs::remove_dir(parent).is_err() {
                return;
            }
        }
    }
}

/// Removes a folder that has nothing but empty folders in it.
fn remove_empty(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        remove_empty(&entry?.path())?;
    }
    std::fs::remove_dir(folder)
}

/// Moves a file into place. On another file system it is copied beside it first.
fn place(from: &Path, to: &Path) -> std::io::Result<()> {
    let parent = to.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent)?;
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {}
        done => return done,
    }
    let mut beside = OsString::from(".backstop-partial-");
    beside.push(to.file_name().unwrap_or_default());
    let beside = parent.join(beside);
    if from.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, &beside)?;
    } else {
        std::fs::copy(from, &beside)?;
    }
    std::fs::rename(&beside, to)
}
