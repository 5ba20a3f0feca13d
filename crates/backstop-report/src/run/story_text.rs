//! The story of a run for a terminal.

use super::RunStory;
use super::sentences::{self, LINE_CHARS_MAX, OUTPUT_LINES_MAX};
use super::story::StoryEntry;
use super::{AttemptStory, clock};
use crate::Style;
use crate::list::{count, last_lines};
use backstop_core::{OutputLog, OutputStream, SafeText};

/// How many attempts and events are shown without their output: what fits on a screen.
const ENTRIES_MAX: usize = 5;

/// The story for a terminal, from its header to its ending, on about one screen: the most important
/// entries, and the end of the output of the last attempt that failed.
pub fn story(story: &RunStory, style: Style) -> String {
    let shown = most_important(story);
    let last_failed = story
        .entries
        .iter()
        .rposition(|entry| matches!(entry, StoryEntry::Attempt(attempt) if has_output(attempt)));
    let mut out = header(story, style);
    let (mut left_out, mut is_hinted) = (0, false);
    for (at, entry) in story.entries.iter().enumerate() {
        if !shown[at] {
            left_out += 1;
            continue;
        }
        out.push_str(&left_out_line(story, std::mem::take(&mut left_out), &mut is_hinted, style));
        let earlier = story.entries[..at].iter().zip(&shown).filter_map(|(entry, shown)| match entry {
            StoryEntry::Attempt(attempt) if *shown => Some(&**attempt),
            _ => None,
        });
        out.push_str(&entry_lines(story, entry, earlier, style));
        if let StoryEntry::Attempt(attempt) = entry
            && Some(at) == last_failed
        {
            out.push_str(&end_of_output(story, attempt, style));
        }
    }
    out.push_str(&left_out_line(story, left_out, &mut is_hinted, style));
    out.push_str(&ending(story, style));
    out
}

/// The story with every entry, and with all that was kept of the output of each attempt.
pub fn story_log(story: &RunStory, style: Style) -> String {
    let mut out = header(story, style);
    for entry in &story.entries {
        out.push_str(&entry_lines(story, entry, std::iter::empty(), style));
        if let StoryEntry::Attempt(attempt) = entry {
            out.push_str(&whole_output(attempt, style));
        }
    }
    out.push_str(&ending(story, style));
    out
}

fn header(story: &RunStory, style: Style) -> String {
    let dot = style.dot();
    let run = style.strong(&story.run.to_string());
    let ended = match sentences::outcome_word(story) {
        word @ ("done" | "running") => style.good(word),
        word => style.bad(word),
    };
    let about: Vec<String> = sentences::header(story).iter().map(|words| words.terminal(style)).collect();
    format!("{run}{dot}{}{dot}{ended}\n  {}\n", sentences::operation(story).terminal(style), about.join(dot))
}

fn ending(story: &RunStory, style: Style) -> String {
    let lines = sentences::ending_lines(story);
    let lines = lines.iter().map(|words| format!("{}\n", words.terminal(style)));
    std::iter::once("\n".to_owned()).chain(lines).collect()
}

/// Which entries are shown: all where there are few, else the first failure, attempts that did not
/// succeed at once, then what people did, then the rest; of these the latest.
fn most_important(story: &RunStory) -> Vec<bool> {
    let failed =
        |entry: &StoryEntry| matches!(entry, StoryEntry::Attempt(attempt) if attempt.fault.is_some());
    let first_failed = story.entries.iter().position(failed);
    let importance = |at: usize| match &story.entries[at] {
        _ if Some(at) == first_failed => 4,
        StoryEntry::Attempt(attempt) if attempt.success != Some(true) || attempt.recovery.is_some() => 3,
        StoryEntry::Note { kind: "override" | "deferred" | "run.resumed", .. } => 2,
        StoryEntry::Attempt(_) => 1,
        StoryEntry::Note { .. } => 0,
    };
    let mut by_importance: Vec<usize> = (0..story.entries.len()).rev().collect();
    by_importance.sort_by_key(|at| std::cmp::Reverse(importance(*at)));
    let mut shown = vec![false; story.entries.len()];
    for at in by_importance.into_iter().take(ENTRIES_MAX) {
        shown[at] = true;
    }
    shown
}

/// Says how many entries are left out here; the first time, also what shows them.
fn left_out_line(story: &RunStory, left_out: usize, is_hinted: &mut bool, style: Style) -> String {
    if left_out == 0 {
        return String::new();
    }
    let mut line = count(left_out as u64, "more attempt or event", "more attempts and events");
    if !std::mem::replace(is_hinted, true) {
        line.push_str(&format!(": `backstop explain --log {}` shows all", story.run));
    }
    format!("\n{}\n", style.faint(&line))
}

/// The lines of an entry. An attempt that failed like one of the `earlier` ones refers to it.
fn entry_lines<'s>(
    story: &RunStory,
    entry: &StoryEntry,
    earlier: impl Iterator<Item = &'s AttemptStory>,
    style: Style,
) -> String {
    match entry {
        StoryEntry::Attempt(attempt) => {
            attempt_lines(story, attempt, sentences::same_as(earlier, attempt), style)
        }
        StoryEntry::Note { at, kind, text, .. } => style.marks(&format!("\n{} {kind}: {text}\n", clock(*at))),
    }
}

fn attempt_lines(story: &RunStory, attempt: &AttemptStory, same_as: Option<u32>, style: Style) -> String {
    let dot = style.dot();
    let title = style.strong(&sentences::attempt_title(story, attempt).terminal(style));
    let mut out = format!("\n{title}{dot}{}\n", sentences::attempt_summary(story, attempt).join(dot));
    for words in sentences::attempt_details(attempt, same_as) {
        out.push_str(&format!("  {}\n", words.terminal(style)));
    }
    out
}

fn has_output(attempt: &AttemptStory) -> bool {
    attempt.log.as_ref().is_some_and(|log| !log.is_empty())
        || attempt.output.as_ref().is_some_and(|output| !output.is_empty())
}

/// The last lines of an attempt's output, some of each stream.
fn end_of_output(story: &RunStory, attempt: &AttemptStory, style: Style) -> String {
    let Some(log) = attempt.log.as_ref().filter(|log| !log.is_empty()) else {
        return excerpt(attempt, style);
    };
    let lines = log.last_lines(OUTPUT_LINES_MAX);
    let all = log.lines().filter(|(_, line)| !line.trim().is_empty()).count();
    let more = match all > lines.len() || log.parts.iter().any(|part| part.left_out_bytes > 0) {
        true => format!(" (`backstop explain --log {}` shows all of it)", story.run),
        false => String::new(),
    };
    let mut out = format!("  {}\n", style.faint(&format!("the end of its output{more}:")));
    let mark = mark_of(log);
    for (stream, line) in lines {
        out.push_str(&output_line(mark(stream), &SafeText::from(line).line(LINE_CHARS_MAX), style));
    }
    out
}

/// All that was kept of an attempt's output, in the order in which it was read.
fn whole_output(attempt: &AttemptStory, style: Style) -> String {
    let Some(log) = attempt.log.as_ref().filter(|log| !log.is_empty()) else {
        return match attempt.success {
            Some(false) => excerpt(attempt, style),
            _ => String::new(),
        };
    };
    let mark = mark_of(log);
    let mut out = format!("  {}\n", style.faint(&legend(log)));
    for part in &log.parts {
        if part.left_out_bytes > 0 {
            let gap = format!("({} bytes were not kept)", part.left_out_bytes);
            out.push_str(&output_line(mark(part.stream), &style.faint(&gap), style));
        }
        for line in part.text.raw().lines() {
            // Control characters are escaped; the line keeps its length.
            out.push_str(&output_line(mark(part.stream), &SafeText::from(line).terminal(), style));
        }
    }
    out
}

fn legend(log: &OutputLog) -> String {
    let has = |stream| log.parts.iter().any(|part| part.stream == stream);
    match (has(OutputStream::Stdout), has(OutputStream::Stderr)) {
        (true, true) => "its output, as far as it was kept (out: standard output, err: standard error):",
        (true, false) => "its standard output, as far as it was kept:",
        (false, true) => "its standard error, as far as it was kept:",
        (false, false) => "its output, as far as it was kept:",
    }
    .to_owned()
}

/// What stands before a line of a stream: nothing where there is only one.
fn mark_of(log: &OutputLog) -> impl Fn(OutputStream) -> &'static str {
    let first = log.parts.first().map(|part| part.stream);
    let several = log.parts.iter().any(|part| Some(part.stream) != first);
    move |stream| match stream {
        _ if !several => "",
        OutputStream::Stdout => "out ",
        OutputStream::Stderr => "err ",
        OutputStream::Both => "    ",
    }
}

/// The end of the output, of a run whose log was not kept.
fn excerpt(attempt: &AttemptStory, style: Style) -> String {
    let lines = attempt.output.as_ref().map(|output| last_lines(output, OUTPUT_LINES_MAX, LINE_CHARS_MAX));
    let Some(lines) = lines.filter(|lines| lines.iter().any(|line| !line.is_empty())) else {
        return String::new();
    };
    let mut out = format!("  {}\n", style.faint("the end of its output:"));
    for line in lines {
        out.push_str(&output_line("", &line, style));
    }
    out
}

fn output_line(mark: &str, line: &str, style: Style) -> String {
    format!("{}\n", style.marks(&format!("    {mark}| {line}")).trim_end())
}
