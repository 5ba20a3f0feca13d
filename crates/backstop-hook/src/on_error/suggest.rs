//! Suggests the known command that is nearest to a mistyped one.

use backstop_core::SafeText;
use backstop_core::nearest::nearest;
use backstop_report::TaskCommand;

/// How much of a message is looked at.
const MESSAGE_CHARS_MAX: usize = 500;
/// How many words of it.
const WORDS_MAX: usize = 60;

/// The mistyped text in `message` and the known command nearest to it. Quoted text is tried first;
/// no suggestion where the message names a known command.
pub fn suggest_command(message: &SafeText, commands: &[TaskCommand]) -> Option<(SafeText, SafeText)> {
    let message: String = message.raw().chars().take(MESSAGE_CHARS_MAX).collect();
    let names = || commands.iter().map(|command| command.name.raw());
    let is_known = |text: &str| names().any(|name| name.eq_ignore_ascii_case(text));
    let near = |text: &str| {
        let near = nearest(text, names()).filter(|_| !is_known(text))?;
        Some((SafeText::new(text), SafeText::new(near)))
    };
    let quoted = quoted(&message);
    if quoted.iter().any(|text| is_known(text)) {
        return None;
    }
    quoted.iter().find_map(|text| near(text)).or_else(|| {
        let words: Vec<&str> = message.split_whitespace().take(WORDS_MAX).map(bare).collect();
        let mut lengths: Vec<usize> = names().map(|name| name.split_whitespace().count()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let runs = lengths.iter().rev().filter(|n| **n > 0).flat_map(|n| words.windows(*n));
        let runs: Vec<String> = runs.map(|run| run.join(" ")).filter(|run| run.len() > 3).collect();
        if runs.iter().any(|run| is_known(run)) { None } else { runs.iter().find_map(|run| near(run)) }
    })
}

/// A word without what stands around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '@' | '/' | '-' | '_'))
}

/// What stands in backticks or quotes.
fn quoted(message: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for mark in ['`', '"', '\''] {
        let parts: Vec<&str> = message.split(mark).collect();
        let inside = parts.iter().enumerate().filter(|(n, _)| n % 2 == 1 && n + 1 < parts.len());
        all.extend(inside.map(|(_, text)| text.trim()).filter(|text| !text.is_empty()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_command_is_found_where_one_is_near() {
        let commands = ["@agent review", "@agent test", "@agent explain", "deploy"];
        let commands: Vec<TaskCommand> = commands
            .iter()
            .map(|name| TaskCommand { name: (*name).into(), about: SafeText::default() })
            .collect();
        let cases = [
            ("The command `@agent reviw` was not recognized", Some("@agent review")),
            ("unknown command \"dploy\"", Some("deploy")),
            ("could not run @agent exlpain.", Some("@agent explain")),
            ("unknown: depoly", Some("deploy")),
            ("`@agent review` failed", None),
            ("`xyzzy` is not known", None),
            ("", None),
            ("don't know what it is", None),
        ];
        for (message, want) in cases {
            let got = suggest_command(&message.into(), &commands)
                .map(|(_, suggestion)| suggestion.raw().to_owned());
            assert_eq!(got.as_deref(), want, "{message}");
        }
        assert_eq!(suggest_command(&"x".into(), &[]), None);
    }
}
