//! Colour and marks, where they are wanted.

/// How to dress text for a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colour.
    pub colour: bool,
    /// Whether marks outside ASCII may be used.
    pub unicode: bool,
}

impl Style {
    /// Without colour, with every mark: what snapshots and files use.
    pub const PLAIN: Style = Style { colour: false, unicode: true };

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// What matters most.
    pub fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// What may be passed over.
    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// What went wrong.
    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// What went well.
    pub fn good(self, text: &str) -> String {
        self.paint("1;32", text)
    }

    /// The separator between the parts of a line.
    pub fn dot(self) -> &'static str {
        if self.unicode { " · " } else { " - " }
    }

    /// The text with marks outside ASCII taken out, where the terminal has none.
    pub fn marks(self, text: &str) -> String {
        if self.unicode {
            text.to_owned()
        } else {
            text.replace('…', "...").replace('·', "-").replace('✓', "ok")
        }
    }
}
