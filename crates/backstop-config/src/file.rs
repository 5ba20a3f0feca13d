//! Reads one configuration file: text goes in; checked entries and all problems come out, each with
//! line and column.
//!
//! It must not decide which entry counts: the layers do.

use super::error::{Place, Problem};
use super::find::FileName;
use super::keys::{self, Key, KeyMatch};
use super::value::{self, Written, described};
use backstop_core::{MASK, Redactor, SafeText};
use std::collections::BTreeSet;
use toml::de::{DeTable, DeValue};

/// The largest config file, in bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;
/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 64;
/// The largest number of problems collected from one file.
const PROBLEMS_MAX: usize = 100;

/// One value in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The full name of the key.
    pub name: String,
    /// The definition of the key.
    pub key: &'static Key,
    /// The value.
    pub written: Written,
    /// The line of the key, counted from 1.
    pub line: usize,
    /// The column of the key, counted from 1.
    pub column: usize,
}

/// Reads the bytes of a file: they must be UTF-8.
pub(crate) fn text<'b>(file: &FileName, bytes: &'b [u8]) -> Result<&'b str, Problem> {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            // Everything before the first invalid byte is valid.
            let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let lines = Lines::new(good.strip_prefix('\u{feff}').unwrap_or(good));
            let message = if utf16 { "the file is UTF-16, not UTF-8" } else { "the file is not UTF-8 here" };
            Err(Problem::new(lines.place(file, usize::MAX), message, Some("save it as UTF-8")))
        }
    }
}

/// Reads the text of a file. A problem costs the value that it is in, not the file: what stands on
/// lines without a syntax error is read as usual.
pub(crate) fn read(file: &FileName, source: &str) -> (Vec<Entry>, Vec<Problem>) {
    let (table, errors) = DeTable::parse_recoverable(source);
    let lines = Lines::new(source);
    let broken = errors.iter().map(|error| lines.number(error.span().unwrap_or_default().start));
    let mut reader = Reader {
        file,
        broken: broken.collect(),
        lines,
        entries: Vec::new(),
        names: BTreeSet::new(),
        problems: Vec::new(),
        secrets: ("", Vec::new()),
    };
    for error in errors.iter().take(PROBLEMS_MAX) {
        reader.syntax(source, error);
    }
    reader.table(&[], table.get_ref());
    let Reader { mut entries, mut problems, .. } = reader;
    entries.sort_by_key(|entry| (entry.line, entry.column));
    problems.sort_by_key(|(at, _)| *at);
    (entries, problems.into_iter().map(|(_, problem)| problem).collect())
}

/// The positions at which the lines of a text begin.
struct Lines<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> Lines<'s> {
    fn new(source: &'s str) -> Self {
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { source, starts }
    }

    /// The line and column of a position, from 1. Columns count characters, as editors do.
    fn position(&self, at: usize) -> (usize, usize) {
        let at = self.source.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied().unwrap_or(0);
        (line, self.source[start..at].chars().count() + 1)
    }

    /// The number of the line that a position is on, from 1.
    fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// The line that a position is on, or the part of a long one that is around it.
    fn around(&self, at: usize) -> &'s str {
        const PART_BYTES: usize = 32 << 10;
        let line = self.number(at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let end = self.starts.get(line).copied().unwrap_or(self.source.len());
        let start = self.source.ceil_char_boundary(start.max(at.saturating_sub(PART_BYTES)));
        let end = self.source.floor_char_boundary(end.min(at.saturating_add(PART_BYTES)));
        self.source.get(start..end).unwrap_or_default()
    }

    fn place(&self, file: &FileName, at: usize) -> Place {
        let (line, column) = self.position(at);
        Place::At { file: file.clone(), line, column }
    }
}

/// A message without a secret, of which it may show no more than the beginning.
fn without(message: &str, secret: &str) -> String {
    const HEAD_BYTES: usize = 8;
    let head = &secret[..secret.floor_char_boundary(HEAD_BYTES)];
    let mut out = String::new();
    let mut rest = message;
    while let Some(at) = rest.find(head) {
        out.push_str(&rest[..at]);
        out.push_str(MASK);
        let same = rest[at..].chars().zip(secret.chars()).take_while(|(shown, one)| shown == one);
        rest = &rest[at + same.map(|(shown, _)| shown.len_utf8()).sum::<usize>()..];
    }
    out + rest
}

struct Reader<'a> {
    file: &'a FileName,
    lines: Lines<'a>,
    /// The lines with a syntax error: what was recovered from them may be anything.
    broken: BTreeSet<usize>,
    entries: Vec<Entry>,
    /// The names of the entries.
    names: BTreeSet<String>,
    /// The problems, each with its position in bytes.
    problems: Vec<(usize, Problem)>,
    /// The line that the last problem is on, and what looks like a secret in it.
    secrets: (&'a str, Vec<String>),
}

impl Reader<'_> {
    fn problem(&mut self, at: usize, message: &str, hint: Option<&str>) {
        if self.problems.len() < PROBLEMS_MAX {
            // What cannot be read is known to nobody as a secret: its line says whether it is one.
            let line = self.lines.around(at);
            if self.secrets.0 != line {
                self.secrets = (line, Redactor::default().secrets_of(line));
            }
            let secrets = &self.secrets.1;
            let masked = |text: &str| secrets.iter().fold(text.to_owned(), |text, one| without(&text, one));
            let place = self.lines.place(self.file, at);
            let problem = Problem::new(place, &masked(message), hint.map(masked).as_deref());
            self.problems.push((at, problem));
        }
    }

    /// Whether a syntax error is on one of the lines between these positions.
    fn is_broken(&self, start: usize, end: usize) -> bool {
        let (first, last) = (self.lines.number(start), self.lines.number(end));
        // A table that is added to elsewhere ends before it begins.
        first <= last && self.broken.range(first..=last).next().is_some()
    }

    fn syntax(&mut self, source: &str, error: &toml::de::Error) {
        let span = error.span().unwrap_or_default();
        let found = source.get(span.clone()).unwrap_or_default().trim();
        let unquoted = error.message().starts_with("string values must be quoted") && !found.is_empty();
        let found = SafeText::new(found).line(NAME_CHARS_MAX);
        match error.message() {
            _ if unquoted => {
                let hint = format!("text is written in quotes: \"{found}\"");
                self.problem(span.start, &format!("`{found}` is not a value"), Some(&hint));
            }
            "duplicate key" => {
                self.problem(span.start, &format!("`{found}` is set twice"), Some("remove one of the two"));
            }
            message => self.problem(span.start, &format!("not TOML: {message}"), None),
        }
    }

    fn table(&mut self, section: &[&str], table: &DeTable<'_>) {
        for (key, value) in table {
            let name: &str = key.get_ref();
            let name = if section.is_empty() { keys::section_name(name) } else { name };
            let mut path = section.to_vec();
            path.push(name);
            let at = key.span().start;
            let is_table = matches!(value.get_ref(), DeValue::Table(_));
            if !is_table && self.is_broken(at, value.span().end) {
                continue;
            }
            match (keys::find(&path), value.get_ref()) {
                (KeyMatch::Unknown, _) => {
                    let name = SafeText::new(name).line(NAME_CHARS_MAX);
                    let (message, hint) = keys::unknown(section, &name);
                    self.problem(at, &message, Some(&hint));
                }
                (KeyMatch::Section, DeValue::Table(inner)) => self.table(&path, inner),
                (KeyMatch::Section, other) => {
                    let name = path.join(".");
                    let message =
                        format!("`{name}` is a section with keys in it: found {}", described(other));
                    let other_way = format!("write `[{name}]`, and the keys below it");
                    self.problem(value.span().start, &message, Some(&other_way));
                }
                (KeyMatch::Key(key), found) => {
                    let name = path.join(".");
                    if self.names.contains(&name) {
                        let message = format!("`{name}` is set twice");
                        self.problem(at, &message, Some("remove one of the two"));
                        continue;
                    }
                    match value::from_toml(key, &name, found) {
                        Ok(written) => {
                            let (line, column) = self.lines.position(at);
                            self.names.insert(name.clone());
                            self.entries.push(Entry { name, key, written, line, column });
                        }
                        Err(wrong) => {
                            let at = wrong.at.unwrap_or(value.span().start);
                            self.problem(at, &wrong.message, wrong.hint.as_deref());
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> FileName {
        FileName { path: "backstop.toml".into(), shown: "backstop.toml".to_owned() }
    }

    fn messages(source: &str) -> Vec<String> {
        let (_, problems) = read(&name(), source);
        problems
            .iter()
            .map(|p| p.hint.as_ref().map_or_else(|| p.to_string(), |hint| format!("{p} | {hint}")))
            .collect()
    }

    #[test]
    fn every_way_to_write_a_key() {
        let source = "exec.grace = \"1s\"\n[profile.tool]\nattempts = 5\ndelays = [\"0\", '1s', 0]\n\
            [profile]\ntask = { base = \"1s\", on.timeout = \"halt\" }\n[redact]\nenv = [\"A\", \"B\", \"A\"]\n";
        let (entries, problems) = read(&name(), source);
        assert_eq!(problems, []);
        let shown: Vec<String> = entries
            .iter()
            .map(|e| format!("{}:{} {} = {}", e.line, e.column, e.name, e.written.text))
            .collect();
        assert_eq!(
            shown,
            [
                "1:6 exec.grace = 1s",
                "3:1 profile.tool.attempts = 5",
                "4:1 profile.tool.delays = [\"0\", \"1s\", \"0\"]",
                "6:10 profile.task.base = 1s",
                "6:26 profile.task.on.timeout = halt",
                "8:1 redact.env = [\"A\", \"B\"]",
            ]
        );
    }

    #[test]
    fn a_secret_in_a_line_that_cannot_be_read_is_not_shown() {
        let long = "plain-words-only-and-many-of-them-".repeat(4);
        for source in [
            "[mcp.a]\nenv.DB_PASSWORD = plain-words-only\n",
            "[mcp.a.env]\nDB_PASSWORD = [\"plain-words-only\"]\n",
            "[mcp.a]\nenv = \"DB_PASSWORD=plain-words-only\"\n",
            "[mcp.a.env]\nDB_PASSWORD = \"a\"\nDB_PASSWORD = \"plain-words-only\"\n",
            "[mcp.a.headers]\nAuthorization = Bearer plain-words-only\n",
            "[exec]\ntimeout = \"--token plain-words-only\"\n",
            "[mcp.a.env]\nDB_PASSWORD = 1234567812345678\n",
            "api_token = \"plain-words-only\n",
            &format!("[mcp.a]\nenv.DB_PASSWORD = {long}\n"),
        ] {
            let found = messages(source);
            assert!(!found.is_empty(), "{source}");
            for message in found {
                let is_shown = message.contains("words") || message.contains("12345678");
                assert!(!is_shown, "{source}: {message}");
            }
        }
        assert_eq!(
            messages("[exec]\ntimeout = 10x\n"),
            ["backstop.toml:2:11: `10x` is not a value | text is written in quotes: \"10x\""]
        );
    }

    #[test]
    fn a_section_of_agents_has_two_spellings_and_one_name() {
        let source =
            "[agents.goose]\nacp = [\"goose\", \"acp\"]\nmode = \"auto\"\n[agent.mine]\ncommand = [\"a\"]\n";
        let (entries, problems) = read(&name(), source);
        assert_eq!(problems, []);
        let names: Vec<String> =
            entries.iter().map(|e| format!("{}:{} {}", e.line, e.column, e.name)).collect();
        assert_eq!(names, ["2:1 agent.goose.acp", "3:1 agent.goose.mode", "5:1 agent.mine.command"]);
        assert_eq!(
            messages("[agent.a]\nmode = \"x\"\n[agents.a]\nmode = \"y\"\n"),
            ["backstop.toml:4:1: `agent.a.mode` is set twice | remove one of the two"]
        );
        assert_eq!(
            messages("[exec.agents]\n[agents.a]\nacpp = []\n"),
            [
                "backstop.toml:1:7: unknown key `exec.agents` | did you mean `plan.agent`?",
                "backstop.toml:3:1: unknown key `agent.a.acpp` | did you mean `agent.a.acp`?",
            ]
        );
    }

    #[test]
    fn a_typing_mistake_is_an_error_at_every_depth() {
        let source = "timeout = \"1s\"\n[exce]\ntimeout = \"1s\"\n[exec]\ntimout = \"1s\"\n[profile.comand]\nattempts = 2\n\
            [profile.tool]\natempts = 2\n[profile.tool.on]\nrate_limit = \"halt\"\n";
        assert_eq!(
            messages(source),
            [
                "backstop.toml:1:1: unknown key `timeout` | did you mean `exec.timeout`?",
                "backstop.toml:2:2: unknown key `exce` | did you mean `exec`?",
                "backstop.toml:5:1: unknown key `exec.timout` | did you mean `exec.timeout`?",
                "backstop.toml:6:10: unknown profile `comand` | did you mean `profile.command`?",
                "backstop.toml:9:1: unknown key `profile.tool.atempts` | did you mean `profile.tool.attempts`?",
                "backstop.toml:11:1: unknown reason `rate_limit` | did you mean `profile.tool.on.rate_limited`?",
            ]
        );
    }

    #[test]
    fn wrong_types_and_values_say_what_was_found_and_what_is_meant() {
        let source = "[exec]\ntimeout = 0x1e\nidle = \"10x\"\ndeadline = false\ngrace = 2024-01-01\nstdin_max = 8\n\
            profile = \"comand\"\n[log]\nformat = [\"json\"]\n[rules]\npacks = \"a.toml\"\n[redact]\nenv = [\"A\", 5]\n\
            [retry_budget]\nreserve = \"5\"\nshare_percent = 0xff\nwindow = {}\n[store]\nkeep = \"5ä\"\n";
        assert_eq!(
            messages(source),
            [
                "backstop.toml:2:11: `exec.timeout` is a duration such as 30 (seconds) or \"10m\", or \"none\": found the number 1e",
                "backstop.toml:3:8: `exec.idle`: `10x` is not a duration: write seconds, or a number and a unit, such as 30, 500ms, 10m, 1h30m or 2d",
                "backstop.toml:4:12: `exec.deadline` is a duration such as 30 (seconds) or \"10m\", or \"none\": found `false` | write \"none\"",
                "backstop.toml:5:9: `exec.grace` is a duration such as 30 (seconds) or \"10m\": found a date",
                "backstop.toml:6:13: `exec.stdin_max` is a size such as \"8MB\": found the number 8 | write it with a unit: \"8KB\" or \"8MB\"",
                "backstop.toml:7:11: `exec.profile` is one of command, tool, request, task, phase, state: found `comand` | did you mean `command`?",
                "backstop.toml:9:10: `log.format` is one of human, json, emit: found a list",
                "backstop.toml:11:9: `rules.packs` is a list of paths: found the text \"a.toml\" | write it as a list, in brackets",
                "backstop.toml:13:13: `redact.env` is a list of names of environment variables: found the number 5 in it",
                "backstop.toml:15:11: `retry_budget.reserve` is a number from 0 to 1000000: found the text \"5\" | write it without quotes: 5",
                "backstop.toml:16:17: `retry_budget.share_percent` is a number from 0 to 100: found `255`",
                "backstop.toml:17:10: `retry_budget.window` is a duration such as 30 (seconds) or \"10m\": found a table",
                "backstop.toml:19:8: `store.keep`: `5ä` is not a duration: write seconds, or a number and a unit, such as 30, 500ms, 10m, 1h30m or 2d",
            ]
        );
    }

    #[test]
    fn syntax_errors_are_all_told() {
        assert_eq!(
            messages("[exec]\ntimeout = 30s\ngrace = \"1s\"\ngrace = \"2s\"\nidle = \n"),
            [
                "backstop.toml:2:11: `30s` is not a value | text is written in quotes: \"30s\"",
                "backstop.toml:4:1: `grace` is set twice | remove one of the two",
                "backstop.toml:5:8: not TOML: string values must be quoted, expected literal string",
            ]
        );
        assert_eq!(
            messages("exec = 5"),
            [
                "backstop.toml:1:8: `exec` is a section with keys in it: found the number 5 | write `[exec]`, and the keys below it"
            ]
        );
        assert!(messages("[[exec]]")[0].contains("`exec` is a section with keys in it: found a list"));
    }

    #[test]
    fn a_syntax_error_costs_its_own_value_and_no_other() {
        let source = "[exec]\ntimeout = 30s\ngrace = 2\nidle = \"1m\nprofile = \"tool\"\n[log]\nformat = \"json\"\n\
            [log]\n[stor]\n";
        let (entries, problems) = read(&name(), source);
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["exec.grace", "exec.profile", "log.format"]);
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        for (line, says) in lines.iter().zip([
            "2:11: `30s`",
            "4:11: not TOML",
            "8:2: `log` is set twice",
            "9:2: unknown key `stor`",
        ]) {
            assert!(line.contains(says), "{line}");
        }
    }

    #[test]
    fn bytes_that_are_no_text() {
        let messages = |bytes: &[u8]| text(&name(), bytes).map(str::to_owned).map_err(|p| p.to_string());
        assert_eq!(messages(b"\xef\xbb\xbfa = 1"), Ok("a = 1".to_owned()));
        assert_eq!(
            messages(b"a = 1\nb = \"\xff\""),
            Err("backstop.toml:2:6: the file is not UTF-8 here".to_owned())
        );
        assert_eq!(
            messages(b"\xff\xfea\0"),
            Err("backstop.toml:1:1: the file is UTF-16, not UTF-8".to_owned())
        );
    }

    #[test]
    fn deep_nesting_is_survived() {
        for deep in [
            format!("a = {}", "[".repeat(100_000)),
            format!("a = {}", "{a=".repeat(100_000)),
            format!("[{}]", vec!["a"; 200_000].join(".")),
            format!("{} = 1", vec!["exec"; 100_000].join(".")),
            format!("profile.{} = 1", "{a = ".repeat(50)),
        ] {
            assert!(!messages(&deep).is_empty());
        }
    }

    #[test]
    fn long_names_and_controls_stay_on_one_short_line() {
        for line in messages(&format!("\"{}\\u001b[31m\\n\" = 1\n\"\\u001b\\n\" = 2", "x".repeat(10_000))) {
            assert!(line.len() < 500 && !line.contains(['\x1b', '\n']), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(source in any::<String>()) {
            let _ = read(&name(), &source);
        }

        #[test]
        fn any_bytes_are_survived(bytes in any::<Vec<u8>>()) {
            if let Ok(text) = text(&name(), &bytes) {
                let _ = read(&name(), text);
            }
        }

        #[test]
        fn anything_that_looks_like_a_config_is_survived(
            lines in proptest::collection::vec(
                ("(\\[\\[?)?(exec|profile|profile\\.tool|profile\\.task\\.on|redact|rules|[a-z.]{0,6})(\\]\\]?)?",
                 "(\\.?(timeout|attempts|delays|env|jitter|timeout|on\\.crash))? ?=? ?",
                 "(\"[^\"\\n]{0,8}\"|[0-9.+-]{0,6}|\\[(\"[a-z0-9%]{0,4}\",?){0,3}\\]|\\{[a-z =]{0,5}\\}|true)"),
                0..8)
        ) {
            let source: String = lines.iter().map(|(a, b, c)| format!("{a}{b}{c}\n")).collect();
            let (entries, problems) = read(&name(), &source);
            for problem in &problems {
                prop_assert!(!problem.to_string().contains('\n'));
            }
            for entry in &entries {
                prop_assert!(entry.line >= 1 && entry.line <= lines.len());
            }
        }
    }
}
