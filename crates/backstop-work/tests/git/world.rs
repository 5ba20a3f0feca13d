//! A repository in a folder of its own, untouched by the machine's configuration.

use backstop_work::git::{Repo, Settings, Sha, Slot};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) struct World {
    _folder: tempfile::TempDir,
    pub(crate) top: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// Variables that would lead git elsewhere.
pub(crate) const FOREIGN: [&str; 3] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];

/// Names that break whatever is built from strings.
pub(crate) fn hostile_names() -> Vec<OsString> {
    let mut names: Vec<OsString> = [
        "a space",
        "-rf",
        "--",
        ":(glob)*",
        ":!x",
        "new\nline",
        "it's \"quoted\"",
        "$(touch pwned)",
        "tab\there",
        "ünï ☂",
        "back\\slash",
        "*",
        "dir with space/[x]",
    ]
    .map(OsString::from)
    .into();
    names.push(OsStr::from_bytes(b"not-utf8-\xff\xfe").to_owned());
    names
}

impl World {
    /// An empty repository.
    pub(crate) fn unborn() -> Self {
        Self::init(&["init", "-q", "-b", "main"])
    }

    pub(crate) fn init(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("the repo");
        std::fs::create_dir(&root).unwrap();
        let name = |who: &str, what: &str| OsString::from(format!("GIT_{who}_{what}"));
        let mut env = vec![
            ("HOME".into(), top.clone().into()),
            ("GIT_CONFIG_GLOBAL".into(), top.join("gitconfig").into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        for who in ["AUTHOR", "COMMITTER"] {
            env.push((name(who, "NAME"), "Ada".into()));
            env.push((name(who, "EMAIL"), "ada@example.com".into()));
        }
        std::fs::write(top.join("gitconfig"), "[protocol \"file\"]\n\tallow = always\n").unwrap();
        let world = Self { _folder: folder, top, root, env };
        world.git(args);
        world
    }

    /// A repository with one commit of two files.
    pub(crate) fn new() -> Self {
        let world = Self::unborn();
        world.write("a.txt", "one\ntwo\nthree\n");
        world.write("dir/b.txt", "b\n");
        world.write(".gitignore", "ignored/\n*.log\n");
        world.commit("first");
        world
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            env: self.env.clone(),
            lock_tries: 3,
            lock_pause: Duration::from_millis(10),
            ..Settings::default()
        }
    }

    pub(crate) fn repo(&self) -> Repo {
        Repo::find_with(&self.root, self.settings()).unwrap().unwrap()
    }

    pub(crate) fn slot(&self, at: &Sha) -> Slot {
        self.repo().add_slot(&self.top.join("slots/0"), at, "backstop test").unwrap()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root, args)
    }

    pub(crate) fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let out = self.try_git(folder, args);
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    pub(crate) fn try_git(&self, folder: &Path, args: &[&str]) -> std::process::Output {
        let mut command = Command::new("git");
        for foreign in FOREIGN {
            command.env_remove(foreign);
        }
        command.current_dir(folder).args(args).envs(self.env.iter().map(|(k, v)| (k, v)));
        command.output().unwrap()
    }

    /// From now on whatever checks out a `*.deadly` file is killed with everything it started,
    /// until `survive`.
    pub(crate) fn kill_checkouts(&self) {
        let flag = self.top.join("kill");
        write(&flag, "");
        let smudge = format!("if [ -e '{}' ]; then kill -9 0; fi; cat", flag.display());
        self.git(&["config", "filter.deadly.smudge", &smudge]);
    }

    pub(crate) fn survive(&self) {
        std::fs::remove_file(self.top.join("kill")).unwrap();
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        write(&self.root.join(path), text);
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8_lossy(&std::fs::read(self.root.join(path)).unwrap()).into_owned()
    }

    pub(crate) fn commit(&self, message: &str) -> Sha {
        self.commit_in(&self.root, message)
    }

    pub(crate) fn commit_in(&self, folder: &Path, message: &str) -> Sha {
        self.git_in(folder, &["add", "-A"]);
        self.git_in(folder, &["commit", "-q", "-m", message]);
        self.git_in(folder, &["rev-parse", "HEAD"]).parse().unwrap()
    }

    pub(crate) fn head(&self) -> Sha {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    /// What a tree has at a path.
    pub(crate) fn show(&self, commit: &Sha, path: &str) -> Option<String> {
        let out = self.try_git(&self.root, &["show", &format!("{commit}:{path}")]);
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }

    pub(crate) fn hook(&self, name: &str, script: &str) {
        let file = self.root.join(".git/hooks").join(name);
        write(&file, format!("#!/bin/sh\n{script}\n"));
        executable(&file);
    }

    /// A commit that exists, and that nobody has checked out: what a slot makes of `change`.
    pub(crate) fn worked(&self, base: &Sha, name: &str, change: impl FnOnce(&Path)) -> Sha {
        let slot = self.repo().add_slot(&self.top.join("worked").join(name), base, "backstop test").unwrap();
        change(slot.path());
        slot.save(base, &format!("refs/backstop/r-0001/{name}/1"), name).unwrap().sha
    }
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
