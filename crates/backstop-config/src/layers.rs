//! The layers of the configuration, lowest to highest: defaults, the user's file, the project's
//! file, the environment, flags. Every value knows its origin, and overridden values are kept.
//!
//! It must not read the environment or the file system by itself: folders and variables are
//! arguments, so that everything can be tested.

use super::Config;
use super::error::{ConfigError, Place, Problem};
use super::file;
use super::find::{FileName, ProjectFile, Surroundings, Unread, bytes, project_file, user_file_path};
use super::keys::{self, KEYS, Key};
use super::owner::{Foreign, SAFE_DIRECTORIES};
use super::profile;
use super::trust;
use super::value::{self, Value, Written, list_text};
use backstop_core::Redactor;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How much of a file that is no text is searched for secrets.
const UNREAD_BYTES_MAX: usize = 256 << 10;
/// How many values of a file that takes no effect are looked at.
const UNREAD_MAX: usize = 1000;
/// How long such a value is.
const VALUE_BYTES_MAX: usize = 1 << 10;

/// One value given by a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The flag as it was typed, such as `--timeout`.
    pub flag: String,
    /// The key that it sets, such as `exec.timeout`.
    pub key: String,
    /// The value. Of a list this is one entry, and the flag may be given several times.
    pub value: String,
}

impl Given {
    /// The flags that have a value: each with its key.
    pub fn those<'f>(flags: impl IntoIterator<Item = (&'f str, &'f str, Option<String>)>) -> Vec<Self> {
        let given = |(flag, key, value): (&str, &str, Option<String>)| {
            Some(Self { flag: flag.to_owned(), key: key.to_owned(), value: value? })
        };
        flags.into_iter().filter_map(given).collect()
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// A line of a file.
    File {
        /// The file.
        file: FileName,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
    },
    /// An environment variable.
    Environment {
        /// The variable.
        name: String,
    },
    /// A flag.
    Flag {
        /// The flag, with its dashes.
        name: String,
    },
}

impl Origin {
    /// The path of the file, if the value comes from one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Origin::File { file, .. } => Some(&file.path),
            _ => None,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line, .. } => write!(f, "{}:{line}", file.shown),
            Origin::Environment { name } => write!(f, "${name}"),
            Origin::Flag { name } => f.write_str(name),
        }
    }
}

/// The layers, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Built in.
    Default,
    /// The user's file.
    User,
    /// The project's file.
    Project,
    /// The environment.
    Environment,
    /// Flags.
    Flag,
}

impl Layer {
    /// All, lowest first.
    pub const ALL: [Layer; 5] =
        [Layer::Default, Layer::User, Layer::Project, Layer::Environment, Layer::Flag];
}

/// The value of a key in one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The value and its text.
    pub written: Written,
    /// The layer.
    pub layer: Layer,
    /// The exact origin.
    pub origin: Origin,
}

/// A value that is ignored because the project's file is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inert {
    /// The key's name.
    pub key: String,
    /// The file.
    pub file: FileName,
    /// The line, counted from 1.
    pub line: usize,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The file.
    pub file: FileName,
    /// Its layer.
    pub layer: Layer,
    /// The number of values in it, ignored ones included.
    pub values: usize,
}

/// Loads all layers. `is_trusted` is called with the canonical path of the project's file and the
/// hashes of it and of what it names, and only if the file sets a key that needs trust.
///
/// A problem in a file or a variable costs the value that it is in, and is kept in
/// [`Config::problems`]: a typing mistake must not stop every command in a project. A problem in a
/// flag is an error: it was typed for this command, which can be typed again.
pub fn load(
    around: &Surroundings<'_>,
    flags: &[Given],
    is_trusted: &dyn Fn(&Path, &str) -> bool,
) -> Result<Config, ConfigError> {
    let mut stack = Stack::default();
    stack.user_file(around);
    stack.project_file(around, is_trusted);
    stack.environment(around);
    let mut problems = std::mem::take(&mut stack.problems);
    stack.flags(flags);
    if let Some(error) = ConfigError::of(stack.problems) {
        return Err(error);
    }
    let mut config = Config {
        settings: stack.settings,
        inert: stack.inert,
        not_trusted: stack.not_trusted,
        project_trust: stack.project_trust,
        changes: Vec::new(),
        foreign: stack.foreign,
        notes: stack.notes,
        files: stack.files,
        unread: stack.unread,
        cwd: around.cwd.clone(),
        home: around.home.clone(),
        problems: Vec::new(),
    };
    problems.extend(profile::drop_conflicts(&mut config).map_err(ConfigError::one)?);
    config.problems = problems;
    Ok(config)
}

#[derive(Default)]
struct Stack {
    /// The values by key, lowest layer first.
    settings: BTreeMap<String, Vec<Setting>>,
    problems: Vec<Problem>,
    inert: Vec<Inert>,
    /// The path and the hashes of a project's file that is not trusted.
    not_trusted: Option<(PathBuf, String)>,
    /// The path and the hashes of the project's file, whether it is trusted or not.
    project_trust: Option<(PathBuf, String)>,
    foreign: Option<Foreign>,
    notes: Vec<String>,
    files: Vec<FileRead>,
    unread: Unheeded,
}

/// What stands in files of which some values take no effect: they cannot be read, or are not
/// trusted. Somebody may have written a secret there all the same.
#[derive(Debug, Clone, Default)]
pub struct Unheeded {
    /// What looks like a secret.
    pub secrets: Vec<String>,
    /// Names with values, as far as a file that is no TOML has any.
    pub values: Vec<(String, String)>,
}

/// Names and what is behind their `=`, in a text that need not be TOML. Of many the first ones.
fn pairs_of(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\'');
    let named = text.match_indices('=').filter_map(move |(at, _)| {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let name = &before[before.trim_end_matches(is_name).len()..];
        let name = name.rsplit('.').next().unwrap_or_default().trim_matches(['"', '\'']);
        (!name.is_empty()).then_some((at, name))
    });
    named.take(UNREAD_MAX).filter_map(move |(at, name)| {
        let rest = &text[at + 1..];
        let rest = &rest[..rest.floor_char_boundary(VALUE_BYTES_MAX)];
        let line = rest.lines().next().unwrap_or_default().trim();
        let value = match line.chars().next().filter(|first| matches!(first, '"' | '\'')) {
            Some(quote) => line[1..].split(quote).next().unwrap_or_default(),
            None => line.split([',', '}', ']', '#']).next().unwrap_or_default().trim(),
        };
        (!value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    })
}

/// The folders of other users that the user's own file calls safe.
pub(crate) fn safe_directories(around: &Surroundings<'_>) -> Vec<String> {
    let mut stack = Stack::default();
    stack.user_file(around);
    stack.safe_directories()
}

impl Stack {
    /// What the layers so far call safe. Asked before the project's file is read: it has no say.
    fn safe_directories(&self) -> Vec<String> {
        match self.settings.get(SAFE_DIRECTORIES).and_then(|all| all.last()) {
            Some(Setting { written: Written { value: Value::Texts(list), .. }, .. }) => list.clone(),
            _ => Vec::new(),
        }
    }

    fn set(&mut self, name: &str, written: Written, layer: Layer, origin: Origin) {
        let settings = self.settings.entry(name.to_owned()).or_default();
        // Within a layer, lists are joined and other values are replaced.
        if let Some(last) = settings.last_mut().filter(|last| last.layer == layer) {
            *last = Setting { written: joined(&last.written, written), layer, origin };
        } else {
            settings.push(Setting { written, layer, origin });
        }
    }

    fn wrong(&mut self, place: Place, wrong: &value::Wrong) {
        self.problems.push(Problem::new(place, &wrong.message, wrong.hint.as_deref()));
    }

    fn user_file(&mut self, around: &Surroundings<'_>) {
        let Some(path) = user_file_path(around) else { return };
        let file = FileName::new(path, &around.cwd);
        match bytes(&file, &file.path) {
            Ok(Some((bytes, writable))) => {
                let entries = self.read(&file, &bytes, writable, Layer::User);
                self.set_all(&file, entries, Layer::User);
            }
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }

    fn project_file(&mut self, around: &Surroundings<'_>, is_trusted: &dyn Fn(&Path, &str) -> bool) {
        match project_file(around, &self.safe_directories()) {
            Ok(Some(project)) => self.project_entries(&project, around.home.as_deref(), is_trusted),
            Ok(None) => {}
            Err(Unread::Problem(problem)) => self.problems.push(problem),
            Err(Unread::Foreign(foreign)) => self.foreign = Some(foreign),
        }
    }

    fn project_entries(
        &mut self,
        project: &ProjectFile,
        home: Option<&Path>,
        is_trusted: &dyn Fn(&Path, &str) -> bool,
    ) {
        let file = &project.file;
        let mut entries = self.read(file, &project.bytes, project.writable_by_all, Layer::Project);
        let hashes = trust::hashes(project, &entries, home);
        let trust_path = project.trust_path(&project.canonical);
        if trust::can_be_trusted(&hashes) {
            self.project_trust = Some((trust_path.clone(), hashes.clone()));
        }
        #[allow(clippy::collapsible_if)]
        if entries.iter().any(|entry| entry.key.needs_trust()) {
            if !trust::can_be_trusted(&hashes) || !is_trusted(&trust_path, &hashes) {
                if let Ok(text) = file::text(file, &project.bytes) {
                    self.unread(text);
                }
                let inert = entries.extract_if(.., |entry| entry.key.needs_trust());
                let inert =
                    inert.map(|entry| Inert { key: entry.name, file: file.clone(), line: entry.line });
                self.inert.extend(inert);
                self.not_trusted = Some((trust_path, hashes));
            }
        }
        self.set_all(file, entries, Layer::Project);
    }

    /// The entries of a file. What is wrong in it is noted.
    fn read(&mut self, file: &FileName, bytes: &[u8], writable: bool, layer: Layer) -> Vec<file::Entry> {
        if writable {
            self.notes.push(format!("{} can be written by everybody: `chmod o-w` it", file.shown));
        }
        let text = match file::text(file, bytes) {
            Ok(text) => text,
            Err(problem) => {
                self.problems.push(problem);
                self.unread(&String::from_utf8_lossy(&bytes[..bytes.len().min(UNREAD_BYTES_MAX)]));
                return Vec::new();
            }
        };
        let (entries, problems) = file::read(file, text);
        if !problems.is_empty() {
            self.unread(text);
        }
        self.problems.extend(problems);
        self.files.push(FileRead { file: file.clone(), layer, values: entries.len() });
        entries
    }

    /// Keeps what looks like a secret in a file of which some values take no effect: nobody else
    /// knows them, and they are as secret as the others.
    fn unread(&mut self, text: &str) {
        let is_variable = |name: &String| {
            name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let found = Redactor::default().secrets_of(text);
        self.unread.secrets.extend(found.into_iter().filter(|secret| !is_variable(secret)).take(UNREAD_MAX));
        let pairs = pairs_of(text).filter(|(_, value)| !is_variable(value));
        self.unread.values.extend(pairs);
    }

    fn set_all(&mut self, file: &FileName, entries: Vec<file::Entry>, layer: Layer) {
        for entry in entries {
            let origin = Origin::File { file: file.clone(), line: entry.line, column: entry.column };
            self.set(&entry.name, entry.written, layer, origin);
        }
    }

    fn environment(&mut self, around: &Surroundings<'_>) {
        for key in KEYS.iter().filter(|key| !key.is_pattern()) {
            let name = key.variable_name();
            let Some(given) = (around.env)(&name).filter(|given| !given.is_empty()) else { continue };
            if key.variable().is_none() {
                let message = format!("`{}` is a list, which a variable cannot set", key.name);
                let hint = format!("unset it, and set `{}` in a config file", key.name);
                self.problems.push(Problem::new(Place::Environment(name), &message, Some(&hint)));
                continue;
            }
            match value::from_text(key, key.name, &given) {
                Ok(written) => self.set(key.name, written, Layer::Environment, Origin::Environment { name }),
                Err(wrong) => self.wrong(Place::Environment(name), &wrong),
            }
        }
    }

    fn flags(&mut self, flags: &[Given]) {
        for Given { flag, key: name, value } in flags {
            let Some(key) = keys::named(name) else {
                self.unknown_flag(flag, name);
                continue;
            };
            match value::from_text(key, name, value) {
                Ok(written) => self.set(name, written, Layer::Flag, Origin::Flag { name: flag.clone() }),
                Err(wrong) => self.wrong(Place::Flag(flag.clone()), &wrong),
            }
        }
    }

    /// Reports a flag whose key comes from the command line, e.g. a reason, and does not exist.
    fn unknown_flag(&mut self, flag: &str, name: &str) {
        let path: Vec<&str> = name.split('.').collect();
        let known =
            (0..path.len()).rev().find(|length| keys::find(&path[..*length]) == keys::KeyMatch::Section);
        let known = known.unwrap_or(0);
        let given = path.get(known).copied().unwrap_or_default();
        let (message, hint) = keys::unknown(&path[..known], given);
        self.problems.push(Problem::new(Place::Flag(flag.to_owned()), &message, Some(&hint)));
    }
}

fn joined(before: &Written, after: Written) -> Written {
    match (&before.value, &after.value) {
        (Value::Texts(first), Value::Texts(second)) => texts(first.iter().chain(second)),
        (Value::Durations(first), Value::Durations(second)) => {
            let list = first.iter().chain(second).copied().collect();
            let text =
                format!("{}, {}", before.text.trim_end_matches(']'), after.text.trim_start_matches('['));
            Written { value: Value::Durations(list), text }
        }
        _ => after,
    }
}

/// A list of texts without duplicates.
pub(crate) fn texts<'t>(all: impl Iterator<Item = &'t String>) -> Written {
    let mut list: Vec<String> = Vec::new();
    for text in all {
        if !list.contains(text) {
            list.push(text.clone());
        }
    }
    let text = list_text(&list.iter().map(String::as_str).collect::<Vec<_>>());
    Written { value: Value::Texts(list), text }
}

/// The keys that are not patterns, in the order in which they are shown.
pub(crate) fn plain_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| !key.is_pattern())
}

#[cfg(test)]
mod tests {
    use super::super::file::FILE_BYTES_MAX;
    use super::super::scratch::Scratch;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const ALWAYS: &dyn Fn(&Path, &str) -> bool = &|_, _| true;
    const NEVER: &dyn Fn(&Path, &str) -> bool = &|_, _| false;

    fn flag(flag: &str, key: &str, value: &str) -> Given {
        Given { flag: flag.to_owned(), key: key.to_owned(), value: value.to_owned() }
    }

    /// The problems of files and variables, one line each.
    fn message(result: Result<Config, ConfigError>) -> String {
        result.unwrap().problems().unwrap().to_string()
    }

    /// A value and its origin, as `config show --origin` prints them.
    fn shown(config: &Config, key: &str) -> String {
        let setting = config.settings().into_iter().find(|s| s.key == key).unwrap();
        format!("{} {}", setting.text, setting.origin)
    }

    #[test]
    fn each_layer_beats_those_below_and_is_named() {
        let scratch = Scratch::new();
        scratch.folder("work/.git");
        let env = |name: &str| (name == "BACKSTOP_EXEC_TIMEOUT").then(|| "4s".to_owned());
        let mut around = scratch.around("work");
        assert_eq!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout"), "none default");
        scratch.write(".config/backstop/config.toml", "[exec]\ntimeout = \"2s\"\ngrace = \"7s\"\n");
        let user = scratch.home.join(".config/backstop/config.toml");
        let config = load(&around, &[], ALWAYS).unwrap();
        assert_eq!(shown(&config, "exec.timeout"), format!("2s {}:2", user.display()));
        scratch.write("work/backstop.toml", "\nexec.timeout = \"3s\"\n");
        assert_eq!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout"), "3s backstop.toml:2");
        around.env = &env;
        assert_eq!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout"), "4s $BACKSTOP_EXEC_TIMEOUT");
        let flags = [flag("--timeout", "exec.timeout", "5s")];
        let config = load(&around, &flags, ALWAYS).unwrap();
        assert_eq!(shown(&config, "exec.timeout"), "5s --timeout");
        assert_eq!(shown(&config, "exec.grace"), format!("7s {}:3", user.display()));
        assert_eq!(config.exec().timeout, Some(std::time::Duration::from_secs(5)));
        assert_eq!(config.origin("exec.drain"), Some(&Origin::Default));
        assert_eq!(config.origin("exec.nothing"), None);
    }

    #[test]
    fn a_higher_layer_can_say_none() {
        let scratch = Scratch::new();
        scratch.write(".config/backstop/config.toml", "exec.timeout = \"2s\"\n");
        scratch.write("work/backstop.toml", "exec.timeout = \"none\"\n");
        assert_eq!(load(&scratch.around("work"), &[], ALWAYS).unwrap().exec().timeout, None);
    }

    #[test]
    fn the_users_folder_can_be_elsewhere_but_not_relative() {
        let scratch = Scratch::new();
        scratch.write("elsewhere/backstop/config.toml", "exec.timeout = \"2s\"\n");
        scratch.write(".config/backstop/config.toml", "exec.timeout = \"3s\"\n");
        let mut around = scratch.around("");
        around.xdg_config_home = Some(scratch.home.join("elsewhere"));
        assert!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout").starts_with("2s"));
        around.xdg_config_home = Some("elsewhere".into());
        assert!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout").starts_with("3s"));
        around.xdg_config_home = None;
        around.home = None;
        assert_eq!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout"), "none default");
    }

    #[test]
    fn the_project_is_looked_for_up_to_the_repository_and_not_beyond() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", "exec.timeout = \"1s\"\n");
        scratch.write("work/backstop.toml", "exec.timeout = \"2s\"\n");
        scratch.folder("work/repo/src/deep");
        let found = |cwd: &str| shown(&load(&scratch.around(cwd), &[], ALWAYS).unwrap(), "exec.timeout");
        // Without a repository, only the folder itself.
        assert_eq!(found("work/repo/src"), "none default");
        assert_eq!(found("work"), "2s backstop.toml:1");
        // With one, up to its root, be `.git` a folder or a worktree's file.
        scratch.write("work/repo/.git", "gitdir: elsewhere\n");
        assert_eq!(found("work/repo/src/deep"), "none default");
        scratch.write("work/repo/backstop.toml", "exec.timeout = \"3s\"\n");
        let path = scratch.home.join("work/repo/backstop.toml");
        assert_eq!(found("work/repo/src/deep"), format!("3s {}:1", path.display()));
        // The nearest one counts.
        scratch.write("work/repo/src/backstop.toml", "exec.timeout = \"4s\"\n");
        assert_eq!(found("work/repo/src"), "4s backstop.toml:1");
    }

    #[test]
    fn a_repository_above_the_home_folder_does_not_count() {
        let scratch = Scratch::new();
        scratch.folder(".git");
        scratch.write("backstop.toml", "exec.timeout = \"1s\"\n");
        scratch.folder("home/me/work");
        let mut around = scratch.around("home/me/work");
        around.home = Some(scratch.home.join("home/me"));
        assert_eq!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout"), "none default");
        around.home = None;
        assert!(shown(&load(&around, &[], ALWAYS).unwrap(), "exec.timeout").starts_with("1s"));
    }

    #[test]
    fn what_needs_trust_is_inert_without_it() {
        let scratch = Scratch::new();
        scratch.write(".config/backstop/config.toml", "rules.packs = [\"mine.toml\"]\n");
        scratch.write(
            "backstop.toml",
            "exec.grace = \"1s\"\n[rules]\npacks = [\"theirs.toml\"]\n[events]\ntail_to = \"log\"\n",
        );
        let config = load(&scratch.around(""), &[], NEVER).unwrap();
        let inert: Vec<_> =
            config.inert().iter().map(|i| (i.key.as_str(), i.file.shown.as_str(), i.line)).collect();
        assert_eq!(
            inert,
            [
                ("exec.grace", "backstop.toml", 1),
                ("rules.packs", "backstop.toml", 3),
                ("events.tail_to", "backstop.toml", 5)
            ]
        );
        assert_eq!(config.packs(), [scratch.home.join(".config/backstop/mine.toml")]);
        assert_eq!(config.tail_to(), None);
        assert_eq!(config.exec().grace.as_secs(), 5);

        let canonical = scratch.home.join("backstop.toml");
        let trusted = trust::candidate(&scratch.around("")).unwrap().unwrap().hashes;
        let exactly = |path: &Path, asked: &str| path == canonical && asked == trusted;
        let config = load(&scratch.around(""), &[], &exactly).unwrap();
        assert_eq!(config.inert(), []);
        assert_eq!(config.packs(), [scratch.home.join("theirs.toml")]);
        assert_eq!(config.tail_to(), Some(scratch.home.join("log")));
        assert_eq!(config.exec().grace.as_secs(), 1);
        // A pack of it is written: it is to be trusted anew.
        scratch.write("theirs.toml", "");
        let mut config = load(&scratch.around(""), &[], &exactly).unwrap();
        assert_eq!(config.inert().len(), 3);
        config.explain_trust(&|path| (path == canonical).then(|| trusted.clone()));
        let (what, hint) = crate::untrusted(&config).unwrap();
        assert!(
            what.starts_with("backstop.toml is trusted no longer (theirs.toml has changed): `exec.grace`"),
            "{what}"
        );
        assert!(hint.contains("`backstop trust`"), "{hint}");
        std::fs::remove_file(scratch.home.join("theirs.toml")).unwrap();
        assert_eq!(load(&scratch.around(""), &[], &exactly).unwrap().inert(), []);
        // And the file itself.
        scratch.write("backstop.toml", "[rules]\npacks = [\"other.toml\"]\n");
        assert_eq!(load(&scratch.around(""), &[], &exactly).unwrap().inert().len(), 1);
    }

    #[test]
    fn trust_is_asked_only_where_it_is_needed() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", "log.format = \"json\"\n");
        let asked = std::cell::Cell::new(0);
        let count = |_: &Path, _: &str| {
            asked.set(asked.get() + 1);
            false
        };
        load(&scratch.around(""), &[], &count).unwrap();
        assert_eq!(asked.get(), 0);
    }

    #[test]
    fn names_to_mask_add_up_over_the_layers() {
        let scratch = Scratch::new();
        scratch.write(".config/backstop/config.toml", "redact.env = [\"MINE\", \"BOTH\"]\n");
        scratch.write("backstop.toml", "redact.env = [\"BOTH\", \"THEIRS\"]\n");
        let flags = [flag("--redact", "redact.env", "ONE"), flag("--redact", "redact.env", "TWO")];
        let config = load(&scratch.around(""), &flags, NEVER).unwrap();
        assert_eq!(config.redact_env(), ["MINE", "BOTH", "THEIRS", "ONE", "TWO"]);
        assert!(
            shown(&config, "redact.env").starts_with("[\"MINE\", \"BOTH\", \"THEIRS\", \"ONE\", \"TWO\"]")
        );
    }

    #[test]
    fn flags_of_a_list_add_up_and_beat_files() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", "rules.packs = [\"file.toml\"]\n");
        let flags = [flag("--rules", "rules.packs", "a.toml"), flag("--rules", "rules.packs", "~/b.toml")];
        let config = load(&scratch.around(""), &flags, ALWAYS).unwrap();
        assert_eq!(config.packs(), [scratch.home.join("a.toml"), scratch.home.join("b.toml")]);
        let flags =
            [flag("--delay", "profile.tool.delays", "1s"), flag("--delay", "profile.tool.delays", "2s")];
        let config = load(&scratch.around(""), &flags, ALWAYS).unwrap();
        assert_eq!(shown(&config, "profile.tool.delays"), "[\"1s\", \"2s\"] --delay");
    }

    #[test]
    fn a_link_in_the_project_is_not_read_wherever_it_leads() {
        let scratch = Scratch::new();
        scratch.write("outside.toml", "exec.timeout = \"1s\"\n");
        scratch.write("work/inside.toml", "exec.timeout = \"1s\"\n");
        scratch.folder("work/.git");
        for to in ["../outside.toml", "nowhere.toml", "inside.toml", "/dev/zero"] {
            let at = scratch.home.join("work/backstop.toml");
            let _ = std::fs::remove_file(&at);
            std::os::unix::fs::symlink(to, &at).unwrap();
            let error = message(load(&scratch.around("work"), &[], ALWAYS));
            assert_eq!(error, "backstop.toml: a link, or in a folder that is one; it is not read", "{to}");
        }
    }

    #[test]
    fn what_is_another_users_is_not_read_unless_the_user_calls_it_safe() {
        let scratch = Scratch::new();
        scratch.folder("work/.git");
        scratch.write("work/backstop.toml", "log.format = \"json\"\n");
        let mut around = scratch.around("work");
        let us = around.users[0];
        let format = |around: &Surroundings<'_>| {
            let config = load(around, &[], ALWAYS).unwrap();
            assert!(config.problems().is_none());
            (config.log_format().name(), crate::untrusted(&config))
        };
        assert_eq!(format(&around), ("json", None));
        around.users = vec![us + 1];
        let (name, warning) = format(&around);
        let (what, hint) = warning.unwrap();
        assert_eq!(name, "human");
        assert_eq!(
            what,
            format!(
                "backstop.toml is ignored: {} belongs to another user (uid {us})",
                scratch.home.join("work/backstop.toml").display()
            )
        );
        assert!(hint.contains("backstop config set --user trust.safe_directories "), "{hint}");
        // The project's own file has no say.
        scratch.write("work/backstop.toml", "log.format = \"json\"\ntrust.safe_directories = [\"*\"]\n");
        assert_eq!(format(&around).0, "human");
        assert!(trust::candidate(&around).is_err());
        for safe in ["*".to_owned(), "~/work".to_owned(), scratch.home.join("*").display().to_string()] {
            scratch.write(".config/backstop/config.toml", format!("trust.safe_directories = [\"{safe}\"]\n"));
            assert_eq!(format(&around), ("json", None), "{safe}");
            assert!(trust::candidate(&around).is_ok());
        }
        // The user who typed `sudo` counts as well.
        scratch.write(".config/backstop/config.toml", "");
        around.users = vec![us + 1, us];
        assert_eq!(format(&around).0, "json");
    }

    #[test]
    fn a_folder_with_a_strange_name_stays_on_one_line() {
        let scratch = Scratch::new();
        scratch.folder("a\x1b[31m\nb/.git");
        scratch.write("a\x1b[31m\nb/backstop.toml", "x = 1\n");
        scratch.folder("a\x1b[31m\nb/src");
        let error = message(load(&scratch.around("a\x1b[31m\nb/src"), &[], ALWAYS));
        assert!(error.ends_with("a\\e[31m b/backstop.toml:1:1: unknown key `x`"), "{error}");
        assert!(!error.contains(['\x1b', '\n']));
    }

    #[test]
    fn a_folder_reached_by_a_link_is_inside() {
        let scratch = Scratch::new();
        scratch.write("work/backstop.toml", "exec.timeout = \"1s\"\n");
        std::os::unix::fs::symlink("work", scratch.home.join("alias")).unwrap();
        assert!(
            shown(&load(&scratch.around("alias"), &[], ALWAYS).unwrap(), "exec.timeout").starts_with("1s")
        );
    }

    #[test]
    fn files_that_are_none_too_large_or_no_text() {
        let scratch = Scratch::new();
        scratch.folder("backstop.toml");
        assert_eq!(message(load(&scratch.around(""), &[], ALWAYS)), "backstop.toml: not a file");
        std::fs::remove_dir(scratch.home.join("backstop.toml")).unwrap();
        scratch.write("backstop.toml", vec![b'#'; FILE_BYTES_MAX as usize + 1]);
        let error = message(load(&scratch.around(""), &[], ALWAYS));
        assert_eq!(error, "backstop.toml: larger than 1048576 bytes, which no config is");
        scratch.write("backstop.toml", b"\xff");
        let error = message(load(&scratch.around(""), &[], ALWAYS));
        assert_eq!(error, "backstop.toml:1:1: the file is not UTF-8 here");
        scratch.write("backstop.toml", b"\xef\xbb\xbfexec.timeout = \"1s\"\r\n");
        assert_eq!(
            shown(&load(&scratch.around(""), &[], ALWAYS).unwrap(), "exec.timeout"),
            "1s backstop.toml:1"
        );
        scratch.write("backstop.toml", b"");
        assert!(load(&scratch.around(""), &[], ALWAYS).is_ok());
    }

    #[test]
    fn a_file_that_everybody_may_write_is_noted() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", "");
        let path = scratch.home.join("backstop.toml");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o646)).unwrap();
        let config = load(&scratch.around(""), &[], ALWAYS).unwrap();
        assert_eq!(config.notes(), ["backstop.toml can be written by everybody: `chmod o-w` it"]);
    }

    #[test]
    fn problems_of_all_layers_are_told_together() {
        let scratch = Scratch::new();
        scratch.write(".config/backstop/config.toml", "exec.timeout = \"x\"\n");
        scratch.write("work/backstop.toml", "a = 1\n[exec]\nidle = true\ndrain = 3\n");
        let env = |name: &str| match name {
            "BACKSTOP_EXEC_GRACE" => Some("soon".to_owned()),
            "BACKSTOP_RULES_PACKS" => Some("a.toml".to_owned()),
            "BACKSTOP_EXEC_DRAIN" => Some(String::new()),
            _ => None,
        };
        let mut around = scratch.around("work");
        around.env = &env;
        let flags = [
            flag("--on", "profile.command.on.timout", "halt"),
            flag("--attempts", "profile.command.attempts", "0"),
        ];
        let config = load(&around, &[], ALWAYS).unwrap();
        let error = config.problems().unwrap();
        let lines: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
        assert!(lines[0].ends_with("config.toml:1:16: `exec.timeout`: `x` is not a duration: write seconds, or a number and a unit, such as 30, 500ms, 10m, 1h30m or 2d"), "{}", lines[0]);
        assert_eq!(
            lines[1..],
            [
                "backstop.toml:1:1: unknown key `a`",
                "backstop.toml:3:8: `exec.idle` is a duration such as 30 (seconds) or \"10m\", or \"none\": found `true`",
                "BACKSTOP_EXEC_GRACE: `exec.grace`: `soon` is not a duration: write seconds, or a number and a unit, such as 30, 500ms, 10m, 1h30m or 2d",
                "BACKSTOP_RULES_PACKS: `rules.packs` is a list, which a variable cannot set",
            ]
        );
        // What can be read counts, and the rest is as if it were not there.
        assert_eq!(shown(&config, "exec.drain"), "3 backstop.toml:4");
        for key in ["exec.timeout", "exec.idle", "exec.grace"] {
            assert_eq!(config.origin(key), Some(&Origin::Default), "{key}");
        }
        // A flag is an error of its own.
        let error = load(&around, &flags, ALWAYS).unwrap_err();
        let lines: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "--on: unknown reason `timout`",
                "--attempts: `profile.command.attempts` is a number from 1 to 100: found `0`",
            ]
        );
        assert!(error.hints().contains(&"--on: did you mean `profile.command.on.timeout`?".to_owned()));
    }
}
