//! A notice for Markdown: a heading, and a list of labels. Text from outside is in code spans and
//! code blocks only.

use super::terminal::{MESSAGE_CHARS_MAX, MESSAGE_LINES_MAX};
use super::{Field, ITEMS_MAX, Marker, NAMES_MAX, Notice, Part, Value, Words, code_span, params};
use crate::list;
use backstop_core::SafeText;

impl Notice {
    /// The notice in Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("### {}\n", self.title);
        let mut in_list = None;
        for part in &self.parts {
            let (item, text) = match self.part_markdown(part) {
                Some(shown) => shown,
                None => continue,
            };
            if in_list != Some(item) || !item {
                out.push('\n');
            }
            in_list = Some(item);
            out.push_str(&text);
        }
        out
    }

    /// The text of a part, and whether it is an item of the list of labels.
    fn part_markdown(&self, part: &Part) -> Option<(bool, String)> {
        Some(match part {
            Part::Reason => {
                let reason = self.reason?;
                (true, format!("- **Reason:** `{reason}` ({})\n", reason.class()))
            }
            Part::Field(field) => (true, field_item(field)),
            Part::List(_, label, marker, items) => (true, list_item(label, *marker, items)),
            Part::Line(_, words) => (false, format!("{}\n", words.markdown())),
            Part::Next => (true, format!("- **Next:** {}\n", self.next.markdown())),
            Part::Gap | Part::Data(..) => return None,
        })
    }
}

fn list_item(label: &str, marker: Marker, items: &[Words]) -> String {
    let mut out = format!("- **{label}:**\n");
    for (n, item) in items.iter().take(ITEMS_MAX).enumerate() {
        let mark = match marker {
            Marker::Paren | Marker::Number => format!("{}. ", n + 1),
            Marker::Indent => "- ".to_owned(),
        };
        out.push_str(&format!("  {mark}{}\n", item.markdown()));
    }
    if items.len() > ITEMS_MAX {
        out.push_str(&format!("  -{}\n", list::more(items.len(), ITEMS_MAX)));
    }
    out
}

fn field_item(field: &Field) -> String {
    let text = match &field.value {
        Value::Line(words) => words.markdown(),
        Value::Message(text) => return message_item(field.label, text),
        Value::Names(names) => Words::names(names, NAMES_MAX).markdown(),
        Value::Bracketed(names) => Words::names(names, ITEMS_MAX).markdown(),
        Value::Params(given) => params(given).markdown(),
    };
    format!("- **{}:** {text}\n", field.label)
}

fn message_item(label: &str, text: &SafeText) -> String {
    let mut lines = list::lines(text, MESSAGE_CHARS_MAX);
    match lines.as_slice() {
        [only] if only.is_empty() => return format!("- **{label}:** (no message)\n"),
        [_] => return format!("- **{label}:** {}\n", code_span(text, MESSAGE_CHARS_MAX)),
        _ => {}
    }
    let rest = lines.len().saturating_sub(MESSAGE_LINES_MAX);
    lines.truncate(MESSAGE_LINES_MAX);
    if rest > 0 {
        lines.push(format!("and {rest} more lines"));
    }
    format!("- **{label}:**\n\n{}", list::fence(&lines, "  "))
}
