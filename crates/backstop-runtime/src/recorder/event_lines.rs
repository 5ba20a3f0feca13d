//! What is recorded as lines for programs, in one of the formats of the log.

use super::Observer;
use backstop_config::LogFormat;
use backstop_core::Event;

/// Prints every event that is recorded, on every surface: a JSON object or an EMIT line each.
pub struct EventLines {
    format: LogFormat,
    print: fn(&str),
}

impl EventLines {
    /// Prints in this format; nothing for the one that is for people, which each surface has in its
    /// own words. `print` gets whole lines.
    pub fn new(format: LogFormat, print: fn(&str)) -> Option<Self> {
        (format != LogFormat::Human).then_some(Self { format, print })
    }

    /// An event in this format, without a line end; nothing where the format has no line for it.
    pub fn line(format: LogFormat, event: &Event) -> Option<String> {
        match format {
            LogFormat::Json => Some(backstop_report::to_json(event)),
            LogFormat::Emit => backstop_report::event_emit(event),
            LogFormat::Human => None,
        }
    }
}

impl Observer for EventLines {
    fn recorded(&self, events: &[Event]) {
        let lines = events.iter().filter_map(|event| Self::line(self.format, event));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        if !text.is_empty() {
            (self.print)(&text);
        }
    }
}
