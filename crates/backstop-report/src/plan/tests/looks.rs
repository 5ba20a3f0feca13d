//! How each text looks, with and without marks, and where long lists are folded.

use super::super::row::{Widths, line};
use super::super::*;
use super::{ASCII, seed};
use crate::samples::{plan_events, plans};
use backstop_core::{Reason, Timestamp, WorkAt};
use std::time::Duration;

const COLOUR: Style = Style { colour: true, unicode: true };

fn view(width: usize, height: usize, style: Style) -> String {
    let texts = seed();
    live_view(&plans::rows(&texts), plans::progress(&texts), width, height, style).join("\n")
}

#[test]
fn phases_stand_below_each_other() {
    insta::assert_snapshot!("live_utf8", view(110, 40, Style::PLAIN));
    insta::assert_snapshot!("live_ascii", view(110, 40, ASCII));
    insta::assert_snapshot!("live_colour", view(80, 40, COLOUR).replace('\x1b', "\\e"));
    insta::assert_snapshot!("live_narrow", view(40, 40, Style::PLAIN));
}

#[test]
fn lines_of_phases_are_aligned() {
    let row =
        |id: &str, name: &str, state| PhaseRow { state, ..PhaseRow::pending(id.into(), name.into(), 2) };
    let time = |seconds| Some(Duration::from_secs(seconds));
    let rows = [
        PhaseRow {
            elapsed: time(135),
            commit: Some(("a1b2c3d".into(), "chore(bootstrap): add quality tools".into())),
            ..row("0", "Bootstrap", PhaseState::Complete)
        },
        PhaseRow {
            elapsed: time(260),
            attempt: 2,
            error: Some((Reason::TestFailure, "3 tests in auth.test.ts".into())),
            ..row("2A", "Backend", PhaseState::Running)
        },
        PhaseRow { elapsed: time(242), ..row("2B", "Frontend", PhaseState::Complete) },
        PhaseRow { waits_for: vec!["2A".into()], ..row("3", "Integration", PhaseState::Pending) },
    ];
    let widths = Widths::of(&rows, 100);
    let lines: Vec<String> =
        rows.iter().map(|row| line(row, widths, Style::PLAIN).show(Style::PLAIN)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_screen_that_is_too_small_keeps_what_runs_and_what_failed() {
    insta::assert_snapshot!("live_folded", view(80, 10, Style::PLAIN));
    insta::assert_snapshot!("live_folded_ascii", view(80, 10, ASCII));
    insta::assert_snapshot!("live_tiny", view(60, 4, Style::PLAIN));
    assert_eq!(view(80, 1, Style::PLAIN).lines().count(), 1);
    assert_eq!(view(80, 0, Style::PLAIN), "");
}

#[test]
fn a_thousand_phases_fit_on_a_screen() {
    let row = |n: usize| PhaseRow {
        state: match n {
            0..700 => PhaseState::Complete,
            700..702 => PhaseState::Running,
            702 => PhaseState::Failed,
            _ => PhaseState::Pending,
        },
        ..PhaseRow::pending(SafeText::new(n.to_string()), SafeText::new(format!("Step {n}")), 2)
    };
    let rows: Vec<PhaseRow> = (0..1_000).map(row).collect();
    let bar = Progress::of(&rows, Duration::from_secs(9_000), None);
    insta::assert_snapshot!(live_view(&rows, bar, 80, 8, Style::PLAIN).join("\n"));
}

#[test]
fn every_change_has_a_line() {
    let lines = |style| {
        let lines: Vec<String> =
            plan_events::changes(&seed()).iter().map(|change| plain_line(change, style)).collect();
        lines.join("\n")
    };
    insta::assert_snapshot!("changes", lines(Style::PLAIN));
    assert!(lines(ASCII).is_ascii());
}

#[test]
fn every_event_has_a_line_in_the_log() {
    let at = Timestamp::parse_rfc3339("2026-11-16T02:00:00Z").unwrap();
    let lines: Vec<String> =
        plan_events::log_events(&seed()).iter().map(|event| log_line(at, event)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_halt_says_what_is_done_what_failed_and_how_it_goes_on() {
    let halt = plans::halt(&seed());
    insta::assert_snapshot!("halt_utf8", halt_summary(&halt, 80, Style::PLAIN));
    insta::assert_snapshot!("halt_ascii", halt_summary(&halt, 80, ASCII));
    insta::assert_snapshot!("halt_narrow", halt_summary(&halt, 40, Style::PLAIN));
    insta::assert_snapshot!("halt_colour", halt_summary(&halt, 80, COLOUR).replace('\x1b', "\\e"));
    let json = serde_json::to_string_pretty(&halt_json(&halt)).unwrap();
    insta::assert_snapshot!("halt_json", json);
}

#[test]
fn sections_without_entries_are_left_out_and_an_interruption_names_its_reason() {
    let halt = HaltSummary {
        reason: Reason::Interrupted,
        reason_line: "interrupted by Ctrl-C".into(),
        completed: vec![],
        failed: vec![],
        blocked: vec![],
        pending: vec![],
        steps: vec![],
        ..plans::halt(&seed())
    };
    insta::assert_snapshot!("halt_interrupted", halt_summary(&halt, 80, Style::PLAIN));
}

#[test]
fn a_thousand_completed_phases_are_folded() {
    let mut halt = plans::halt(&seed());
    let phase = |n: usize| CompletedPhase {
        id: SafeText::new(n.to_string()),
        name: "Step".into(),
        ..CompletedPhase::default()
    };
    halt.completed = (1..=1_000).map(phase).collect();
    let text = halt_summary(&halt, 80, Style::PLAIN);
    for shown in ["Phase 1: ", "Phase 2: ", "… and 996 more", "Phase 999: ", "Phase 1000: "] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for folded in ["Phase 5: ", "Phase 998: "] {
        assert!(!text.contains(folded), "{folded}");
    }
    assert!(text.lines().count() <= 40, "it fits one screen: {text}");
    assert_eq!(halt_json(&halt)["completed"].as_array().unwrap().len(), 1_000);
}

#[test]
fn a_long_command_stands_out_of_the_box_whole() {
    let mut halt = plans::halt(&seed());
    let long = format!("backstop run {} --resume", "folder/".repeat(40));
    halt.resume = SafeText::new(long.clone());
    halt.steps = vec![SafeText::new(format!("Type `{long}` and wait"))];
    let text = halt_summary(&halt, 60, Style::PLAIN);
    assert_eq!(text.matches(&long).count(), 2, "{text}");
    assert!(text.lines().any(|line| line.ends_with(&format!("Run: {long}"))), "{text}");
}

#[test]
fn a_completion_says_where_the_work_is() {
    let completion = plans::completion(&seed());
    insta::assert_snapshot!("completion_utf8", completion_summary(&completion, 80, Style::PLAIN));
    insta::assert_snapshot!("completion_ascii", completion_summary(&completion, 80, ASCII));
    let landed = Completion {
        work: WorkAt::Landed { branch: "main".into(), sha: "a1b2c3d".into() },
        notes: vec![],
        usage: None,
        ..completion.clone()
    };
    insta::assert_snapshot!("completion_landed", completion_summary(&landed, 70, Style::PLAIN));
    let json = serde_json::to_string_pretty(&completion_json(&completion)).unwrap();
    insta::assert_snapshot!("completion_json", json);
}

#[test]
fn a_dry_run_says_what_would_be_done() {
    let dry = plans::dry(&seed());
    insta::assert_snapshot!("dry_run_utf8", dry_run(&dry, 110, Style::PLAIN));
    insta::assert_snapshot!("dry_run_ascii", dry_run(&dry, 80, ASCII));
    insta::assert_snapshot!("dry_run_json", serde_json::to_string_pretty(&dry_run_json(&dry)).unwrap());
}

#[test]
fn a_status_says_where_a_run_stands() {
    let status = plans::status(&seed());
    insta::assert_snapshot!("status_utf8", plan_status(&status, 110, Style::PLAIN));
    insta::assert_snapshot!("status_ascii", plan_status(&status, 80, ASCII));
    insta::assert_snapshot!("status_json", serde_json::to_string_pretty(&plan_status_json(&status)).unwrap());
    let heads: Vec<String> = [RunState::Running { pid: 4711 }, RunState::Complete, RunState::Interrupted]
        .map(|state| {
            plan_status(&PlanStatus { state, rows: vec![], next: None, ..status.clone() }, 80, ASCII)
        })
        .to_vec();
    insta::assert_snapshot!("status_states", heads.join("\n"));
}
