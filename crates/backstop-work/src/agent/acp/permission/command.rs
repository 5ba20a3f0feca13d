//! The paths in a command: where each program is, what it is told to work on, where its output
//! goes.
//!
//! Words are split as a shell splits them ([`backstop_classify::all_calls`]); text that is no path
//! (the pattern of `grep`, the script of `sed`, the words of `echo`, a here-document) is let be.
//! It is no sandbox: what a script or a program does, its words do not tell.

use super::ground::Ground;
use backstop_classify::{Call, all_calls};
use std::path::{Path, PathBuf};

/// Where programs are, whoever they belong to, and what they are built with.
const PROGRAMS: &[&str] =
    &["/bin", "/sbin", "/usr", "/opt", "/lib", "/lib64", "/nix", "/Library", "/System", "/Applications"];
/// Programs that only read what they name.
const READERS: &[&str] = &[
    "cat", "head", "tail", "less", "more", "ls", "stat", "file", "wc", "du", "tree", "readlink", "realpath",
    "which", "nm", "ldd", "otool", "objdump", "readelf", "strings", "diff", "cmp", "grep", "egrep", "fgrep",
    "zgrep", "rg", "ag",
];
/// Programs whose words are text or are only asked about.
const TALKERS: &[&str] = &["echo", "printf", "tr", "expr", "test", "[", "[["];
/// Programs that run what they read: with them, the words of a talker may be paths.
const LISTERS: &[&str] = &["xargs", "parallel"];
/// Programs of which a single slash is a separator.
const SEPARATORS: &[&str] = &["cut", "sort", "awk", "gawk", "mawk", "column", "paste", "basename"];
/// Programs whose first operand is a pattern or a script, with their options that take a value.
const PATTERNS: &[(&str, &[&str])] = &[
    ("grep", GREP_VALUED),
    ("egrep", GREP_VALUED),
    ("fgrep", GREP_VALUED),
    ("zgrep", GREP_VALUED),
    ("rg", &["-A", "-B", "-C", "-m", "-g", "-t", "-T", "-j", "--glob", "--type", "--max-count"]),
    ("ag", &["-A", "-B", "-C", "-m", "-G"]),
    ("sed", &[]),
    ("gsed", &[]),
    ("awk", &["-v", "-F"]),
    ("gawk", &["-v", "-F"]),
    ("mawk", &["-v", "-F"]),
];
const GREP_VALUED: &[&str] = &["-A", "-B", "-C", "-m", "-d", "-D"];
/// Options with the pattern or the script of such a program.
const PATTERN_OPTIONS: &[&str] = &["-e", "--regexp", "--expression"];
/// Programs that run code that they are given as an argument, and the options for it.
const CODE: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("python3", &["-c"]),
    ("node", &["-e", "-p", "-pe", "--eval", "--print"]),
    ("bun", &["-e", "--eval"]),
    ("deno", &["eval"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-pie", "-0pe"]),
    ("ruby", &["-e", "-ne", "-pe"]),
    ("php", &["-r"]),
];
/// Options of `find` with a pattern.
const FIND_PATTERNS: &[&str] =
    &["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"];
/// What makes `find` more than a reader.
const FIND_CHANGES: &[&str] =
    &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fls", "-fprintf"];
/// Programs whose words are often paths of a server or of a container.
const ADDRESSES: &[&str] = &[
    "git",
    "gh",
    "glab",
    "curl",
    "wget",
    "http",
    "docker",
    "podman",
    "docker-compose",
    "kubectl",
    "redis-cli",
    "psql",
    "node",
    "jq",
    "yq",
];
/// What is in the name of an option that says where something is written.
const WRITES: &[&str] = &["out", "dest", "target", "dir", "install", "prefix"];
/// Stands before the text of a here-document.
const HERE: &str = "<<<";

/// The first place outside of the folders that a command names. `from` is where it begins.
/// `allowed` gets the paths outside that are none of its business: its programs, what it only
/// reads.
pub(super) fn outside(
    ground: &Ground,
    from: &Path,
    command: &str,
    allowed: &mut Vec<PathBuf>,
) -> Option<PathBuf> {
    let all = all_calls(command);
    if !all.is_whole {
        ground.is_cut.set(true);
    }
    let lists = all.calls.iter().any(|call| LISTERS.contains(&call.name.as_str()));
    let mut line = Line { ground, folder: from.to_owned(), targets: targets(command), lists, allowed };
    let comment = |call: &&Call| !call.typed.starts_with('#');
    let mut calls = all.calls.iter().filter(comment).peekable();
    while let Some(call) = calls.next() {
        let next = calls.peek().map(|next| next.typed.as_str());
        let outside = line.program(call).or_else(|| line.words(call, next));
        if outside.is_some() {
            return outside;
        }
        if matches!(call.name.as_str(), "cd" | "pushd" | "popd") {
            match line.gone_to(call, from) {
                Ok(folder) => line.folder = folder,
                Err(outside) => return Some(outside),
            }
        }
    }
    None
}

/// A command line on the way through it.
struct Line<'g> {
    ground: &'g Ground,
    /// Where it is.
    folder: PathBuf,
    /// The words to which output goes.
    targets: Vec<String>,
    lists: bool,
    allowed: &'g mut Vec<PathBuf>,
}

impl Line<'_> {
    /// A program that is run by its path, outside.
    fn program(&mut self, call: &Call) -> Option<PathBuf> {
        if !call.typed.contains('/') || call.typed.contains("://") {
            return None;
        }
        let full = self.ground.outside(&self.folder, &call.typed)?;
        if is_program(&full) || is_below_programs(&full) {
            self.allowed.push(full);
            return None;
        }
        Some(full)
    }

    /// What a call is told, outside. `next` is the program after it.
    fn words(&mut self, call: &Call, next: Option<&str>) -> Option<PathBuf> {
        let name = call.name.as_str();
        // The words of a wrapper are those of the program that it runs, but for the first few.
        let is_own = |word: &&String| {
            !call.is_wrapper || Some(word.as_str()) != next && !word.contains(char::is_whitespace)
        };
        let words: Vec<&String> = call.words.iter().take_while(is_own).collect();
        let valued = PATTERNS.iter().find(|(program, _)| *program == name).map(|(_, valued)| *valued);
        let has_option = words.iter().any(|word| PATTERN_OPTIONS.contains(&word.as_str()));
        let mut pattern_is_next = valued.is_some() && !has_option;
        let code = CODE.iter().find(|(program, _)| name.starts_with(program)).map(|(_, options)| *options);
        let reads = READERS.contains(&name) || name == "find" && !has(&words, FIND_CHANGES);
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).map_or("", |before| words[before].as_str());
            let is_target = self.targets.contains(word);
            let is_here = before == HERE;
            let is_pattern = valued.is_some_and(|valued| {
                let is_operand = !word.is_empty() && !word.starts_with('-') && !valued.contains(&before);
                PATTERN_OPTIONS.contains(&before) || is_operand && std::mem::take(&mut pattern_is_next)
            });
            let is_code = code.is_some_and(|options| is_here || options.contains(&before));
            if !is_target {
                if is_code || is_pattern {
                    let runs = is_code || name.ends_with("awk") || name.ends_with("sed");
                    if let Some(outside) = self.code(word, name.ends_with("sed")).filter(|_| runs) {
                        return Some(outside);
                    }
                    continue;
                }
                let is_talk = TALKERS.contains(&name) && !self.lists;
                let is_separator = word.as_str() == "/" && SEPARATORS.contains(&name);
                let is_sought = name == "find" && FIND_PATTERNS.contains(&before);
                if is_here || is_talk || is_separator || is_sought {
                    continue;
                }
            }
            let Some((flag, path)) = path_in(word) else { continue };
            let is_bare_slash = path == "/" && flag.is_some() && SEPARATORS.contains(&name);
            let is_address = ADDRESSES.contains(&name) && !["-C", "-o", "-O"].contains(&before);
            let may_be_text = path.starts_with('/') && is_address || is_text(path);
            if is_bare_slash || may_be_text && !is_target && !self.ground.is_plausible(path) {
                continue;
            }
            let Some(full) = self.ground.outside(&self.folder, path) else { continue };
            let is_read = (reads || flag.is_some_and(only_names)) && is_below_programs(&full);
            // A link of the folder's own to a program: `.venv/bin/python`.
            let parent = Path::new(path).parent().filter(|_| !path.starts_with('/'));
            let is_own_link = parent.is_some_and(|parent| {
                is_program(&full) && self.ground.outside(&self.folder, &parent.to_string_lossy()).is_none()
            });
            if is_target || !is_read && !is_own_link {
                return Some(full);
            }
            self.allowed.push(full);
        }
        None
    }

    /// The first path in the texts of a piece of code.
    fn code(&self, code: &str, is_sed: bool) -> Option<PathBuf> {
        let texts = code.split(['"', '\'', '`']).skip(1).step_by(2);
        // `w` of sed writes to a file.
        let written = code.split("w ").skip(1).filter(|text| is_sed && text.starts_with('/'));
        let mut words = texts.chain(written).flat_map(str::split_whitespace);
        words.find_map(|word| {
            let word = word.trim_end_matches([',', ';', ')', '}']);
            let leads_out = word.starts_with("../") || word.starts_with("~/");
            let leads_out = leads_out || word.starts_with('/') && self.ground.is_plausible(word);
            self.ground.outside(&self.folder, word).filter(|_| leads_out)
        })
    }

    /// Where the command is after a `cd`; where that is outside, so is the rest of it.
    fn gone_to(&self, call: &Call, from: &Path) -> Result<PathBuf, PathBuf> {
        let mut words = call.words.iter();
        match words.find(|word| !word.starts_with('-') || word.as_str() == "-").map(String::as_str) {
            None if call.name == "cd" => Err(PathBuf::from("~")),
            None | Some("-") => Ok(from.to_owned()),
            // Nobody can tell, and what it names later is looked at all the same.
            Some(word) if word.contains('$') && !word.starts_with("$PWD") => Ok(from.to_owned()),
            Some(word) => Ok(self.ground.resolve(&self.folder, word)),
        }
    }
}

fn has(words: &[&String], some: &[&str]) -> bool {
    words.iter().any(|word| some.contains(&word.as_str()))
}

fn is_below_programs(path: &Path) -> bool {
    PROGRAMS.iter().any(|folder| path.starts_with(folder))
}

/// Whether this is where programs are: `~/.cargo/bin/cargo`.
fn is_program(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    parent.is_some_and(|name| ["bin", "sbin", ".bin"].iter().any(|bin| name == *bin))
}

/// Whether a word is more likely a text than a path.
fn is_text(word: &str) -> bool {
    let leads_out = word.starts_with("..") || word.starts_with('~') || word.starts_with("$HOME");
    word.starts_with("//") || word.contains(char::is_whitespace) && !leads_out
}

/// Whether an option only names something that is read: `-I/usr/include`, `--with-ssl=/usr`.
fn only_names(flag: &str) -> bool {
    let is_short = flag.len() == 2 && flag.starts_with('-');
    let flag_of_compiler = ["-I", "-L", "-F", "-B"].contains(&flag);
    let lower = flag.to_ascii_lowercase();
    let writes = lower == "of" || WRITES.iter().any(|writes| lower.contains(writes));
    flag_of_compiler || !is_short && !writes
}

/// The path that a word of a command is or has: `x`, `--out=x`, `-ox`, `of=x`, `@x`, `x:y`; with
/// the option before it.
fn path_in(word: &str) -> Option<(Option<&str>, &str)> {
    if let Some((scheme, rest)) = word.split_once("://") {
        return scheme.ends_with("file").then(|| (None, rest.strip_prefix("localhost").unwrap_or(rest)));
    }
    let (flag, path) = match word.split_once('=') {
        Some((flag, value)) if !flag.contains('/') && !flag.contains(char::is_whitespace) => {
            (Some(flag), value)
        }
        _ if word.starts_with('-') => {
            let value = word.char_indices().nth(2).map_or("", |(at, _)| &word[at..]);
            (Some(&word[..word.len() - value.len()]), value)
        }
        _ => (None, word),
    };
    let is_glued = flag.is_some_and(|flag| flag.starts_with('-')) && !word.contains('=');
    if is_glued && !path.starts_with(['/', '~', '.', '$']) {
        return None;
    }
    let path = path.trim_start_matches(['@', '[']).trim_end_matches([',', ']']);
    let path = path.split(':').next().unwrap_or_default();
    (!path.is_empty() && !path.starts_with('-')).then_some((flag, path))
}

/// The words to which a command's output goes, as they are written after `>`.
fn targets(command: &str) -> Vec<String> {
    let after = command.split('>').skip(1);
    let word = |text: &str| {
        let text = text.trim_start_matches(['|', '&', ' ', '\t']);
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
        match quote {
            Some(quote) => text[1..].split(quote).next().unwrap_or_default().to_owned(),
            None => {
                let is_end = |c: char| c.is_whitespace() || ";|&<>()'\"".contains(c);
                text.split(is_end).next().unwrap_or_default().to_owned()
            }
        }
    };
    after.map(word).filter(|word| !word.is_empty()).collect()
}
