//! Reads a settings block: the TOML between ```` ```backstop ```` and the closing fence.

use super::block::SettingsFence;
use super::error::{PlanError, PlanErrorKind};
use super::settings::Settings;
use super::source::Source;
use backstop_core::SafeText;
use backstop_core::nearest::nearest;
use std::ops::Range;
use toml::de::DeTable;

/// The largest settings block, in bytes.
const SETTINGS_BYTES_MAX: usize = 16 << 10;
/// The longest part of a TOML error message that is kept.
const MESSAGE_CHARS_MAX: usize = 300;
/// How many errors of a block are told.
const ERRORS_MAX: usize = 20;

/// The text of a block, as TOML reads it: with plain line ends, and without the fence's
/// indentation.
pub(crate) fn text(source: &Source<'_>, fence: &SettingsFence) -> String {
    let close = fence.close.unwrap_or(source.count());
    let mut text = String::new();
    for line in fence.open + 1..close {
        let line = source.line(line);
        text.push_str(&line[stripped(line, fence)..]);
        text.push('\n');
        if text.len() > SETTINGS_BYTES_MAX {
            break;
        }
    }
    text
}

/// How much of a line's indentation belongs to the fence.
fn stripped(line: &str, fence: &SettingsFence) -> usize {
    line.bytes().take(fence.indent).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Reads a block, or says everything that is wrong in it.
pub(crate) fn read(source: &Source<'_>, fence: &SettingsFence) -> Result<Settings, Vec<PlanError>> {
    let whole = |message: String, hint: &str| {
        let kind = PlanErrorKind::BadSettings { message: message.into(), hint: Some(hint.into()) };
        PlanError::at(fence.open + 1, 1, kind)
    };
    if fence.close.is_none() {
        return Err(vec![whole(
            "this settings block is never closed".to_owned(),
            "close it with a line of ```",
        )]);
    }
    let mut text = text(source, fence);
    if text.len() > SETTINGS_BYTES_MAX {
        let message = format!("this settings block has more than {SETTINGS_BYTES_MAX} bytes");
        return Err(vec![whole(message, "put long commands into a script")]);
    }
    let mut errors = Vec::new();
    loop {
        let error = match toml::from_str(&text) {
            Ok(settings) if errors.is_empty() => return Ok(settings),
            Ok(_) => return Err(sorted(errors)),
            Err(error) => error,
        };
        errors.push(setting_error(source, fence, &text, &error));
        // What follows is read without the setting that is wrong.
        let wrong = setting_at(&text, error.span().map_or(0, |span| span.start));
        let Some(wrong) = wrong.filter(|_| errors.len() < ERRORS_MAX) else {
            return Err(sorted(errors));
        };
        let blank = |c: char| if matches!(c, '\n' | '\r') { c.to_string() } else { " ".repeat(c.len_utf8()) };
        let spaces: String = text[wrong.clone()].chars().map(blank).collect();
        text.replace_range(wrong, &spaces);
    }
}

fn sorted(mut errors: Vec<PlanError>) -> Vec<PlanError> {
    errors.sort_by_key(|error| (error.line, error.column));
    errors
}

/// Where the setting is that this place belongs to, with its name. None where the text is no TOML,
/// or the setting is a table in lines of its own.
fn setting_at(text: &str, at: usize) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let settings = table.get_ref().iter().map(|(key, value)| key.span().start..value.span().end);
    settings.into_iter().find(|range| range.contains(&at) && text[range.clone()].contains('='))
}

fn setting_error(
    source: &Source<'_>,
    fence: &SettingsFence,
    text: &str,
    error: &toml::de::Error,
) -> PlanError {
    let at = text.floor_char_boundary(error.span().map_or(0, |span| span.start));
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = fence.open + 1 + before.matches('\n').count();
    let column = stripped(source.line(line), fence) + before[start..].chars().count() + 1;
    let (message, hint) =
        toml_message(error.message(), text[start..].split_once('=').map_or("", |(key, _)| key.trim()));
    let message = SafeText::new(message).line(MESSAGE_CHARS_MAX);
    let hint = hint.map(|hint| SafeText::new(hint).line(MESSAGE_CHARS_MAX).into());
    let kind = PlanErrorKind::BadSettings { message: message.into(), hint };
    PlanError::at(line + 1, column, kind)
}

/// What may be written for each key, for hints.
const VALUES: &[(&str, &str)] = &[
    ("command", "write a line for a shell in quotes, or a list such as [\"make\", \"all\"]"),
    (
        "gates",
        "write a list of names, commands and tables, such as [\"lint\", \"npm test\", { name = \"e2e\", check = \"make e2e\" }]",
    ),
    ("timeout", "write a duration such as \"20m\", or \"none\""),
    ("idle", "write a duration such as \"90s\", or \"none\""),
    ("files", "write a list of files or patterns below the project, such as [\"src/api/**\"]"),
    ("env", "write a table of texts, such as { RUST_LOG = \"debug\" }"),
    ("flaky", "write how often a failed test may be tried again, such as 2"),
    ("repeatable", "write true or false"),
    ("setup", "write a line for a shell in quotes, or a list such as [\"npm\", \"ci\"]"),
    ("setup_inputs", "write a list of files or patterns, such as [\"package-lock.json\"]"),
    ("protect", "write a list of files or patterns, such as [\"tests/**\"]"),
    ("fallback_agents", "write a list of names, such as [\"codex\"]"),
    ("dir", "write a folder below the project in quotes, such as \"packages/api\""),
    ("agent", "write a name in quotes"),
    ("model", "write a name in quotes"),
    ("message", "write a text in quotes"),
];

/// The message for an unknown key or a bad value, and what to write instead.
fn toml_message(message: &str, key: &str) -> (String, Option<String>) {
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    match unknown {
        Some((given, rest)) => {
            let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
            let hint = match nearest(given, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            (format!("there is no setting `{given}`"), Some(hint))
        }
        None => {
            let hint = VALUES.iter().find(|(name, _)| *name == key).map(|(_, hint)| (*hint).to_owned());
            // What the TOML reader calls by the names of its types.
            let words = [("expected a sequence", "expected a list"), ("expected a map", "expected a table")];
            let message = words
                .iter()
                .fold(message.to_owned(), |message, (theirs, plain)| message.replace(theirs, plain));
            (message, hint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::block;
    use super::super::settings::{GateSetting, Limit};
    use super::*;
    use backstop_work::CommandLine;
    use std::time::Duration;

    fn of(document: &str) -> Result<Settings, String> {
        let source = Source::new(document.as_bytes()).unwrap();
        let blocks = block::read(&source);
        read(&source, &blocks.settings[0]).map_err(|errors| {
            let shown = errors.iter().map(|error| format!("{error} | {}", error.hint()));
            shown.collect::<Vec<_>>().join(" || ")
        })
    }

    #[test]
    fn everything_that_may_be_said() {
        let settings = of("```backstop\ncommand = \"make all\"\nagent = \"a\"\nmodel = \"m\"\n\
            gates = [\"lint\", { name = \"e2e\", check = [\"npm\", \"test\"], fix = \"npm run fix\", timeout = \"5m\" }]\n\
            timeout = \"none\"\nidle = \"90s\"\nfiles = [\"src/**\"]\nenv = { A = \"\" }\nflaky = 2\nmessage = \"feat: x\\n\\nbody\"\n\
            repeatable = false\n\
            setup = [\"npm\", \"ci\"]\nsetup_inputs = [\"package-lock.json\"]\nprotect = [\"tests/**\"]\nfallback_agents = [\"codex\"]\ndir = \"./packages/a/\"\n```\n")
        .unwrap();
        let gates = vec![
            GateSetting { name: "lint".parse().unwrap(), check: None, fix: None, timeout: None },
            GateSetting {
                name: "e2e".parse().unwrap(),
                check: Some(CommandLine::Argv(vec!["npm".to_owned(), "test".to_owned()])),
                fix: Some(CommandLine::Shell("npm run fix".to_owned())),
                timeout: Some(Limit::After(Duration::from_secs(300))),
            },
        ];
        let want = Settings {
            command: Some(CommandLine::Shell("make all".to_owned())),
            agent: Some("a".to_owned()),
            model: Some("m".to_owned()),
            gates: Some(gates),
            timeout: Some(Limit::None),
            idle: Some(Limit::After(Duration::from_secs(90))),
            files: vec!["src/**".to_owned()],
            env: [("A".to_owned(), String::new())].into(),
            flaky: Some(2),
            message: Some("feat: x\n\nbody".to_owned()),
            repeatable: Some(false),
            setup: Some(CommandLine::words_of(&["npm", "ci"])),
            setup_inputs: vec!["package-lock.json".to_owned()],
            protect: vec!["tests/**".to_owned()],
            fallback_agents: Some(vec!["codex".to_owned()]),
            dir: Some("packages/a".to_owned()),
        };
        assert_eq!(settings, want);
        assert_eq!(of("```backstop\n```\n").unwrap(), Settings::default());
        assert_eq!(of("```backstop\ngates = []\n```\n").unwrap().gates, Some(Vec::new()));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let block = |text: &str| of(&format!("```backstop\n{text}\n```\n")).unwrap_err();
        let told = block("gates = \"x\"\ntimeot = 3\ncommand = [\n  5,\n]\nflaky = 2");
        let places: Vec<&str> = told.split(" || ").map(|error| &error[..4]).collect();
        assert_eq!(places, ["2:9:", "3:1:", "5:3:"], "{told}");
        // Without an end where each error hides the next.
        assert_eq!(block(&"a = 1\n".repeat(2)).split(" || ").count(), 1);
        let many: String = (0..30).map(|n| format!("x{n} = 1\n")).collect();
        assert_eq!(block(&many).split(" || ").count(), ERRORS_MAX);
    }

    #[test]
    fn mistakes_are_told_with_the_line_and_column_of_the_plan() {
        let told: Vec<String> = [
            "timout = \"1s\"",
            "deploy = 1",
            "timeout = true",
            "timeout = \"5x\"",
            "timeout = \"0\"",
            "gates = [\"lint\", { nam = \"x\" }]",
            "gates = [\"lint\", \"lint\"]",
            "gates = [\"Lint\"]",
            "gates = [\"make a\", \"make  a\"]",
            "command = []",
            "command = 5",
            "command = \"a\\u0000\"",
            "files = [\"../x\"]",
            "env = { \"A=B\" = \"\" }",
            "flaky = -1",
            "agent = \"\"",
            "model = \u{1b}[31m",
            "a = = b",
        ]
        .iter()
        .map(|line| of(&format!("x\n\n  ```backstop\r\n  # é\r\n  {line}\r\n  ```\n")).unwrap_err())
        .chain(["x\n```backstop\na = 1\n"].iter().map(|text| of(text).unwrap_err()))
        .collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        5:3: there is no setting `timout` | did you mean `timeout`?
        5:3: there is no setting `deploy` | there are command, agent, model, gates, timeout, idle, files, env, flaky, message, repeatable, setup, setup_inputs, protect, fallback_agents, dir
        5:13: invalid type: boolean `true`, expected a duration | write a duration such as "20m", or "none"
        5:13: `5x` is not a duration: write seconds, or a number and a unit, such as 30, 500ms, 10m, 1h30m or 2d | write a duration such as "20m", or "none"
        5:13: a limit of 0 ends everything at once: write "none" for no limit | write a duration such as "20m", or "none"
        5:22: there is no setting `nam` | did you mean `name`?
        5:11: there are two gates `lint` | write a list of names, commands and tables, such as ["lint", "npm test", { name = "e2e", check = "make e2e" }]
        5:12: `Lint` is not a name: use 1 to 64 of a-z, 0-9, `.`, `_`, `-`, starting with a letter or digit | write a list of names, commands and tables, such as ["lint", "npm test", { name = "e2e", check = "make e2e" }]
        5:11: there are two gates `make-a`: give them names, such as { name = "unit", check = "..." } | write a list of names, commands and tables, such as ["lint", "npm test", { name = "e2e", check = "make e2e" }]
        5:13: this is empty | write a line for a shell in quotes, or a list such as ["make", "all"]
        5:13: invalid type: integer `5`, expected a command: a line of text, or a list of a program and its arguments | write a line for a shell in quotes, or a list such as ["make", "all"]
        5:13: there is a NUL in this text | write a line for a shell in quotes, or a list such as ["make", "all"]
        5:11: `../x` is not below the project | write a list of files or patterns below the project, such as ["src/api/**"]
        5:9: `A=B` is no name of an environment variable | write a table of texts, such as { RUST_LOG = "debug" }
        5:11: -1 is not a number from 0 to 100 | write how often a failed test may be tried again, such as 2
        5:11: this is empty | write a name in quotes
        5:12: unexpected key or value, expected newline, `#` | write a name in quotes
        5:7: extra `=`, expected nothing | a settings block is TOML, such as `timeout = "20m"`, between ```backstop and ```
        2:1: this settings block is never closed | close it with a line of ```
        "#);
    }

    #[test]
    fn a_text_that_is_no_name_is_a_command() {
        let settings =
            of("```backstop\ngates = [\"lint\", \"python3 t.py\", \"./Check.sh --all\", \"/\"]\n```\n")
                .unwrap();
        let gates = settings.gates.unwrap();
        let shown: Vec<(&str, Option<String>)> = gates
            .iter()
            .map(|gate| (gate.name.as_str(), gate.check.as_ref().map(CommandLine::shown)))
            .collect();
        let command = |text: &str| Some(text.to_owned());
        let want = [
            ("lint", None),
            ("python3-t.py", command("python3 t.py")),
            ("check.sh---all", command("./Check.sh --all")),
            ("check", command("/")),
        ];
        assert_eq!(shown, want);
    }

    #[test]
    fn what_is_said_here_wins() {
        let base = of("```backstop\nagent = \"a\"\ntimeout = \"1m\"\nfiles = [\"x\"]\nenv = { A = \"1\", B = \"1\" }\n```\n").unwrap();
        let own = of("```backstop\ntimeout = \"none\"\nenv = { B = \"2\" }\ngates = []\n```\n").unwrap();
        let both = own.over(&base);
        assert_eq!(both.agent.as_deref(), Some("a"));
        assert_eq!(both.timeout, Some(Limit::None));
        assert_eq!(both.files, ["x"]);
        assert_eq!(both.gates, Some(Vec::new()));
        assert_eq!(both.env, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())].into());
        assert_eq!(Settings::default().over(&base), base);
    }
}
