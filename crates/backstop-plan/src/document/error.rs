//! What is wrong with a plan, where, and what to do about it.

use backstop_core::{Reason, SafeText};

/// How much of a text from the plan is part of a message.
const GIVEN_CHARS_MAX: usize = 60;

/// What is wrong with a plan, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct PlanError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The row of the table that it is about, cut short.
    pub row: Option<SafeText>,
    /// What is wrong.
    pub kind: PlanErrorKind,
    /// Other lines that are involved, each with a description.
    pub also: Vec<(usize, String)>,
}

/// The most mistakes that are told at once.
pub const ERRORS_MAX: usize = 100;

/// Everything that is wrong with a plan, in the order of lines. There is at least one mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors {
    list: Vec<PlanError>,
    left_out: usize,
}

impl PlanErrors {
    /// All of these, up to [`ERRORS_MAX`]; nothing where there is none.
    pub(crate) fn of(mut list: Vec<PlanError>) -> Option<Self> {
        list.sort_by_key(|error| (error.line, error.column));
        list.dedup();
        let left_out = list.len().saturating_sub(ERRORS_MAX);
        list.truncate(ERRORS_MAX);
        (!list.is_empty()).then_some(Self { list, left_out })
    }

    /// The mistakes.
    pub fn list(&self) -> &[PlanError] {
        &self.list
    }

    /// How many more there are.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The reason of the fault: that of the first mistake.
    pub fn reason(&self) -> Reason {
        self.list.first().map_or(Reason::PlanInvalid, PlanError::reason)
    }
}

impl From<PlanError> for PlanErrors {
    fn from(error: PlanError) -> Self {
        Self { list: vec![error], left_out: 0 }
    }
}

impl From<Vec<PlanError>> for PlanErrors {
    fn from(list: Vec<PlanError>) -> Self {
        Self::of(list).unwrap_or_else(|| PlanError::at(1, 1, PlanErrorKind::NoPlan).into())
    }
}

impl std::fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, error) in self.list.iter().enumerate() {
            write!(f, "{}{error}", if at == 0 { "" } else { "\n" })?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for PlanErrors {}

/// Why a plan's bytes are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// Not UTF-8.
    #[error("this is not UTF-8")]
    Utf8,
    /// UTF-16.
    #[error("this is UTF-16, not UTF-8")]
    Utf16,
    /// There is a NUL in it, as in binary files.
    #[error("this is no text: there is a NUL in it")]
    Nul,
}

/// The kinds of things that are wrong with plans. Ids are as the plan writes them; texts are
/// escaped and cut short.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanErrorKind {
    /// Nothing in the text is a plan.
    #[error("this is no plan that Backstop can read")]
    NoPlan,
    /// The text is not of the format that was asked for.
    #[error("this is not of the format `{format}`: {expected} was expected")]
    NotFormat {
        /// The format.
        format: &'static str,
        /// What such a document has.
        expected: &'static str,
    },
    /// A plan in JSON that is none.
    #[error("this is no JSON: {message}")]
    Json {
        /// What is wrong.
        message: Box<str>,
    },
    /// There is no overview table.
    #[error("there is no table of phases")]
    NoTable,
    /// The overview table has no rows.
    #[error("the table of phases has no rows")]
    EmptyTable,
    /// A table that looks like the overview lacks a column.
    #[error("the table has no column `{column}`")]
    MissingColumn {
        /// The column.
        column: &'static str,
    },
    /// A row has more cells than the header.
    #[error("the row has {found} cells, the table has {columns} columns")]
    TooManyCells {
        /// How many cells the row has.
        found: usize,
        /// How many columns the header has.
        columns: usize,
    },
    /// Two rows are the same phase.
    #[error("phase {id} is already on line {first}")]
    DuplicateId {
        /// The id.
        id: Box<str>,
        /// The line of the first row, counted from 1.
        first: usize,
    },
    /// A cell that should hold an id does not.
    #[error("{}", if given.is_empty() { "this row has no phase id".to_owned() } else { format!("`{given}` is no phase id") })]
    BadId {
        /// What the cell says.
        given: Box<str>,
    },
    /// A dependency that is no phase of the table.
    #[error("phase {phase} depends on `{given}`, which is no phase of this plan")]
    UnknownDependency {
        /// The phase that depends.
        phase: Box<str>,
        /// What it depends on.
        given: Box<str>,
        /// What was probably meant.
        nearest: Option<Box<str>>,
    },
    /// A phase runs in parallel with something that is no phase of the table.
    #[error("phase {phase} is parallel with `{given}`, which is no phase of this plan")]
    UnknownParallel {
        /// The phase.
        phase: Box<str>,
        /// What it is parallel with.
        given: Box<str>,
        /// What was probably meant.
        nearest: Option<Box<str>>,
    },
    /// A phase depends on itself.
    #[error("phase {phase} depends on itself")]
    SelfDependency {
        /// The phase.
        phase: Box<str>,
    },
    /// A phase is parallel with itself.
    #[error("phase {phase} is parallel with itself")]
    SelfParallel {
        /// The phase.
        phase: Box<str>,
    },
    /// Phases wait for each other and are to run side by side.
    #[error("phases {phase} and {other} are parallel, but one waits for the other: {}", path.join(" -> "))]
    Contradiction {
        /// The phase that waits.
        phase: Box<str>,
        /// The phase that it waits for.
        other: Box<str>,
        /// The chain of dependencies from the one to the other.
        path: Box<[String]>,
    },
    /// Phases wait for each other. The first is repeated at the end.
    #[error("phases wait for each other: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A settings block that cannot be used.
    #[error("{message}")]
    BadSettings {
        /// What is wrong with it.
        message: Box<str>,
        /// What to write instead.
        hint: Option<Box<str>>,
    },
    /// A second settings block.
    #[error("{} already has settings, on line {first}", phase.as_ref().map_or_else(|| "the plan".to_owned(), |id| format!("phase {id}")))]
    DuplicateSettings {
        /// The phase, or the plan as a whole.
        phase: Option<Box<str>>,
        /// The line of the first block, counted from 1.
        first: usize,
    },
    /// The plan has too many bytes.
    #[error("the plan has {bytes} bytes, more than {limit}")]
    TooLarge {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The plan has too many phases.
    #[error("the plan has more than {limit} phases")]
    TooManyPhases {
        /// How many it may have.
        limit: usize,
    },
    /// The plan has too many of something else.
    #[error("the plan has more than {limit} {what}")]
    TooMany {
        /// Of what: `tasks`, `headings`.
        what: &'static str,
        /// How many it may have.
        limit: usize,
    },
    /// Not text.
    #[error("{0}")]
    NotText(NotText),
}

/// Text from a plan, escaped and cut for a message.
pub(crate) fn shown_text(text: &str) -> Box<str> {
    SafeText::new(text).line(GIVEN_CHARS_MAX).into()
}

impl PlanError {
    /// An error at a line and column.
    pub(crate) fn at(line: usize, column: usize, kind: PlanErrorKind) -> Self {
        Self { line, column, row: None, kind, also: Vec::new() }
    }

    /// The reason of the fault for this error.
    pub fn reason(&self) -> Reason {
        match self.kind {
            PlanErrorKind::Cycle(_) => Reason::CircularDependency,
            _ => Reason::PlanInvalid,
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        use PlanErrorKind as Kind;
        let near = |nearest: &Option<Box<str>>, column: &str| match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!(
                "write the ids of phases that have a row, separated by commas, under `{column}`; also a range such as 1-3, or `all previous`"
            ),
        };
        match &self.kind {
            Kind::NoPlan => format!(
                "write a checklist (`- [ ] …`), a numbered list, headings such as `## Phase 1: Name`, or a table such as \
                 `| Phase | Name | Depends On | Status |`; --format forces one of {}",
                super::Format::ALL.map(super::Format::name).join(", ")
            ),
            Kind::NotFormat { .. } => "leave --format out, and it is found by the document's structure".to_owned(),
            Kind::Json { .. } => "correct it there, or let the program that wrote it write it again".to_owned(),
            Kind::NoTable => "add a table such as `| Phase | Name | Depends On | Status |`, with a line of dashes \
                below its header and a row for each phase"
                .to_owned(),
            Kind::EmptyTable => "add a row for each phase, such as `| 1 | Set up | - | ⬜ |`".to_owned(),
            Kind::MissingColumn { column } => format!("add a column `{column}` with an id for each row"),
            Kind::TooManyCells { .. } => "write a `|` inside a cell as `\\|`".to_owned(),
            Kind::DuplicateId { .. } => {
                "give one of the two another id; case, spaces and hyphens make no difference".to_owned()
            }
            Kind::BadId { given } if given.is_empty() => "give the row an id, such as 2A or 1.1".to_owned(),
            Kind::BadId { .. } => "an id has letters and digits, with dots between them where there are any, such as 2A or 1.1; \
                if this line is not part of the table, put an empty line before it"
                .to_owned(),
            Kind::UnknownDependency { nearest, .. } => near(nearest, "Depends On"),
            Kind::UnknownParallel { nearest, .. } => near(nearest, "Parallel With"),
            Kind::SelfDependency { .. } => "take it out of its own `Depends On`".to_owned(),
            Kind::SelfParallel { .. } => "take it out of its own `Parallel With`".to_owned(),
            Kind::Contradiction { phase, other, .. } => format!(
                "take `{other}` out of what {phase} waits for, or take the two out of each other's `Parallel With`"
            ),
            Kind::Cycle(_) => {
                "take one of these dependencies away, so that no phase waits for itself".to_owned()
            }
            Kind::BadSettings { hint: Some(hint), .. } => hint.to_string(),
            Kind::BadSettings { hint: None, .. } => {
                "a settings block is TOML, such as `timeout = \"20m\"`, between ```backstop and ```".to_owned()
            }
            Kind::DuplicateSettings { .. } => "put all of it into one block".to_owned(),
            Kind::TooLarge { .. } | Kind::TooManyPhases { .. } | Kind::TooMany { .. } => {
                "split it into several plans".to_owned()
            }
            Kind::NotText(_) => "save the plan as UTF-8 text".to_owned(),
        }
    }
}
