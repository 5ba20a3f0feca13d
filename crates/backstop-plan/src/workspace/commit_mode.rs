//! How finished phases are committed: the values of `--commit`.

/// How finished phases are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitMode {
    /// One commit a phase, on the user's branch as soon as the phase is integrated.
    Auto,
    /// No commits; `commits.sh` has one command a phase.
    MessageOnly,
    /// One squashed commit at the end.
    Single,
    /// No commits.
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

    /// The name, as it is typed and recorded.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, commit)| *commit == self).map_or("none", |(name, _)| name)
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, commit)| commit)
    }
}
