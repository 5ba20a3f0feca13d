//! Which programs a command line runs, wrappers looked through.
//!
//! It splits words the way a shell does, well enough to name programs. It must not run, expand or
//! trust anything.

mod inner;
mod variables;

use inner::Inner;
use variables::Variables;

/// Command lines longer than this are read up to here: for what their output says, the beginning is
/// enough.
const COMMAND_BYTES_MAX: usize = 16 << 10;
/// The same for what they run, which is more than one argument of a program can hold.
const CALLS_BYTES_MAX: usize = 256 << 10;
/// How many programs of a line are looked at.
const CALLS_MAX: usize = 4096;
/// How deep `sh -c 'sh -c …'` is followed.
const DEPTH_MAX: usize = 6;

/// Programs that run the command that follows them, with how many arguments of their own come
/// first.
const WRAPPERS: &[(&str, usize)] = &[
    ("sudo", 0),
    ("doas", 0),
    ("env", 0),
    ("time", 0),
    ("nice", 0),
    ("ionice", 0),
    ("nohup", 0),
    ("timeout", 1),
    ("gtimeout", 1),
    ("stdbuf", 0),
    ("setsid", 0),
    ("xargs", 0),
    ("exec", 0),
    ("command", 0),
    ("npx", 0),
    ("bunx", 0),
    ("pnpx", 0),
    ("uvx", 0),
    ("pipx", 1),
    ("strace", 0),
    ("watch", 0),
    ("chroot", 1),
    ("catchsegv", 0),
    ("unbuffer", 0),
    ("faketime", 1),
    ("taskset", 1),
    ("flock", 1),
    ("cross-env", 0),
    ("dotenv", 0),
];

/// Options of wrappers whose value is the next word.
const VALUED: &[(&str, &[&str])] = &[
    ("sudo", &["-u", "-g", "-C", "-h", "-p", "-D", "-R", "-T", "-U", "-r", "-t"]),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "-C"]),
    ("timeout", &["-s", "-k"]),
    ("gtimeout", &["-s", "-k"]),
    ("nice", &["-n"]),
    ("ionice", &["-c", "-n"]),
    ("flock", &["-w", "-E"]),
    ("time", &["-f", "-o", "--format", "--output"]),
    ("npx", &["-p", "--package", "-w", "--workspace"]),
    ("xargs", &["-n", "-I", "-P", "-L", "-d", "-s", "-a"]),
    ("strace", &["-e", "-o"]),
    ("watch", &["-n"]),
];

/// Programs that run another with a word or two of their own: `poetry run x`, `bundle exec x`.
const RUNNERS: &[(&str, &[&str])] = &[
    ("poetry", &["run"]),
    ("uv", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("bundle", &["exec"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx", "run"]),
    ("npm", &["exec", "x"]),
    ("bun", &["x"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("micromamba", &["run"]),
    ("pixi", &["run", "exec"]),
    ("coverage", &["run"]),
    ("mise", &["exec", "x"]),
    ("asdf", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("nodenv", &["exec"]),
    ("goenv", &["exec"]),
    ("jenv", &["exec"]),
    ("volta", &["run"]),
    ("fnm", &["exec"]),
    ("foreman", &["run"]),
    ("honcho", &["run"]),
    ("busybox", &[]),
    ("backstop", &["exec"]),
];

/// Options of `ssh` whose value is the next word.
const SSH_VALUED: &[&str] = &[
    "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-Q", "-R",
    "-S", "-W", "-w",
];

/// Stands before the text of a here-document or here-string among the words of its command.
const HERE: &str = "<<<";

/// One program that a command line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The base name: `curl` for `/usr/bin/curl`.
    pub name: String,
    /// The program as it was typed.
    pub typed: String,
    /// The words that follow it.
    pub words: Vec<String>,
    /// Whether it only runs the command that follows it: `sudo`, `timeout`, `sh -c`.
    pub is_wrapper: bool,
}

/// Every program that a command line runs, as far as it was looked at.
#[derive(Debug)]
pub struct Calls {
    /// Wrappers included, in the order in which they are written.
    pub calls: Vec<Call>,
    /// Whether all of the line was looked at. What is too long, too deep or too much is not.
    pub is_whole: bool,
}

/// What a command line runs: each program by its base name, with the words that follow it. Wrappers
/// are looked through, and are calls of their own.
pub fn calls(command: &str) -> Vec<(String, Vec<String>)> {
    all_calls(command).calls.into_iter().map(|call| (call.name, call.words)).collect()
}

/// Every program that a command line runs.
pub fn all_calls(command: &str) -> Calls {
    let mut programs = Programs { calls: Some(Vec::new()), ..Programs::default() };
    let read = &command[..command.floor_char_boundary(CALLS_BYTES_MAX)];
    programs.is_cut = read.len() < command.len();
    programs.read_script(read, 0);
    Calls { calls: programs.calls.unwrap_or_default(), is_whole: !programs.is_cut }
}

/// The words of a command line that is one simple command.
#[cfg(test)]
pub(crate) fn words(command: &str) -> Vec<String> {
    split(command).concat()
}

fn cut(command: &str) -> &str {
    &command[..command.floor_char_boundary(COMMAND_BYTES_MAX)]
}

/// Wrappers that end with the exit code of the one command that they run.
const TRANSPARENT: &[&str] = &[
    "sudo", "doas", "env", "time", "nice", "ionice", "nohup", "timeout", "gtimeout", "stdbuf", "exec",
    "command", "busybox",
];
/// What a shell's script contains where it is more than one plain command.
const OPERATORS: &[char] = &[';', '|', '&', '\n', '(', ')', '`', '{', '}', '!', '$'];

/// The one program whose exit code a command line ends with, and its arguments. `None` where
/// several run, or where that cannot be told.
pub(crate) fn only_call(words: &[String]) -> Option<(String, Vec<String>)> {
    only_call_within(words, 0)
}

fn only_call_within(words: &[String], depth: usize) -> Option<(String, Vec<String>)> {
    let mut at = words.iter().take_while(|word| is_assignment(word)).count();
    loop {
        let name = base(words.get(at)?);
        at += 1;
        let rest = &words[at..];
        if SHELLS.contains(&name) && depth < DEPTH_MAX {
            let [flag, script] = rest else { return None };
            let is_script = flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
            if !is_script || unquoted(script).contains(OPERATORS) {
                return None;
            }
            let [only] = split(cut(script)).try_into().ok()?;
            return only_call_within(&only, depth + 1);
        }
        if !TRANSPARENT.contains(&name) {
            return Some((name.to_owned(), rest.to_vec()));
        }
        let own = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name).map_or(0, |(_, own)| *own);
        at += options_of(name, rest) + own;
    }
}

/// A script without what is quoted in it. A `$` between double quotes stays: it may run something.
fn unquoted(script: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    let mut chars = script.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '\\') => {
                chars.next();
            }
            (Some('"'), '$' | '`') => out.push(c),
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, c) => out.push(c),
        }
    }
    out
}

/// The programs of a command line, by base name, and all of its words.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Programs {
    /// Base names, in the order in which they run, wrappers included.
    pub(crate) names: Vec<String>,
    /// Every word.
    pub(crate) words: Vec<String>,
    /// Each program with the words that follow it, where somebody asked.
    calls: Option<Vec<Call>>,
    /// Whether something was left out.
    is_cut: bool,
    variables: Variables,
}

impl Programs {
    /// Reads a command line.
    pub(crate) fn read(command: &str) -> Self {
        let mut programs = Self::default();
        programs.read_script(cut(command), 0);
        programs
    }

    /// Whether one of these runs. A name of two words asks for the subcommand too: `cargo test`.
    pub(crate) fn runs(&self, names: &[impl AsRef<str>]) -> bool {
        names.iter().any(|name| self.names.iter().any(|known| known == name.as_ref()))
    }

    /// Whether one of these words is there.
    pub(crate) fn has_word(&self, words: &[impl AsRef<str>]) -> bool {
        words.iter().any(|word| self.words.iter().any(|known| known == word.as_ref()))
    }

    /// Whether what is at this depth is to be looked at. Notes what is not.
    fn goes_into(&mut self, depth: usize) -> bool {
        let is_full = self.calls.as_ref().is_some_and(|calls| calls.len() >= CALLS_MAX);
        let goes = depth < DEPTH_MAX && !is_full;
        self.is_cut |= !goes;
        goes
    }

    fn read_script(&mut self, script: &str, depth: usize) {
        let mut before: Option<Vec<String>> = None;
        for words in split(&with_names(script)) {
            if self.calls.is_some() {
                let words = self.variables.expand(&words);
                if self.calls.as_ref().is_some_and(|calls| calls.len() >= CALLS_MAX) {
                    self.is_cut = true;
                    return;
                }
                self.variables.learn(&words);
                self.read_words(&words, depth);
                self.read_substitutions(&words, depth);
                self.read_script_on_input(&words, before.as_deref(), depth);
                before = Some(words);
            } else {
                self.read_words(&words, depth);
            }
            self.words.extend(words);
        }
    }

    fn read_words(&mut self, words: &[String], depth: usize) {
        let mut at = 0;
        loop {
            // Assignments and the words of the shell's own grammar come before a program.
            while words.get(at).is_some_and(|w| is_assignment(w) || GRAMMAR.contains(&w.as_str())) {
                at += 1;
            }
            let Some(word) = words.get(at) else { return };
            let name = base(word);
            at += 1;
            self.names.push(name.to_owned());
            let rest = &words[at..];
            if let Some(calls) = &mut self.calls {
                // `curl a --next b` is two requests, each with options of its own.
                let is_next = |word: &String| name == "curl" && matches!(word.as_str(), "--next" | "-:");
                for words in rest.split(is_next) {
                    let (name, typed) = (name.to_owned(), word.clone());
                    calls.push(Call { name, typed, words: words.to_vec(), is_wrapper: false });
                }
                if self.read_inner_command(&words[at - 1..], depth) {
                    return;
                }
            }
            if let Some(sub) = rest.iter().find(|w| !w.starts_with(['-', '+'])) {
                self.names.push(format!("{name} {sub}"));
            }
            if SHELLS.contains(&name) {
                if let Some(c) =
                    rest.iter().position(|w| w.starts_with('-') && !w.starts_with("--") && w.ends_with('c'))
                    && let Some(script) = rest.get(c + 1)
                    && self.goes_into(depth)
                {
                    self.last_is_wrapper();
                    self.read_script(script, depth + 1);
                }
                return;
            }
            if name.starts_with("python") || name == "pypy3" {
                if let Some(m) = rest.iter().position(|w| w == "-m")
                    && let Some(module) = rest.get(m + 1)
                {
                    self.names.push(base(module).to_owned());
                    if let Some(sub) = rest.get(m + 2) {
                        self.names.push(format!("{module} {sub}"));
                    }
                    self.last_is_wrapper();
                    if let Some(calls) = &mut self.calls {
                        // A module has a path: `scripts.deploy` is `scripts/deploy`.
                        let typed = module.replace('.', "/");
                        let name =
                            if module == "awscli" { "aws".to_owned() } else { base(module).to_owned() };
                        calls.push(Call { name, typed, words: rest[m + 2..].to_vec(), is_wrapper: false });
                    }
                }
                return;
            }
            if let Some((_, own)) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) {
                self.last_is_wrapper();
                at += options_of(name, rest) + own;
                // `flock -w 1 file cmd`, `nice -n 10 cmd`: an option's value is a number or a file
                // that is no program.
                while words.get(at).is_some_and(|w| w.starts_with('-') || w.parse::<f64>().is_ok()) {
                    at += 1;
                }
                continue;
            }
            if let Some((_, subs)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
                if subs.is_empty() {
                    self.last_is_wrapper();
                    at += options(rest);
                    continue;
                }
                if let Some(sub) = inner::subcommand_at(rest, subs) {
                    self.last_is_wrapper();
                    at += sub + 1;
                    let own = words[at..].iter().position(|w| w == "--").filter(|_| name == "backstop");
                    let own = own.map_or_else(|| options(&words[at..]), |own| own + 1);
                    // `conda run -n x python a.py`: where an option may take a value, the program
                    // may be the word after it.
                    if self.calls.is_some() && name != "backstop" && self.goes_into(depth) {
                        for other in inner::other_starts(&words[at..]) {
                            self.read_words(&words[at + other..], depth + 1);
                        }
                    }
                    at += own;
                    continue;
                }
            }
            return;
        }
    }

    /// Notes that the program read last only runs the command that follows it.
    fn last_is_wrapper(&mut self) {
        if let Some(last) = self.calls.as_mut().and_then(|calls| calls.last_mut()) {
            last.is_wrapper = true;
        }
    }

    /// Reads the command that `ssh`, `eval`, `find -exec`, `su -c` or `docker run` runs. Only for
    /// calls: what runs on another machine says nothing about the output that rules look at.
    /// Returns whether there was one that replaces the rest of the words.
    fn read_inner_command(&mut self, words: &[String], depth: usize) -> bool {
        let (name, rest) = (base(&words[0]), &words[1..]);
        match name {
            "ssh" | "autossh" => {
                let command = rest.get(inner::skip_options(rest, SSH_VALUED) + 1..).unwrap_or_default();
                let command = command.strip_prefix(&["--".to_owned()]).unwrap_or(command);
                if !command.is_empty() && self.goes_into(depth) {
                    self.last_is_wrapper();
                    self.read_script(&command.join(" "), depth + 1);
                }
                true
            }
            "eval" => {
                if self.goes_into(depth) {
                    self.last_is_wrapper();
                    self.read_script(&rest.join(" "), depth + 1);
                }
                true
            }
            "find" => {
                let runs = |w: &String| matches!(w.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
                if let Some(at) = rest.iter().position(runs)
                    && self.goes_into(depth)
                {
                    self.read_words(&rest[at + 1..], depth + 1);
                }
                true
            }
            _ => {
                let commands = inner::commands(name, rest);
                if commands.is_empty() || !self.goes_into(depth) {
                    return false;
                }
                // What a cluster runs counts beside the fact that it runs there.
                let is_wrapper = !inner::CLUSTERS.contains(&name);
                if is_wrapper {
                    self.last_is_wrapper();
                }
                for command in commands {
                    match command {
                        Inner::Script(script) => self.read_script(&script, depth + 1),
                        Inner::Words(words) => self.read_words(&words, depth + 1),
                        Inner::Tool(name, words) => {
                            let call = Call { typed: name.clone(), name, words, is_wrapper: false };
                            self.calls.get_or_insert_default().push(call);
                        }
                    }
                }
                is_wrapper
            }
        }
    }

    /// Reads the script that a shell gets on its standard input.
    fn read_script_on_input(&mut self, words: &[String], before: Option<&[String]>, depth: usize) {
        let at = words.iter().take_while(|word| is_assignment(word)).count();
        let Some(name) = words.get(at) else { return };
        if let Some(script) = inner::script_on_input(base(name), &words[at + 1..], before)
            && self.goes_into(depth)
        {
            self.last_is_wrapper();
            self.read_script(&script, depth + 1);
        }
    }

    /// Reads what a shell would run inside a word: `"$(curl …)"`.
    fn read_substitutions(&mut self, words: &[String], depth: usize) {
        // The script of `sh -c '…$(…)…'` was read already.
        if words.iter().any(|word| SHELLS.contains(&base(word)) || matches!(base(word), "ssh" | "eval")) {
            return;
        }
        for word in words {
            let inner = match (word.split_once("$("), word.split_once('`')) {
                (Some((_, inner)), _) => inner.rsplit_once(')').map_or(inner, |(inner, _)| inner),
                (None, Some((_, inner))) => inner.rsplit_once('`').map_or(inner, |(inner, _)| inner),
                (None, None) => continue,
            };
            if self.goes_into(depth) {
                self.read_script(inner, depth + 1);
            }
        }
    }
}

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ash", "ksh", "fish"];
const GRAMMAR: &[&str] =
    &["if", "then", "else", "elif", "do", "while", "until", "!", "{", "(", "for", "coproc"];

fn base(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    // `@biomejs/biome@1.9` and `vitest@latest` are run by npx under their own name.
    match name.find('@') {
        Some(n) if n > 0 => &name[..n],
        _ => name,
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn options(words: &[String]) -> usize {
    words.iter().take_while(|w| w.starts_with('-') || is_assignment(w)).count()
}

/// The options of a wrapper, with their values.
fn options_of(wrapper: &str, words: &[String]) -> usize {
    let valued = VALUED.iter().find(|(name, _)| *name == wrapper).map_or(&[][..], |(_, options)| *options);
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|w| w.starts_with('-') || is_assignment(w)) {
        // `sudo -iu me`: the last letter of a group may take a value.
        let last = word
            .chars()
            .next_back()
            .filter(|_| word.len() > 2 && word.starts_with('-') && !word.starts_with("--"));
        let is_group = |last: char| valued.iter().any(|option| option.len() == 2 && option.ends_with(last));
        at += if valued.contains(&word.as_str()) || last.is_some_and(is_group) { 2 } else { 1 };
    }
    at
}

/// A script in which `$(which curl)` is `curl`.
fn with_names(script: &str) -> std::borrow::Cow<'_, str> {
    if !["which ", "command -v ", "type -P "].iter().any(|asks| script.contains(asks)) {
        return script.into();
    }
    let mut out = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(at) = rest.find(['`', '$']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (open, close) = if from.starts_with('`') { ("`", '`') } else { ("$(", ')') };
        let asked =
            from.strip_prefix(open).and_then(|inner| inner.split_once(close)).and_then(|(inner, after)| {
                let asks = ["which ", "command -v ", "type -P "];
                let name = asks.iter().find_map(|asks| inner.trim().strip_prefix(asks))?.trim();
                (!name.contains(|c: char| c.is_whitespace() || "$`'\"".contains(c))).then_some((name, after))
            });
        match asked {
            Some((name, after)) => {
                out.push_str(name);
                rest = after;
            }
            None => {
                out.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    out.into()
}

/// Splits a script into simple commands, each into words.
fn split(script: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut in_word = false;
    let mut quote = None;
    // Here-documents whose text begins with the next line: the command, and what ends the text.
    let mut here: Vec<(usize, String)> = Vec::new();
    let mut chars = script.chars().peekable();
    let end_word = |word: &mut String, in_word: &mut bool, commands: &mut Vec<Vec<String>>| {
        if std::mem::take(in_word)
            && let Some(last) = commands.last_mut()
        {
            last.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '\\') => {
                in_word = true;
                word.extend(chars.next());
            }
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                in_word = true;
            }
            // `&>` redirects both streams.
            (None, '&') if chars.peek() == Some(&'>') => {}
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '`') => {
                end_word(&mut word, &mut in_word, &mut commands);
                if c == '\n' {
                    for (command, end) in here.drain(..) {
                        let text = here_text(&mut chars, &end);
                        commands[command].extend([HERE.to_owned(), text]);
                    }
                }
                if commands.last().is_some_and(|last| !last.is_empty()) {
                    commands.push(Vec::new());
                }
            }
            (None, '>' | '<') => {
                // What a stream is redirected to is no program, and its number no word: `2>&1`.
                if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
                    word.clear();
                    in_word = false;
                }
                end_word(&mut word, &mut in_word, &mut commands);
                if chars.next_if_eq(&'&').is_some() {
                    while chars.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
                }
                if c == '<' && chars.next_if_eq(&'<').is_some() {
                    if chars.next_if_eq(&'<').is_some() {
                        word.push_str(HERE);
                        in_word = true;
                        end_word(&mut word, &mut in_word, &mut commands);
                    } else if let Some(end) = here_end(&mut chars) {
                        here.push((commands.len() - 1, end));
                    }
                }
            }
            (None, c) if c.is_whitespace() => end_word(&mut word, &mut in_word, &mut commands),
            (None, c) => {
                in_word = true;
                word.push(c);
            }
        }
    }
    end_word(&mut word, &mut in_word, &mut commands);
    commands.retain(|words| !words.is_empty());
    commands
}

type Chars<'s> = std::iter::Peekable<std::str::Chars<'s>>;

/// The word that ends a here-document, from what follows `<<`.
fn here_end(chars: &mut Chars<'_>) -> Option<String> {
    chars.next_if_eq(&'-');
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    let mut end = String::new();
    while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !";|&<>()".contains(*c)) {
        if !matches!(c, '"' | '\'' | '\\') {
            end.push(c);
        }
    }
    (!end.is_empty()).then_some(end)
}

/// The text of a here-document, up to the line that ends it.
fn here_text(chars: &mut Chars<'_>, end: &str) -> String {
    let mut text = String::new();
    while chars.peek().is_some() {
        let line: String = chars.by_ref().take_while(|c| *c != '\n').collect();
        if line.trim() == end {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirected_stream_is_no_command() {
        for (script, want) in [
            ("cargo publish 2>&1", vec![vec!["cargo", "publish"]]),
            ("a 2>&1 | b", vec![vec!["a"], vec!["b"]]),
            ("a >&2; b", vec![vec!["a"], vec!["b"]]),
            ("a 2>&- & b", vec![vec!["a"], vec!["b"]]),
            ("a 2 >&1 c", vec![vec!["a", "2", "c"]]),
            ("a &>log", vec![vec!["a", "log"]]),
            ("a && b", vec![vec!["a"], vec!["b"]]),
        ] {
            assert_eq!(split(script), want, "{script}");
        }
    }

    #[test]
    fn wrappers_are_looked_through() {
        let cases = [
            ("npm test", "npm"),
            ("RUSTFLAGS=\"-D warnings\" cargo build", "cargo build"),
            ("timeout 2 pytest -v", "pytest"),
            ("sh -c 'helmfile sync'", "helmfile"),
            ("bash -lc \"cd x && ruff check\"", "ruff check"),
            ("python -m pytest -n 2", "pytest"),
            ("/usr/bin/env python3 -m http.server", "http.server"),
            ("npx jest --ci", "jest"),
            ("bundle exec rspec spec/a_spec.rb", "rspec"),
            ("ulimit -n 64; python emfile.py", "python"),
            ("(ruff check; pytest -q) || true", "pytest"),
            ("sudo -E nice -n 10 make -j2", "make"),
            ("poetry run mypy .", "mypy"),
            ("npx @biomejs/biome@1.9 check", "biome check"),
            ("flock -n l.lock ./deploy.sh", "deploy.sh"),
            ("sudo -u me make", "make"),
            ("timeout -s KILL 10 pytest", "pytest"),
            ("backstop exec --timeout 10m -- npm ci", "npm ci"),
        ];
        for (command, program) in cases {
            assert!(
                Programs::read(command).runs(&[program]),
                "{program} in {command}: {:?}",
                Programs::read(command)
            );
        }
    }

    #[test]
    fn hostile_command_lines_are_survived() {
        for command in [
            "",
            "'",
            "\"\\",
            "((((",
            "sh -c \"sh -c 'sh -c x\"",
            &"sh -c ".repeat(10_000),
            "> <",
            "\u{fffd}=;=&&",
        ] {
            let _ = Programs::read(command);
        }
    }
}
