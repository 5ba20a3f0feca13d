//! The story of a run for a terminal.

use super::RunStory;
use super::sentences::{self, LINE_CHARS_MAX, OUTPUT_LINES_MAX};
use super::story::StoryEntry;
use super::{AttemptStory, clock};
use crate::Style;
use crate::list::last_lines;

/// The story for a terminal, from its header to its ending.
pub fn story(story: &RunStory, style: Style) -> String {
    let dot = style.dot();
    let run = style.strong(&story.run.to_string());
    let ended = match sentences::outcome_word(story) {
        "done" => style.good("done"),
        word => style.bad(word),
    };
    let mut out = format!("{run}{dot}{}{dot}{ended}\n", sentences::operation(story).terminal(style));
    let about: Vec<String> = sentences::header(story).iter().map(|words| words.terminal(style)).collect();
    out.push_str(&format!("  {}\n", about.join(dot)));
    for entry in &story.entries {
        out.push('\n');
        match entry {
            StoryEntry::Attempt(attempt) => attempt_lines(story, attempt, style, &mut out),
            StoryEntry::Note { at, kind, text } => {
                out.push_str(&style.marks(&format!("{} {kind}: {text}\n", clock(*at))));
            }
        }
    }
    out.push('\n');
    for words in sentences::ending_lines(story) {
        out.push_str(&format!("{}\n", words.terminal(style)));
    }
    out
}

fn attempt_lines(story: &RunStory, attempt: &AttemptStory, style: Style, out: &mut String) {
    let dot = style.dot();
    let title = style.strong(&sentences::attempt_title(story, attempt).terminal(style));
    out.push_str(&format!("{title}{dot}{}\n", sentences::attempt_summary(story, attempt).join(dot)));
    for words in sentences::attempt_details(attempt) {
        out.push_str(&format!("  {}\n", words.terminal(style)));
    }
    let lines = attempt.output.as_ref().map(|output| last_lines(output, OUTPUT_LINES_MAX, LINE_CHARS_MAX));
    if let Some(lines) = lines.filter(|lines| lines.iter().any(|line| !line.is_empty())) {
        out.push_str(&format!("  {}\n", style.faint("the end of its output:")));
        for line in lines {
            out.push_str(style.marks(&format!("    | {line}")).trim_end());
            out.push('\n');
        }
    }
}
