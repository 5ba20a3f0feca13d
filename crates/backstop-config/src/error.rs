//! The errors of a configuration, each with its place and a hint.

use super::find::FileName;
use super::layers::Origin;
use backstop_core::{ErrorKind, HintedError, SafeText};
use serde_json::{Value, json};

/// The largest number of problems reported at once.
const PROBLEMS_MAX: usize = 200;
/// How many characters of a message are kept.
const MESSAGE_CHARS_MAX: usize = 600;

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// At a line and column of a file, both counted from 1.
    At { file: FileName, line: usize, column: usize },
    /// A file as a whole.
    File(FileName),
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
    /// No particular place.
    Nowhere,
}

impl From<&Origin> for Place {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Default => Place::Nowhere,
            Origin::File { file, line, column } => {
                Place::At { file: file.clone(), line: *line, column: *column }
            }
            Origin::Environment { name } => Place::Environment(name.clone()),
            Origin::Flag { name } => Place::Flag(name.clone()),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::At { file, line, column } => write!(f, "{}:{line}:{column}", file.shown),
            Place::File(file) => f.write_str(&file.shown),
            Place::Environment(name) | Place::Flag(name) => f.write_str(name),
            Place::Nowhere => Ok(()),
        }
    }
}

/// One problem in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, variable or flag.
    pub place: Place,
    /// What was found and what was expected, on one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem. The message may contain text from a file: it is escaped here.
    pub fn new(place: Place, message: &str, hint: Option<&str>) -> Self {
        let line = |text: &str| SafeText::new(text).line(MESSAGE_CHARS_MAX);
        Self { place, message: line(message), hint: hint.map(line) }
    }
}

impl Problem {
    /// Whether it is in this file.
    pub(crate) fn is_in(&self, wanted: &FileName) -> bool {
        matches!(&self.place, Place::At { file, .. } | Place::File(file) if file == wanted)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Nowhere => f.write_str(&self.message),
            place => write!(f, "{place}: {}", self.message),
        }
    }
}

/// All problems of a configuration, up to a limit. `Display` prints one line for each; text from
/// files is escaped and contains no line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
    left_out: usize,
}

impl ConfigError {
    /// An error with these problems; `None` if there are none.
    pub fn of(mut problems: Vec<Problem>) -> Option<ConfigError> {
        let left_out = problems.len().saturating_sub(PROBLEMS_MAX);
        problems.truncate(PROBLEMS_MAX);
        (!problems.is_empty()).then_some(ConfigError { problems, left_out })
    }

    /// An error with one problem.
    pub fn one(problem: Problem) -> ConfigError {
        ConfigError { problems: vec![problem], left_out: 0 }
    }

    /// The problems, in the order of layers and lines.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The hints. Where there are several problems, each hint names its own.
    pub fn hints(&self) -> Vec<String> {
        let several = self.problems.len() > 1;
        let hints = self.problems.iter().filter_map(|problem| {
            let hint = problem.hint.as_ref()?;
            Some(if several && problem.place != Place::Nowhere {
                format!("{}: {hint}", problem.place)
            } else {
                hint.clone()
            })
        });
        hints.collect()
    }

    /// The problems as JSON.
    pub fn json(&self) -> Value {
        let problems: Vec<Value> = self
            .problems
            .iter()
            .map(|problem| {
                let mut row = json!({ "message": problem.message, "hint": problem.hint });
                match &problem.place {
                    Place::At { file, line, column } => {
                        row["file"] = json!(file.path.to_string_lossy());
                        row["line"] = json!(line);
                        row["column"] = json!(column);
                    }
                    Place::File(file) => row["file"] = json!(file.path.to_string_lossy()),
                    Place::Environment(name) => row["environment"] = json!(name),
                    Place::Flag(name) => row["flag"] = json!(name),
                    Place::Nowhere => {}
                }
                row
            })
            .collect();
        json!({ "problems": problems, "left_out": self.left_out })
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl HintedError for ConfigError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        self.hints()
    }

    fn is_multiline(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_problems_are_bounded_and_what_files_say_is_escaped() {
        let problem = |n: usize| {
            let file = FileName { path: "backstop.toml".into(), shown: "backstop.toml".to_owned() };
            let place = Place::At { file, line: n, column: 1 };
            Problem::new(place, "unknown key `a\x1b[31m\nb`", Some("did you mean `c`?"))
        };
        let error = ConfigError::of((1..=PROBLEMS_MAX + 5).map(problem).collect()).unwrap();
        let text = error.to_string();
        assert!(
            text.starts_with("backstop.toml:1:1: unknown key `a\\e[31m b`\nbackstop.toml:2:1: "),
            "{text}"
        );
        assert!(text.ends_with("\nand 5 more"));
        assert_eq!(text.lines().count(), PROBLEMS_MAX + 1);
        assert_eq!(error.hints()[1], "backstop.toml:2:1: did you mean `c`?");
        assert_eq!(ConfigError::one(problem(1)).hints(), ["did you mean `c`?"]);
        assert_eq!(error.json()["left_out"], 5);
        assert_eq!(ConfigError::of(Vec::new()), None);
    }
}
