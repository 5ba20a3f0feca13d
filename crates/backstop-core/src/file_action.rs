//! What a change does to a file.

/// What a change does to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// The file is created.
    Made,
    /// The file is changed.
    Changed,
    /// The file is removed.
    Removed,
    /// The file stays as it is.
    Unchanged,
    /// The file does not exist, and is not created.
    Absent,
}

impl FileAction {
    /// The name of the action in JSON and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Unchanged => "unchanged",
            Self::Absent => "absent",
        }
    }
}
