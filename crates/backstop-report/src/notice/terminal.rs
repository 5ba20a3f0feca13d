//! A notice for a terminal: the seeds' labels, in their order.

use super::{Field, ITEMS_MAX, Marker, NAMES_MAX, Notice, Part, Value, Words, params, reason_words};
use crate::width::width;
use crate::{Style, list};
use backstop_core::SafeText;

/// How many lines of a message are shown.
pub(super) const MESSAGE_LINES_MAX: usize = 12;
/// How much of a line of a message is shown.
pub(super) const MESSAGE_CHARS_MAX: usize = 300;

impl Notice {
    /// The notice for a terminal.
    pub fn terminal(&self, style: Style) -> String {
        let mut out = String::new();
        if self.heading {
            let title = style.marks(&self.title);
            out.push_str(&format!("{}\n{}\n\n", style.strong(&title), "=".repeat(width(&title))));
        }
        for part in &self.parts {
            self.part(part, style, &mut out);
        }
        out
    }

    fn part(&self, part: &Part, style: Style, out: &mut String) {
        match part {
            Part::Reason => {
                if let Some(reason) = self.reason {
                    out.push_str(&format!("Reason: {}\n", style.bad(&reason_words(reason))));
                }
            }
            Part::Field(field) => field_lines(field, style, out),
            Part::List(_, label, marker, items) => {
                out.push_str(&format!("{label}:\n"));
                items_lines(*marker, items, style, out);
            }
            Part::Line(_, words) => out.push_str(&format!("{}\n", words.terminal(style))),
            Part::Next => out.push_str(&format!("Next: {}\n", self.next.terminal(style))),
            Part::Gap => out.push('\n'),
            Part::Data(..) => {}
        }
    }
}

fn items_lines(marker: Marker, items: &[Words], style: Style, out: &mut String) {
    for (n, item) in items.iter().take(ITEMS_MAX).enumerate() {
        let mark = match marker {
            Marker::Paren => format!("{}) ", n + 1),
            Marker::Number => format!("{}. ", n + 1),
            Marker::Indent => "  ".to_owned(),
        };
        out.push_str(&format!("{mark}{}\n", item.terminal(style)));
    }
    if items.len() > ITEMS_MAX {
        out.push_str(&format!(" {}\n", list::more(items.len(), ITEMS_MAX)));
    }
}

fn field_lines(field: &Field, style: Style, out: &mut String) {
    let text = match &field.value {
        Value::Line(words) => words.terminal(style),
        Value::Message(text) => return message_lines(field.label, text, style, out),
        Value::Names(names) => Words::names(names, NAMES_MAX).terminal(style),
        Value::Bracketed(names) if names.is_empty() => "[]".to_owned(),
        Value::Bracketed(names) => format!("[{}]", Words::names(names, ITEMS_MAX).terminal(style)),
        Value::Params(given) => params(given).terminal(style),
    };
    out.push_str(&format!("{}: {text}\n", field.label));
}

/// The first line beside the label, the others below it.
fn message_lines(label: &str, text: &SafeText, style: Style, out: &mut String) {
    let lines = list::lines(text, MESSAGE_CHARS_MAX);
    let first = lines.first().filter(|line| !line.is_empty()).map_or("(no message)", String::as_str);
    out.push_str(&format!("{label}: {}\n", style.marks(first)));
    for line in lines.iter().take(MESSAGE_LINES_MAX).skip(1) {
        out.push_str(format!("  {}", style.marks(line)).trim_end());
        out.push('\n');
    }
    if lines.len() > MESSAGE_LINES_MAX {
        out.push_str(&format!("  and {} more lines\n", lines.len() - MESSAGE_LINES_MAX));
    }
}
