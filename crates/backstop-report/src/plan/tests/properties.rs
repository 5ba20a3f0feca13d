//! Whatever phases are called: only commands are too wide, and nothing controls the terminal.

use super::super::row::{Widths, line};
use super::super::*;
use super::ASCII;
use crate::samples::tests::{is_unsafe, texts};
use crate::samples::{Texts, plan_events, plans};
use crate::to_json;
use backstop_core::Timestamp;
use proptest::prelude::*;

/// The text without Backstop's own colour codes.
fn bare(text: &str) -> String {
    ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[1;32m"]
        .iter()
        .fold(text.to_owned(), |text, code| text.replace(code, ""))
}

fn styles() -> [Style; 4] {
    [(false, false), (false, true), (true, false), (true, true)]
        .map(|(colour, unicode)| Style { colour, unicode })
}

/// Checks that every line is within the width, but for lines with one of these commands.
fn fits(text: &str, width: usize, commands: &[String]) {
    let text = bare(text);
    assert!(!text.chars().any(is_unsafe), "{text:?}");
    for line in text.lines() {
        let held = commands.iter().any(|command| !command.is_empty() && line.contains(command));
        assert!(held || crate::width::width(line) <= width, "{width}: {line:?}\n{text}");
    }
}

/// The live view, for each style.
fn check_view(t: &Texts, width: usize, height: usize) {
    let rows = plans::rows(t);
    for style in styles() {
        let view = live_view(&rows, plans::progress(t), width, height, style);
        assert!(view.len() <= height && view.iter().all(|line| !line.contains('\n')), "{height}: {view:?}");
        fits(&view.join("\n"), width, &[]);
    }
}

/// Every other text, for each style.
fn check_texts(t: &Texts, width: usize) {
    let span = |text: &SafeText| SafeText::new(format!("`{}`", text.raw().replace('`', "'")));
    let mut commands = vec![command(&t.command), command(&span(&t.check))];
    // A note, or a file that a step names, may look as if it had a command.
    let ticks = [&t.absent, &t.file].iter().any(|text| text.raw().contains('`'));
    commands.extend(ticks.then(|| "`".to_owned()));
    for style in styles() {
        let boxed = width.clamp(40, 100);
        fits(&halt_summary(&plans::halt(t), width, style), boxed, &commands);
        fits(&completion_summary(&plans::completion(t), width, style), boxed, &commands);
        fits(&dry_run(&plans::dry(t), width, style), width.max(6), &commands);
        fits(&plan_status(&plans::status(t), width, style), width.max(6), &commands);
        for change in plan_events::changes(t) {
            let line = bare(&plain_line(&change, style));
            assert!(!line.contains('\n') && !line.chars().any(is_unsafe), "{line:?}");
        }
    }
}

/// What is written for programs: one line each.
fn check_data(t: &Texts) {
    for event in plan_events::log_events(t) {
        let line = log_line(Timestamp::from_millis(0), &event);
        assert!(!line.contains('\n') && !line.chars().any(is_unsafe), "{line:?}");
    }
    for json in [
        halt_json(&plans::halt(t)),
        completion_json(&plans::completion(t)),
        dry_run_json(&plans::dry(t)),
        plan_status_json(&plans::status(t)),
    ] {
        let printed = to_json(&json);
        assert!(!printed.contains('\n') && !printed.chars().any(is_unsafe), "{printed:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), json);
    }
}

/// The same text everywhere.
fn all(text: &str) -> Texts {
    let text = SafeText::from(text);
    Texts {
        tool: text.clone(),
        message: text.clone(),
        param: (text.clone(), text.clone()),
        id: text.clone(),
        file: text.clone(),
        test: text.clone(),
        command: text.clone(),
        check: text.clone(),
        plan: text.clone(),
        absent: text.clone(),
        problem: text,
    }
}

#[test]
fn hostile_names_change_no_layout() {
    let texts = [
        "\x1b[2J\x1b[31mred\x1b]0;title\x07".to_owned(),
        "two\nlines\r\nand\ta tab".to_owned(),
        "\u{202e}desrever\u{202c} \u{200b}hidden\u{feff}".to_owned(),
        "日本語のとても長い名前".repeat(310),
        "x".repeat(10_240),
        "word ".repeat(2_048),
        "🚀⏸\u{fe0f}e\u{301}".repeat(500),
        "`a` ` ``` `".to_owned(),
        String::new(),
        "   ".to_owned(),
    ];
    for text in &texts {
        let texts = all(text);
        for (width, height) in [(0, 5), (1, 2), (7, 100), (40, 1), (40, 100), (80, 0), (200, 100)] {
            check_view(&texts, width, height);
        }
        for width in [40, 80, 200] {
            check_texts(&texts, width);
        }
        check_data(&texts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn only_commands_are_too_wide_and_nothing_acts(
        texts in texts(), width in prop_oneof![Just(40usize), Just(80), Just(200), 0usize..220], height in 0usize..16,
    ) {
        check_view(&texts, width, height);
        check_texts(&texts, width);
        check_data(&texts);
    }

    #[test]
    fn plain_terminals_get_plain_characters(text in "[ -~]{0,60}") {
        let t = all(&text);
        let mut rows = plans::rows(&t);
        rows.iter_mut().for_each(|row| row.name = t.test.clone());
        let mut shown = live_view(&rows, plans::progress(&t), 80, 6, ASCII);
        shown.extend(rows.iter().map(|row| line(row, Widths::of(&rows, 80), ASCII).show(ASCII)));
        shown.push(halt_summary(&plans::halt(&t), 50, ASCII));
        shown.push(completion_summary(&plans::completion(&t), 80, ASCII));
        shown.push(dry_run(&plans::dry(&t), 40, ASCII));
        shown.push(plan_status(&PlanStatus { rows, ..plans::status(&t) }, 60, ASCII));
        shown.extend(plan_events::changes(&t).iter().map(|change| plain_line(change, ASCII)));
        for text in shown {
            prop_assert!(text.is_ascii(), "{text}");
        }
    }
}
