//! Colours and signs of terminal output.

/// Which colours and signs a terminal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colour.
    pub colour: bool,
    /// Whether signs outside ASCII may be used.
    pub unicode: bool,
}

impl Style {
    /// Without colour, with Unicode signs: for snapshots and files.
    pub const PLAIN: Style = Style { colour: false, unicode: true };

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Emphasised text.
    pub fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Text of less importance.
    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// A failure.
    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// A success.
    pub fn good(self, text: &str) -> String {
        self.paint("1;32", text)
    }

    /// The separator between the parts of a line.
    pub fn dot(self) -> &'static str {
        if self.unicode { " · " } else { " - " }
    }

    /// The text with signs outside ASCII replaced, where the terminal has none.
    pub fn marks(self, text: &str) -> String {
        if self.unicode {
            text.to_owned()
        } else {
            text.replace('…', "...").replace('·', "-").replace('✓', "ok")
        }
    }
}
