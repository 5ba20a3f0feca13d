//! The story of a run for Markdown. Text from outside is in code spans and code blocks only.

use super::sentences::{self, LINE_CHARS_MAX, OUTPUT_LINES_MAX};
use super::{AttemptStory, RunStory, StoryEntry, clock};
use crate::list::{fence, last_lines};
use crate::notice::Words;
use backstop_core::{OutputStream, SafeText};

/// The story in Markdown, from its header to its ending; with `log`, all that was kept of the
/// output of each attempt.
pub fn story_markdown(story: &RunStory, log: bool) -> String {
    let operation = sentences::operation(story).markdown();
    let mut out = format!("## {}: {}\n\n{operation}\n\n", story.run, sentences::outcome_word(story));
    out.push_str(&items(&sentences::header(story)));
    for entry in &story.entries {
        match entry {
            StoryEntry::Attempt(attempt) => {
                out.push_str(&format!("\n### {}\n\n", sentences::attempt_title(story, attempt).markdown()));
                out.push_str(&format!("- {}\n", sentences::attempt_summary(story, attempt).join(" · ")));
                out.push_str(&items(&sentences::attempt_details(attempt, None)));
                out.push_str(&output(attempt, log));
            }
            StoryEntry::Note { at, kind, text, .. } => {
                let text = Words::outside(&text.as_str().into()).markdown();
                out.push_str(&format!("\n**{kind}** at {}: {text}\n", clock(*at)));
            }
        }
    }
    out.push_str("\n### The end\n\n");
    out.push_str(&items(&sentences::ending_lines(story)));
    out
}

/// The output of an attempt: its end, or all of it.
fn output(attempt: &AttemptStory, in_full: bool) -> String {
    let escaped = |(stream, line): (OutputStream, &str), chars_max: usize| {
        format!("{}: {}", stream.name(), SafeText::from(line).line(chars_max)).trim_end().to_owned()
    };
    let lines: Vec<String> = match (&attempt.log, &attempt.output) {
        (Some(log), _) if in_full => log.lines().map(|line| escaped(line, usize::MAX)).collect(),
        (Some(log), _) => {
            let lines = log.last_lines(OUTPUT_LINES_MAX);
            lines.into_iter().map(|line| escaped(line, LINE_CHARS_MAX)).collect()
        }
        (None, Some(output)) => last_lines(output, OUTPUT_LINES_MAX, LINE_CHARS_MAX),
        (None, None) => Vec::new(),
    };
    if lines.iter().all(String::is_empty) {
        return String::new();
    }
    let title = if in_full && attempt.log.is_some() { "Its output" } else { "The end of its output" };
    format!("\n{title}:\n\n{}", fence(&lines, ""))
}

fn items(lines: &[Words]) -> String {
    lines.iter().map(|words| format!("- {}\n", words.markdown())).collect()
}
