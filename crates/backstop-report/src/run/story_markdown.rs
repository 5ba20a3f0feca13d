//! The story of a run for Markdown. Text from outside is in code spans and code blocks only.

use super::sentences::{self, LINE_CHARS_MAX, OUTPUT_LINES_MAX};
use super::{RunStory, StoryEntry, clock};
use crate::list::{fence, last_lines};
use crate::notice::Words;

/// The story in Markdown, from its header to its ending.
pub fn story_markdown(story: &RunStory) -> String {
    let operation = sentences::operation(story).markdown();
    let mut out = format!("## {}: {}\n\n{operation}\n\n", story.run, sentences::outcome_word(story));
    out.push_str(&items(&sentences::header(story)));
    for entry in &story.entries {
        match entry {
            StoryEntry::Attempt(attempt) => {
                out.push_str(&format!("\n### {}\n\n", sentences::attempt_title(story, attempt).markdown()));
                out.push_str(&format!("- {}\n", sentences::attempt_summary(story, attempt).join(" · ")));
                out.push_str(&items(&sentences::attempt_details(attempt)));
                let lines = attempt
                    .output
                    .as_ref()
                    .map(|output| last_lines(output, OUTPUT_LINES_MAX, LINE_CHARS_MAX));
                if let Some(lines) = lines.filter(|lines| lines.iter().any(|line| !line.is_empty())) {
                    out.push_str(&format!("\nThe end of its output:\n\n{}", fence(&lines, "")));
                }
            }
            StoryEntry::Note { at, kind, text } => {
                let text = Words::outside(&text.as_str().into()).markdown();
                out.push_str(&format!("\n**{kind}** at {}: {text}\n", clock(*at)));
            }
        }
    }
    out.push_str("\n### The end\n\n");
    out.push_str(&items(&sentences::ending_lines(story)));
    out
}

fn items(lines: &[Words]) -> String {
    lines.iter().map(|words| format!("- {}\n", words.markdown())).collect()
}
