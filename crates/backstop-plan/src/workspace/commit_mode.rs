//! The ways in which finished phases are committed.

/// How finished phases are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitMode {
    /// One commit a phase, on the user's branch as soon as it is in.
    Auto,
    /// None; a script has one command a phase.
    MessageOnly,
    /// One commit at the end.
    Single,
    /// None.
    None,
}

impl CommitMode {
    /// All of them, by name.
    pub const ALL: [(&'static str, CommitMode); 4] = [
        ("auto", CommitMode::Auto),
        ("message-only", CommitMode::MessageOnly),
        ("single", CommitMode::Single),
        ("none", CommitMode::None),
    ];

    /// The name as it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, commit)| *commit == self).map_or("none", |(name, _)| name)
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, commit)| commit)
    }
}
