//! Snapshots of every text, and the property that each names class, cause, operation, parameters
//! and a next step.

use super::alerts::alerts;
use super::fresh_starts::fresh_starts;
use super::hooks::{check_hooks, hook_texts};
use super::plans::halt;
use super::tools::{seed_variants, tools, variants};
use super::{Sample, Texts};
use crate::plan::{halt_json, halt_summary};
use crate::*;
use backstop_core::SafeText;
use proptest::prelude::*;

fn shown(notice: &Notice) -> String {
    format!(
        "{}\n---- markdown\n{}\n---- json\n{}",
        notice.terminal(Style::PLAIN),
        notice.markdown(),
        serde_json::to_string_pretty(&notice.json()).unwrap()
    )
}

/// One of each notice.
fn notices(texts: &Texts) -> Vec<Sample> {
    [tools(texts), fresh_starts(texts), alerts(texts)].into_iter().flatten().collect()
}

#[test]
fn every_notice_in_every_rendering() {
    let texts = Texts::seed();
    for sample in notices(&texts) {
        insta::assert_snapshot!(sample.name, shown(&sample.notice));
    }
    for (name, notice) in seed_variants() {
        insta::assert_snapshot!(name, shown(&notice));
    }
}

#[test]
fn every_text_of_a_hook() {
    for (name, text) in hook_texts(&Texts::seed()) {
        insta::assert_snapshot!(name, text);
    }
}

/// The text with every run of white space replaced by one space.
pub(super) fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first characters of a text, as a terminal and a code span show them.
pub(super) fn beginning(text: &SafeText) -> String {
    let first = SafeText::from(text.raw().trim().split('\n').next().unwrap_or_default());
    one_spaced(first.line(12).trim_end_matches('…'))
}

/// Whether a character could control a terminal or mislead a reader.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn check(sample: &Sample) {
    let Sample { name, notice, cause, operation, key } = sample;
    let renderings = [("terminal", notice.terminal(Style::PLAIN)), ("markdown", notice.markdown())];
    for (how, text) in &renderings {
        assert!(!text.chars().any(is_unsafe), "{name}, {how}: {text:?}");
        let text = one_spaced(text);
        for wanted in [cause, operation].into_iter().chain(key) {
            assert!(text.contains(&beginning(wanted)), "{name}, {how}: no {wanted:?} in {text}");
        }
        if let Some(reason) = notice.reason() {
            assert!(
                text.contains(reason.code()) && text.contains(reason.class().name()),
                "{name}, {how}: {text}"
            );
        }
    }
    let next = one_spaced(&notice.next());
    assert!(
        !next.is_empty() && one_spaced(&renderings[0].1).contains(&next),
        "{name}: next is not shown: {next}"
    );
    let markdown = one_spaced(&notice.next_markdown());
    assert!(
        one_spaced(&renderings[1].1).contains(&markdown),
        "{name}: next is not shown in Markdown: {markdown}"
    );
    let printed = to_json(&notice.json());
    assert!(!printed.chars().any(is_unsafe) && !printed.contains('\n'), "{name}: {printed:?}");
    let back: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(back, notice.json(), "{name}");
    assert_eq!(back["reason"], serde_json::json!(notice.reason()), "{name}");
    assert!(back["next"].as_str().is_some_and(|next| !next.is_empty()), "{name}");
    let strings = strings(&back);
    for wanted in [cause, operation].into_iter().chain(key) {
        let wanted: String = wanted.raw().trim().chars().take(12).collect();
        assert!(
            strings.iter().any(|text| text.contains(&wanted)),
            "{name}, json: no {wanted:?} in {printed}"
        );
    }
}

/// The box of a halted run is no notice, and has to name the same things.
fn check_halt(texts: &Texts) {
    let halt = halt(texts);
    let boxed = halt_summary(&halt, 80, Style::PLAIN);
    assert!(!boxed.chars().any(is_unsafe), "halt: {boxed:?}");
    let inside = |line: &str| line.trim_start_matches('║').trim_end_matches('║').to_owned();
    let text = one_spaced(&boxed.lines().map(inside).collect::<Vec<_>>().join("\n"));
    for wanted in [&texts.message, &texts.id, &texts.plan] {
        assert!(text.contains(&beginning(wanted)), "halt: no {wanted:?} in {text}");
    }
    assert!(
        text.contains(&one_spaced(&texts.command.line(usize::MAX))),
        "halt: the command is not whole: {text}"
    );
    for reason in [halt.reason, halt.failed[0].error] {
        assert!(text.contains(&format!("{reason} ({})", reason.class())), "halt: no {reason} in {text}");
    }
    let printed = to_json(&halt_json(&halt));
    assert!(!printed.chars().any(is_unsafe) && !printed.contains('\n'), "halt: {printed:?}");
    let back: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(back, halt_json(&halt));
    assert_eq!(back["next"], texts.command.raw());
    let strings = strings(&back);
    for wanted in [&texts.message, &texts.id, &texts.plan] {
        let wanted: String = wanted.raw().trim().chars().take(12).collect();
        assert!(strings.iter().any(|text| text.contains(&wanted)), "halt, json: no {wanted:?} in {printed}");
    }
}

/// Every key and every string of a JSON value.
fn strings(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Array(list) => list.iter().flat_map(strings).collect(),
        serde_json::Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| [vec![key.clone()], strings(value)].concat()).collect()
        }
        _ => Vec::new(),
    }
}

fn nasty() -> impl Strategy<Value = SafeText> {
    let piece = prop_oneof![
        any::<String>(),
        Just("\x1b]0;x\x07\r\u{202e}".to_owned()),
        Just("``` `x` [a](http://b) <!-- @all".to_owned()),
        Just("x".repeat(2_000)),
        "[ -~]{0,40}",
        Just("\n\n\t\u{85}".to_owned()),
    ];
    prop::collection::vec(piece, 0..3).prop_map(|pieces| SafeText::new(pieces.concat()))
}

prop_compose! {
    pub(crate) fn texts()(
        tool in nasty(), message in nasty(), name in nasty(), value in nasty(),
        id in nasty(), file in nasty(), test in nasty(), command in nasty(), other in nasty(),
    ) -> Texts {
        let (check, plan) = (other.clone(), file.clone());
        let (absent, problem) = (message.clone(), other);
        Texts { tool, message, param: (name, value), id, file, test, command, check, plan, absent, problem }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn each_names_class_cause_operation_parameters_and_a_next_step(texts in texts()) {
        for sample in notices(&texts).iter().chain(&variants(&texts)) {
            check(sample);
        }
        check_halt(&texts);
        check_hooks(&texts);
    }
}

#[test]
fn no_key_is_used_twice() {
    for sample in notices(&Texts::seed()) {
        let mut keys = sample.notice.keys();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all, "{}: {keys:?}", sample.name);
    }
}
