//! What a command shows, in its two forms.

use crate::{Style, to_json};
use serde_json::Value;

/// What a command shows: text for people, JSON for programs.
pub trait View {
    /// For people, with a line end after each line.
    fn text(&self, style: Style) -> String;

    /// For programs.
    fn json(&self) -> Value;

    /// The same as one line, safe to print on a terminal.
    fn json_line(&self) -> String {
        to_json(&self.json())
    }
}
