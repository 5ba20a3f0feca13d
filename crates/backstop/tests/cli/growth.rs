//! The time that every reader of text from outside takes grows with the text and with nothing else.

#[path = "../../../backstop-core/tests/support/linear.rs"]
mod linear;

use backstop_classify::Classifier;
use backstop_core::{Clock, Hints, LimitWindow, Redactor, Signal, Timestamp, Zone, wait};
use backstop_llm::api::Api;
use backstop_llm::trim::{TrimOptions, trim};
use linear::assert_linear;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// How much of the largest text's size a reader may have in memory at once, beyond what it always
/// has.
const MEMORY_FACTOR_MAX: usize = 64;
/// What a reader may always have, in bytes.
const MEMORY_BYTES: usize = 8 << 20;
/// The largest text, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts what each thread has in memory.
struct Counting;

fn count(more: usize, less: usize) {
    // A thread that ends has no counters any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get().saturating_add(more).saturating_sub(less));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: everything is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the promises that this function asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that this thread has in memory while it reads, beyond what it had before, in bytes.
fn memory(read: &dyn Fn(&str), text: &str) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    read(text);
    PEAK.get().saturating_sub(before)
}

#[test]
fn twice_the_text_takes_about_twice_as_long_in_bounded_memory() {
    let classifier = Classifier::builtin();
    let classify = |text: &str| {
        let signal = Signal { exit: Some(1), stderr: text.as_bytes().to_vec(), ..Signal::default() };
        drop(classifier.classify(&signal));
    };
    let plan = |text: &str| drop(backstop_plan::document::parse(text.as_bytes()));
    let report = |text: &str| {
        let report = serde_json::json!({"task_data": {"task_id": "t"}, "error": {"type": "x", "message": "m",
            "stack_trace": text}, "context": {"partial_result": text, "other": text}});
        drop(backstop_hook::on_error::Report::read(report.to_string().as_bytes(), &Redactor::default()));
    };
    let json = |text: &str| drop(backstop_hook::parse(text.as_bytes()));
    let clock = Clock { now: Some(Timestamp::default()), zone: Zone::utc() };
    let headers = |text: &str| {
        let headers = Hints::parse_headers(text);
        let _ = Hints::read(&headers, serde_json::from_str(text).ok().as_ref(), &clock).wait();
    };
    let waits = |text: &str| {
        let _ = wait::in_output(text, &clock);
        let _ = wait::moment(text, &clock);
        let _ = LimitWindow::in_text(text);
    };
    let result = |text: &str| drop(backstop_work::agent::find_result(text.as_bytes(), "1"));
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let conversation = |text: &str| {
        let turn = |role: &str, words: &str| format!("{{\"role\":\"{role}\",\"content\":{}}}", quoted(words));
        let turns: Vec<String> = text.split_inclusive('\n').map(|words| turn("user", words)).collect();
        let body = format!("{{\"model\":\"m\",\"messages\":[{}]}}", turns.join(","));
        drop(trim(Api::Chat, body.as_bytes(), &TrimOptions::default()));
        drop(trim(Api::Anthropic, body.as_bytes(), &TrimOptions::default()));
    };
    let request = |text: &str| drop(trim(Api::Chat, text.as_bytes(), &TrimOptions::default()));
    type Reader<'r> = (&'r str, &'r dyn Fn(&str), &'r [&'r str]);
    let readers: [Reader<'_>; 9] = [
        (
            "classifier",
            &classify,
            &[
                "error: ",
                "-token",
                "retry after ",
                "Traceback (most recent call last):\n",
                "  at x (y.js:1:2)\n",
                "npm error ",
                "FAILED a::b\n",
                "\u{1b}[31m",
                "429 Too Many Requests ",
                "try again in 5 ",
            ],
        ),
        ("plan", &plan, &["| a ", "| 1 | x | y |\n", "- [ ] x\n", "## Phase 1: x\n", "```\n", "[", "*"]),
        ("report", &report, &["-token", "-----BEGIN ", "at x\n", "\\", "{"]),
        ("JSON", &json, &["[", "{\"a\":", "\"\\ud800", "{\"a\":1},", "\\"]),
        (
            "trim",
            &conversation,
            &["word ", "a\n", "![x](data:image/png;base64,AAAA)", "\"", "\\", "\u{1f600}"],
        ),
        ("request", &request, &["{\"messages\":[", "[", "{\"role\":\"user\"},", "\\u0000", "\""]),
        ("headers", &headers, &["retry-after: 1\n", "x-ratelimit-reset: ", ":", "a: b\r\n", "{\"error\":"]),
        (
            "waits",
            &waits,
            &[
                "try again in 5 ",
                "rate limit, resets at 3pm (Europe/Berlin)\n",
                "limit ",
                "limit\n",
                "retry_delay {\n",
                "{\"retry_after\":",
                "{\"error\":{\"details\":[",
                "resets Nov 20 ",
                "1h 2m ",
                "HTTP/1.1 429\n",
                "9",
            ],
        ),
        (
            "result",
            &result,
            &[
                "{",
                "{\"phase_id\":",
                "{\"phase_id\":\"1\"}",
                "{\"a\":\"",
                "```json\n{\"phase_id\"",
                "\\",
                "}",
            ],
        ),
    ];
    for (name, read, pieces) in readers {
        for piece in pieces {
            assert_linear(name, piece, TEXT_BYTES_MAX, read);
            let text = piece.repeat(TEXT_BYTES_MAX / piece.len());
            let used = memory(read, &text);
            let most = MEMORY_BYTES + MEMORY_FACTOR_MAX * text.len();
            assert!(used <= most, "{name}, {piece:?}: {used} bytes of memory for {} of text", text.len());
        }
    }
}

/// What plans of all formats are made of, again and again. `#` is a number that is another each
/// time.
const PIECES_OF_PLANS: &[&str] = &[
    "- [ ] x\n",
    "- [ ] T# [P] [US1] x in src/a#.rs\n",
    "- [ ] #. x\n  - _Requirements: 1.1, 2.3_\n",
    "  - [ ] x\n",
    "#. x (depends on 1)\n",
    "1. x\n   ```\n",
    "## #. x\n",
    "## Phase #: x\n**Depends on**: Phase 1\n",
    "### Task #: x\n- [ ] step\n",
    "### Iteration #: x\n",
    "| # | x | 1 | |\n",
    "x # needs 2 and 3.\n",
    "1 → (2 ∥ 3) → # ",
    "**Wave #**: 1, 2\n",
    "  key-#: ready-for-dev\n",
    "> ",
    "- ",
    "<!-- ",
    "---\n",
    "===\n",
    "{\"tasks\":[",
    "{\"id\":#,\"title\":\"x\",\"dependencies\":[1]},",
    "`",
    "#",
    "\t",
    "\u{2b1c} x\n",
];

#[test]
fn plans_of_every_format_are_read_in_time_that_grows_with_them() {
    use backstop_plan::document::{By, Format, PlanText, ReadOptions, read};
    const BYTES_MAX: usize = 16 << 10;
    // Where nobody says which it is, all are looked at.
    let formats: Vec<Option<Format>> = std::iter::once(None).chain(Format::ALL.map(Some)).collect();
    for piece in PIECES_OF_PLANS {
        let pieces: String = (1..=BYTES_MAX / piece.len())
            .map(|n| if piece.len() > 1 { piece.replace('#', &n.to_string()) } else { (*piece).to_owned() })
            .collect();
        // Cut at the end of a piece, more or less: texts of doubling size begin alike.
        let part = |text: &str| pieces.chars().take(text.len()).collect::<String>();
        for format in &formats {
            let is_json = matches!(format, Some(Format::TaskMaster | Format::Ralph));
            let (name, before) = match (format, is_json) {
                (Some(Format::Bmad), _) => ("sprint-status.yaml", "development_status:\n"),
                (_, true) => ("tasks.json", "{\"tasks\":["),
                _ => ("tasks.md", "# Tasks\n\n"),
            };
            for by in [None, Some(By::Task)].into_iter().take(if format.is_none() { 2 } else { 1 }) {
                let options = ReadOptions { format: *format, by };
                let reader = |text: &str| {
                    let text = format!("{before}{}", part(text));
                    drop(read(&[PlanText { name, text: text.as_bytes() }], &options));
                };
                assert_linear(&format!("{format:?} by {by:?}, {piece:?}"), "x", BYTES_MAX, &reader);
            }
        }
    }
}

#[test]
fn answers_of_planners_and_explorers_are_read_in_time_that_grows_with_them() {
    let planner = |text: &str| drop(backstop_campaign::planner_answer::PlannerAnswer::read(text));
    let pieces = [
        "```json\n{\"tasks\":[",
        "{\"tasks\":[{",
        "{",
        "}",
        "[",
        "\\",
        "\"",
        "## Blocking Questions\n- what?\n",
        "- [ ] x\n",
        "{\"id\":\"1\"},",
    ];
    let explorer = |text: &str| drop(backstop_campaign::explore::extract_json(text));
    for piece in pieces {
        assert_linear("planner", piece, TEXT_BYTES_MAX, &planner);
        assert_linear("explorer", piece, TEXT_BYTES_MAX, &explorer);
    }
}

#[test]
fn settings_of_a_project_are_read_in_time_that_grows_with_them() {
    let folder = crate::harness::Folder::outside("growth-settings");
    let around = backstop_config::Surroundings {
        cwd: folder.path().to_owned(),
        home: None,
        xdg_config_home: None,
        env: &|_| None,
        users: vec![rustix::process::geteuid().as_raw()],
        state_root: None,
    };
    let settings = |text: &str| {
        folder.file("backstop.toml", text);
        drop(backstop_config::load(&around, &[], &|_, _| false));
        drop(backstop_config::candidate(&around));
    };
    for piece in [
        "a = 1\n",
        "=",
        "a_key=",
        "a_key=b,",
        "[a.",
        "[[a]]\n",
        "a=\"",
        "{a={a=",
        "\"\"\"",
        "#",
        "mcp.a.env.X_KEY = \"plain-words\"\n",
        "mcp.from = [\"./a.json\"]\n",
        "\u{e9}=",
        "\n",
    ] {
        assert_linear("settings", piece, TEXT_BYTES_MAX / 4, &settings);
    }
}
