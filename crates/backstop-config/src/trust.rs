//! Trust: whether a person has approved a project's file before it may change what is done.
//!
//! Trust is given to the file and to what it names in the project: rule packs, and the scripts of
//! its commands. Each is hashed with its path; when one of them changes, appears or goes, all of it
//! has to be trusted anew. A worktree of a plan is trusted where it has the content that is trusted
//! in its repository. The store keeps what is trusted; this module only asks.

use super::error::{ConfigError, Problem};
use super::file::{self, Entry};
use super::find::{self, FileName, ProjectFile, Surroundings};
use super::keys::ValueKind;
use super::layers;
use super::show;
use super::value::Value;
use backstop_core::{SafeText, Sha256};
use backstop_files::GivenPath;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// How many files trust covers at most. What names more cannot be trusted.
const FILES_MAX: usize = 200;
/// The largest file that trust covers, in bytes.
const COVERED_BYTES_MAX: u64 = 64 << 20;
/// How many characters of a path are in a line.
const PATH_CHARS_MAX: usize = 400;
/// Stands for the hash of a file that is not there.
const MISSING: &str = "missing";
/// Stands for the hash of a file that cannot be trusted: it never matches.
const UNREADABLE: &str = "unreadable";

/// Programs whose first argument is a script.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "ruby", "perl",
    "php", "lua", "pwsh", "Rscript", "source", ".",
];
/// How the names of scripts end.
const EXTENSIONS: &[&str] = &[
    "sh", "bash", "zsh", "ksh", "fish", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "ps1",
    "awk", "mk", "R", "jl",
];

const PACKAGE: &str = "package.json";

/// Programs that run what a file of the folder says, and the names of that file.
const RECIPES: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["npm", "pnpm", "yarn", "bun"], &[PACKAGE]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["rake"], &["Rakefile", "rakefile"]),
    (&["tox"], &["tox.ini"]),
    (&["nox"], &["noxfile.py"]),
];
/// Flags behind which a file is run, by program.
const FILE_FLAGS: &[(&str, &[&str])] = &[
    ("make", &["-f", "--file", "--makefile"]),
    ("gmake", &["-f", "--file", "--makefile"]),
    ("just", &["-f", "--justfile"]),
    ("task", &["-t", "--taskfile"]),
    ("rake", &["-f", "--rakefile"]),
    ("awk", &["-f", "--file"]),
    ("tox", &["-c"]),
    ("nox", &["-f", "--noxfile"]),
];

/// The hash of a file's canonical path and its content.
pub fn hash(canonical: &Path, content: &[u8]) -> String {
    let mut hasher = begun(canonical);
    hasher.update(content);
    hasher.hex()
}

fn begun(canonical: &Path) -> Sha256 {
    let path = canonical.as_os_str().as_bytes();
    let mut hasher = Sha256::new();
    // The length separates the two: a longer path with a shorter content is another input.
    hasher.update((path.len() as u64).to_le_bytes());
    hasher.update(path);
    hasher
}

/// The hashes that trust is given to: a line for the project's file, and one for each file that it
/// names, with the hash and the path below the project's root.
pub(crate) fn hashes(project: &ProjectFile, entries: &[Entry], home: Option<&Path>) -> String {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for named in named_files(project, entries, home) {
        let (NamedFile::Pack(path) | NamedFile::Script(path) | NamedFile::Package(path)) = &named;
        let trust_path = project.trust_path(path);
        let hash = hash_of(&named, &project.root, &trust_path);
        files.insert(trust_path, hash);
    }
    let line = |path: &Path, hash: &str| {
        let shown = path.strip_prefix(&project.trust_root).unwrap_or(path).to_string_lossy().into_owned();
        format!("{hash} {}\n", SafeText::new(shown).line(PATH_CHARS_MAX))
    };
    let trust_path = project.trust_path(&project.canonical);
    let mut text = line(&trust_path, &hash(&trust_path, &project.bytes));
    if files.len() > FILES_MAX {
        text.push_str(&format!("{UNREADABLE} more than {FILES_MAX} files\n"));
    }
    text.extend(files.iter().take(FILES_MAX).map(|(path, hash)| line(path, hash)));
    text
}

/// Whether these hashes can be trusted at all.
pub(crate) fn can_be_trusted(hashes: &str) -> bool {
    !hashes.lines().any(|line| line.starts_with(UNREADABLE))
}

/// A file that a project's file names.
enum NamedFile {
    /// A rule pack, which Backstop reads.
    Pack(PathBuf),
    /// A program or a script of a command.
    Script(PathBuf),
    /// The `package.json` of a command that runs its scripts: those alone count, since packages
    /// come and go.
    Package(PathBuf),
}

impl NamedFile {
    fn of_command(path: PathBuf) -> Self {
        if path.ends_with(PACKAGE) { Self::Package(path) } else { Self::Script(path) }
    }
}

/// The files that a project's file names: its rule packs, and the scripts of its commands.
fn named_files(project: &ProjectFile, entries: &[Entry], home: Option<&Path>) -> Vec<NamedFile> {
    let folder = project.canonical.parent().unwrap_or(&project.root);
    let mut files = Vec::new();
    for entry in entries {
        if entry.key.name == "mcp.<server>.command" {
            let scripts = scripts(&server_command(entry, entries), &[&project.root, folder]);
            files.extend(scripts.into_iter().map(NamedFile::of_command));
        }
        // `NODE_OPTIONS = "--require ./hook.js"`, `BASH_ENV = "./env.sh"`.
        if entry.key.name == "mcp.<server>.env.<variable>" {
            let words = ["env".to_owned(), entry.written.text.clone()];
            files.extend(scripts(&words, &[&project.root, folder]).into_iter().map(NamedFile::of_command));
        }
        let Value::Texts(words) = &entry.written.value else { continue };
        match entry.key.kind {
            ValueKind::Paths if entry.name == "rules.packs" => {
                let paths = words.iter().map(|word| match (word.strip_prefix("~/"), home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    _ => folder.join(word),
                });
                files.extend(paths.map(NamedFile::Pack));
            }
            ValueKind::Words => {
                let scripts = scripts(words, &[&project.root, folder]);
                files.extend(scripts.into_iter().map(NamedFile::of_command));
            }
            _ => {}
        }
    }
    files
}

/// The program of an MCP server with its arguments, which are another key.
fn server_command(program: &Entry, entries: &[Entry]) -> Vec<String> {
    let Value::Text(name) = &program.written.value else { return Vec::new() };
    let key = program.name.strip_suffix("command").map(|server| format!("{server}args"));
    let arguments = entries.iter().find(|entry| key.as_deref() == Some(&entry.name));
    let mut words = vec![name.clone()];
    if let Some(Value::Texts(arguments)) = arguments.map(|entry| &entry.written.value) {
        words.extend(arguments.iter().cloned());
    }
    words
}

/// The folders that a command changes to: `cd ci && sh lint.sh`, `env -C ci sh lint.sh`.
fn entered(command: &[String], root: &Path) -> Vec<PathBuf> {
    let parts: Vec<&str> = command.iter().flat_map(|word| shell_words(word)).collect();
    let enters = |word: &str| matches!(word, "cd" | "pushd" | "-C" | "--chdir" | "--directory");
    parts.windows(2).filter(|pair| enters(pair[0])).map(|pair| root.join(pair[1])).collect()
}

/// The words in a line of shell.
fn shell_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || ";&|(){}<>'\"=`$".contains(c)).filter(|part| !part.is_empty())
}

/// The scripts in the project that a command names: its program, words of it, and words of a line
/// of shell in it. A file that a command only reads or writes is none.
fn scripts(command: &[String], folders: &[&Path]) -> Vec<PathBuf> {
    let entered = folders.first().map(|root| entered(command, root)).unwrap_or_default();
    let folders: Vec<&Path> = folders.iter().copied().chain(entered.iter().map(PathBuf::as_path)).collect();
    let folders = &folders[..];
    let mut files = Vec::new();
    let mut before = "";
    for (at, word) in command.iter().enumerate() {
        // A program without a slash is looked for in PATH.
        if at > 0 || word.contains('/') {
            files.extend(script(word, before, at == 0, folders));
        }
        let mut part_before = "";
        for part in shell_words(word) {
            if part != word {
                // `$PWD/lint.sh`, `$(git rev-parse --show-toplevel)/lint.sh`.
                let in_folder = || script(part.split_once('/')?.1, part_before, false, folders);
                files.extend(script(part, part_before, false, folders).or_else(in_folder));
            }
            part_before = if part.starts_with('-') { part_before } else { part };
        }
        before = if word.starts_with('-') { before } else { word };
    }
    let parts: Vec<&str> = command.iter().flat_map(|word| shell_words(word)).collect();
    files.extend(recipes(&parts, folders));
    files
}

/// The files that programs run without being told so word by word: a makefile, the scripts of a
/// package, `__main__.py` of a folder.
fn recipes(words: &[&str], folders: &[&Path]) -> Vec<PathBuf> {
    let Some(root) = folders.first() else { return Vec::new() };
    let in_project = |path: PathBuf| {
        let real = path.metadata().ok().filter(Metadata::is_file).and_then(|_| path.canonicalize().ok())?;
        real.starts_with(root).then_some(real)
    };
    let mut files = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let program = word.rsplit('/').next().unwrap_or_default();
        let names = RECIPES.iter().filter(|(programs, _)| programs.contains(&program));
        for name in names.flat_map(|(_, names)| *names) {
            files.extend(folders.iter().filter_map(|folder| in_project(folder.join(name))));
        }
        let flags = FILE_FLAGS.iter().find(|(name, _)| *name == program).map_or(&[][..], |(_, flags)| flags);
        for pair in words[at + 1..].windows(2).filter(|pair| flags.contains(&pair[0])) {
            files.extend(folders.iter().filter_map(|folder| in_project(folder.join(pair[1]))));
        }
        if program.starts_with("python") {
            let given = words[at + 1..].iter().find(|word| !word.starts_with('-'));
            let mains = given.map(|folder| [folder.replace('.', "/"), (*folder).to_owned()]);
            for main in mains.into_iter().flatten() {
                let path = |folder: &&Path| folder.join(&main).join("__main__.py");
                files.extend(folders.iter().filter_map(|folder| in_project(path(folder))));
            }
        }
    }
    files
}

/// The script in the project that a word names; `before` is the word before it that is no flag.
fn script(word: &str, before: &str, is_program: bool, folders: &[&Path]) -> Option<PathBuf> {
    let root = folders.first()?;
    let is_run = is_program || INTERPRETERS.contains(&before.rsplit('/').next().unwrap_or_default());
    folders.iter().find_map(|folder| {
        let path = folder.join(word);
        let found = path.metadata().ok().filter(Metadata::is_file)?;
        let real = path.canonicalize().ok()?;
        let leaves_by_link = !real.starts_with(root) && leads_out(&path, root);
        let real = Some(if leaves_by_link { path } else { real }).filter(|real| real.starts_with(root))?;
        let has_extension =
            real.extension().and_then(|end| end.to_str()).is_some_and(|end| EXTENSIONS.contains(&end));
        let is_executable = found.permissions().mode() & 0o111 != 0;
        (is_run || has_extension || is_executable).then_some(real)
    })
}

/// Whether a path stays below the project by its words, and only a link leads out of it.
fn leads_out(path: &Path, root: &Path) -> bool {
    path.starts_with(root) && !path.components().any(|part| part == Component::ParentDir)
}

/// The hash of a file, read in pieces, as if it were at `trust_path`. Of a program or a script that
/// is a link out of the project (`.venv/bin/python`) it is that of where it leads: what is there is
/// not the project's to change.
fn hash_of(file: &NamedFile, root: &Path, trust_path: &Path) -> String {
    let mut hasher = begun(trust_path);
    let path = match file {
        NamedFile::Pack(path) | NamedFile::Package(path) => path,
        NamedFile::Script(path) => {
            if let Ok(real) = path.canonicalize()
                && !real.starts_with(root)
            {
                hasher.update(real.as_os_str().as_bytes());
                return hasher.hex();
            }
            path
        }
    };
    let opened = match GivenPath::new(path, root, root).open() {
        Ok(opened) => opened,
        Err(error) if error.is_not_found() => return MISSING.to_owned(),
        Err(_) => return UNREADABLE.to_owned(),
    };
    let mut limited = opened.take(COVERED_BYTES_MAX + 1);
    if matches!(file, NamedFile::Package(_)) {
        let mut bytes = Vec::new();
        return match limited.read_to_end(&mut bytes) {
            Ok(count) if count as u64 <= COVERED_BYTES_MAX => {
                hasher.update(scripts_of_package(&bytes));
                hasher.hex()
            }
            _ => UNREADABLE.to_owned(),
        };
    }
    let (mut buffer, mut total) = ([0u8; 64 << 10], 0);
    loop {
        match limited.read(&mut buffer) {
            Ok(0) => return hasher.hex(),
            Ok(n) => {
                total += n as u64;
                hasher.update(&buffer[..n]);
            }
            Err(_) => return UNREADABLE.to_owned(),
        }
        if total > COVERED_BYTES_MAX {
            return UNREADABLE.to_owned();
        }
    }
}

/// What a package manager runs of a `package.json`; all of one that cannot be read.
fn scripts_of_package(bytes: &[u8]) -> Vec<u8> {
    match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(package) => package["scripts"].to_string().into_bytes(),
        Err(_) => bytes.to_vec(),
    }
}

/// What is different from the hashes that were trusted, in words; empty where nothing is.
pub(crate) fn changes(trusted: &str, now: &str) -> Vec<String> {
    let lines = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        pairs.map(|(hash, path)| (path.to_owned(), hash.to_owned())).collect()
    };
    let (before, after) = (lines(trusted), lines(now));
    // Trusted by a version that covered the file alone.
    if before.is_empty() {
        return vec!["what trust covers has changed".to_owned()];
    }
    let mut words = Vec::new();
    for (path, hash) in &after {
        match before.get(path) {
            _ if hash == UNREADABLE => words.push(format!("{path} cannot be covered")),
            Some(known) if known == hash => {}
            Some(_) if hash == MISSING => words.push(format!("{path} is gone")),
            Some(_) => words.push(format!("{path} has changed")),
            None => words.push(format!("{path} is new")),
        }
    }
    words.extend(
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("{path} is gone")),
    );
    words
}

/// One setting of a project's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sets {
    /// The key.
    pub key: String,
    /// The value. It is text from outside: escape it.
    pub value: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// What there is to trust in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The project's file.
    pub file: FileName,
    /// The canonical path under which trust is stored.
    pub canonical: PathBuf,
    /// The repository whose trust counts, if this is a worktree of a plan.
    pub slot_of: Option<PathBuf>,
    /// The hashes that trust is given to, a line for each file: hash and path.
    pub hashes: String,
    /// The settings that need trust.
    pub sets: Vec<Sets>,
    /// The settings that take effect without it.
    pub without_trust: Vec<Sets>,
}

impl Candidate {
    /// The hash of the project's file itself.
    pub fn hash(&self) -> &str {
        self.hashes.split(' ').next().unwrap_or_default()
    }

    /// The files that trust covers, by their paths below the project's root.
    pub fn covers(&self) -> impl Iterator<Item = &str> {
        self.hashes.lines().filter_map(|line| Some(line.split_once(' ')?.1))
    }

    /// What has changed since these hashes were trusted, in words.
    pub fn changes_since(&self, trusted: &str) -> Vec<String> {
        changes(trusted, &self.hashes)
    }

    /// Why it cannot be trusted: files that are too large, too many, or unreadable.
    pub fn unreadable(&self) -> Option<&str> {
        self.hashes.lines().find_map(|line| line.strip_prefix(UNREADABLE)).map(str::trim)
    }
}

/// What there is to trust here, for a person to read before approving. `None` if there is no
/// project file.
pub fn candidate(around: &Surroundings<'_>) -> Result<Option<Candidate>, ConfigError> {
    let safe = layers::safe_directories(around);
    let project = find::project_file(around, &safe).map_err(|e| ConfigError::one(Problem::from(e)))?;
    let Some(project) = project else { return Ok(None) };
    let text = file::text(&project.file, &project.bytes).map_err(ConfigError::one)?;
    let (entries, problems) = file::read(&project.file, text);
    if let Some(error) = ConfigError::of(problems) {
        return Err(error);
    }
    let hashes = hashes(&project, &entries, around.home.as_deref());
    let sets = |needs: bool| {
        let those = entries.iter().filter(move |entry| entry.key.needs_trust() == needs);
        let set = |entry: &Entry| Sets {
            key: entry.name.clone(),
            value: show::shown(&entry.name, &entry.written).text,
            line: entry.line,
        };
        those.map(set).collect()
    };
    Ok(Some(Candidate {
        sets: sets(true),
        without_trust: sets(false),
        hashes,
        canonical: project.trust_path(&project.canonical),
        slot_of: project.repository_of_slot().map(Path::to_owned),
        file: project.file,
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
        let keys = |sets: &[Sets]| sets.iter().map(|set| (set.key.clone(), set.line)).collect::<Vec<_>>();
        assert_eq!(keys(&found.sets), [("exec.grace".to_owned(), 2), ("rules.packs".to_owned(), 4)]);
        assert_eq!(found.sets[1].value, "[\"a.toml\"]");
        assert_eq!(found.covers().collect::<Vec<_>>(), ["backstop.toml", "a.toml"]);
        scratch.write("backstop.toml", "[exec]\ngrace = \"2s\"\n[rules]\npacks = [\"a.toml\"]\n");
        let changed = candidate(&scratch.around("")).unwrap().unwrap();
        assert_eq!(changed.changes_since(&found.hashes), ["backstop.toml has changed"]);
        scratch.write("backstop.toml", "[exec]\ngarce = \"2s\"\n");
        assert!(candidate(&scratch.around("")).is_err());
    }

    /// A repository with a worktree in the state folder, as git lays them out.
    fn with_slot(scratch: &Scratch) {
        scratch.write("work/backstop.toml", "gates.a.check = [\"./a.sh\"]\n");
        scratch.write("work/a.sh", "true\n");
        for file in ["backstop.toml", "a.sh"] {
            let content = std::fs::read(scratch.home.join("work").join(file)).unwrap();
            scratch.write(&format!("state/slot-1/{file}"), content);
        }
        let home = scratch.home.display();
        scratch.write("state/slot-1/.git", format!("gitdir: {home}/work/.git/worktrees/slot-1\n"));
        scratch.write("work/.git/worktrees/slot-1/gitdir", format!("{home}/state/slot-1/.git\n"));
    }

    #[test]
    fn a_worktree_of_a_plan_is_trusted_where_it_has_the_content_of_its_repository() {
        let scratch = Scratch::new();
        with_slot(&scratch);
        let at = |folder: &str| candidate(&scratch.around(folder)).unwrap().unwrap();
        let (work, slot) = (at("work"), at("state/slot-1"));
        assert_eq!((&slot.canonical, &slot.hashes), (&work.canonical, &work.hashes));
        assert_eq!((work.slot_of, slot.slot_of), (None, Some(scratch.home.join("work"))));
        // What a phase changes there is not what was trusted.
        scratch.write("state/slot-1/a.sh", "false\n");
        assert_eq!(at("state/slot-1").changes_since(&work.hashes), ["a.sh has changed"]);
    }

    #[test]
    fn a_folder_that_no_repository_knows_is_nobodys_worktree() {
        #[allow(clippy::type_complexity)]
        let broken: [(&str, &dyn Fn(&Scratch)); 4] = [
            ("not in the state folder", &|scratch| {
                std::fs::rename(scratch.home.join("state"), scratch.home.join("elsewhere")).unwrap();
                scratch.write(
                    "work/.git/worktrees/slot-1/gitdir",
                    format!("{}/elsewhere/slot-1/.git\n", scratch.home.display()),
                );
            }),
            ("the repository names another", &|scratch| {
                scratch.write("other/.git", "");
                let other = scratch.home.join("other/.git");
                scratch.write("work/.git/worktrees/slot-1/gitdir", other.to_str().unwrap());
            }),
            ("the repository names none", &|scratch| {
                std::fs::remove_file(scratch.home.join("work/.git/worktrees/slot-1/gitdir")).unwrap();
            }),
            ("a repository of its own", &|scratch| scratch.write("state/slot-1/.git", "gitdir: .git\n")),
        ];
        for (what, breaks) in broken {
            let scratch = Scratch::new();
            with_slot(&scratch);
            breaks(&scratch);
            let folder = if what.starts_with("not in") { "elsewhere/slot-1" } else { "state/slot-1" };
            let found = candidate(&scratch.around(folder)).unwrap().unwrap();
            assert_eq!(found.slot_of, None, "{what}");
            assert_eq!(found.canonical, scratch.home.join(folder).join("backstop.toml"), "{what}");
        }
    }

    #[test]
    fn what_programs_run_without_being_told_so_is_covered() {
        let files = [
            "Makefile",
            "package.json",
            "justfile",
            "ci/data.txt",
            "ci/x.sh",
            "ci/pkg/__main__.py",
            "ci/Makefile",
            "other.txt",
        ];
        for (command, covered) in [
            (&["make", "all"][..], &["Makefile"][..]),
            (&["make", "-f", "ci/data.txt"], &["Makefile", "ci/data.txt"]),
            (&["make", "--file=ci/data.txt"], &["Makefile", "ci/data.txt"]),
            (&["make", "-C", "ci"], &["Makefile", "ci/Makefile"]),
            (&["npm", "test"], &["package.json"]),
            (&["pnpm", "run", "lint"], &["package.json"]),
            (&["sh", "-c", "yarn lint && true"], &["package.json"]),
            (&["just", "check"], &["justfile"]),
            (&["python3", "ci/pkg"], &["ci/pkg/__main__.py"]),
            (&["python3", "-m", "ci.pkg"], &["ci/pkg/__main__.py"]),
            (&["bash", "-c", "pushd ci && ./x.sh"], &["ci/x.sh"]),
            (&["env", "-C", "ci", "sh", "x.sh"], &["ci/x.sh"]),
            (&["env", "-C", "ci", "sh", "data.txt"], &["ci/data.txt"]),
            (&["cargo", "test"], &[]),
        ] {
            let scratch = Scratch::new();
            scratch.folder("work/.git");
            for file in files {
                scratch.write(&format!("work/{file}"), "true\n");
            }
            let words = command.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
            scratch.write("work/backstop.toml", format!("[gates.a]\ncheck = [{words}]\n"));
            let at = || candidate(&scratch.around("work")).unwrap().unwrap();
            let trusted = at();
            let mut found: Vec<&str> = trusted.covers().filter(|file| *file != "backstop.toml").collect();
            found.sort_unstable();
            assert_eq!(found, covered, "{command:?}");
            for file in covered {
                scratch.write(&format!("work/{file}"), "evil\n");
                let changed = at().changes_since(&trusted.hashes);
                assert!(changed.contains(&format!("{file} has changed")), "{command:?}: {changed:?}");
            }
        }
    }

    #[test]
    fn of_a_package_its_scripts_are_covered() {
        let scratch = Scratch::new();
        scratch.folder("work/.git");
        scratch.write("work/backstop.toml", "[gates.a]\ncheck = [\"npm\", \"test\"]\n");
        let at = |package: &str| {
            scratch.write("work/package.json", package);
            candidate(&scratch.around("work")).unwrap().unwrap()
        };
        let trusted = at("{\"scripts\": {\"test\": \"jest\"}}").hashes;
        let with_package = at("{\"scripts\": {\"test\": \"jest\"}, \"dependencies\": {\"a\": \"1\"}}");
        assert_eq!(with_package.changes_since(&trusted), Vec::<String>::new());
        let other = at("{\"scripts\": {\"test\": \"evil\"}}");
        assert_eq!(other.changes_since(&trusted), ["package.json has changed"]);
    }

    #[test]
    fn packs_and_scripts_of_commands_are_covered() {
        let scratch = Scratch::new();
        scratch.folder("work/.git");
        for script in [
            "check.sh",
            "ci/lint.sh",
            "ci/here.sh",
            "ci/braces.sh",
            "ci/top.sh",
            "tools/agent.py",
            "tools/hook.js",
            "tell.sh",
            "other.sh",
        ] {
            scratch.write(&format!("work/{script}"), "true\n");
        }
        for data in ["report.xml", "ran", "plain", "test"] {
            scratch.write(&format!("work/{data}"), "true\n");
        }
        scratch.write("outside.sh", "true\n");
        scratch.write(
            "work/backstop.toml",
            "rules.packs = [\"rules.toml\"]\n\
             [gates]\nlint.check = [\"sh\", \"-c\", \"cd . && ci/lint.sh\"]\ntest.check = [\"./check.sh\"]\n\
             build.check = [\"cargo\", \"test\", \"../outside.sh\"]\n\
             report.check = [\"pytest\", \"--junitxml=report.xml\", \"report.xml\"]\n\
             line.check = [\"sh\", \"-c\", \"echo x >> ran; sh plain\"]\n\
             here.check = [\"sh\", \"-c\", \"exec $PWD/ci/here.sh\"]\n\
             braces.check = [\"sh\", \"-c\", \"${PWD}/ci/braces.sh\"]\n\
             top.check = [\"sh\", \"-c\", \"$(git rev-parse --show-toplevel)/ci/top.sh\"]\n\
             [agent.mine]\ncommand = [\"python3\", \"tools/agent.py\"]\n\
             [mcp.s]\ncommand = \"node\"\nenv = { NODE_OPTIONS = \"--require ./tools/hook.js\" }\n\
             [notify.ops]\ntype = \"command\"\ncommand = [\"sh\", \"tell.sh\"]\n",
        );
        let at = || candidate(&scratch.around("work")).unwrap().unwrap();
        let trusted = at();
        let mut covers: Vec<&str> = trusted.covers().collect();
        covers.sort_unstable();
        assert_eq!(
            covers,
            [
                "backstop.toml",
                "check.sh",
                "ci/braces.sh",
                "ci/here.sh",
                "ci/lint.sh",
                "ci/top.sh",
                "plain",
                "rules.toml",
                "tell.sh",
                "tools/agent.py",
                "tools/hook.js"
            ]
        );
        assert_eq!(at().changes_since(&trusted.hashes), Vec::<String>::new());
        scratch.write("work/other.sh", "false\n");
        assert_eq!(at().changes_since(&trusted.hashes), Vec::<String>::new());
        scratch.write("work/ci/lint.sh", "false\n");
        scratch.write("work/rules.toml", "");
        std::fs::remove_file(scratch.home.join("work/tell.sh")).unwrap();
        assert_eq!(
            at().changes_since(&trusted.hashes),
            ["ci/lint.sh has changed", "rules.toml has changed", "tell.sh is gone"]
        );
        assert_eq!(trusted.unreadable(), None);
        scratch.folder("work/rules.toml.d");
        scratch.write("work/backstop.toml", "rules.packs = [\"rules.toml.d\"]\n");
        assert_eq!(at().unreadable(), Some("rules.toml.d"));
    }
}
