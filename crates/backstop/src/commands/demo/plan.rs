//! `backstop demo`: a plan with phases side by side, a failure, a retry that knows what failed, and
//! commits.

use super::Demo;
use super::scratch::Scratch;
use crate::error::{CliError, DONE, INTERRUPTED};
use crate::terminal;
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, Style, to_json};
use serde_json::{Value, json};
use std::process::Stdio;

const PLAN: &str = include_str!("plan.md");
const TESTS: &str = include_str!("tests.sh");

/// Two at once, however many cores there are: they sleep more than they work.
const RUN: &[&str] = &["run", "plan.md", "--commit", "auto", "--jobs", "2"];

const LOG: &[&str] = &["log", "--oneline", "--graph"];

/// What is worth a look afterwards, and why.
const LOOK: &[(&[&str], &str)] = &[
    (&["explain", "last"], "each attempt, what failed, which rule says so, what was decided"),
    (&["plan", "status"], "where each phase stands"),
    (&["plan", "logs", "2A", "--attempt", "1"], "what the attempt printed that failed"),
];

/// Runs the plan as `backstop run` does, in a process of its own, and shows what came of it.
pub(super) fn run(args: &Demo) -> Result<u8, CliError> {
    let scratch = Scratch::make()?;
    scratch.write("plan.md", PLAN)?;
    scratch.write("tests.sh", TESTS)?;
    scratch.make_repository()?;
    survive_interrupts();
    if args.json { run_as_json(&scratch) } else { run_for_people(&scratch) }
}

fn run_for_people(scratch: &Scratch) -> Result<u8, CliError> {
    let style = terminal::stdout_style();
    let shown = |words: &[&str]| style.strong(&format!("$ {}", words.join(" ")));
    let folder = SafeText::new(scratch.project().to_string_lossy()).line(usize::MAX);
    terminal::print(&format!(
        "A plan of four phases, in a new git repository: {folder}\n\
         Nothing else on this machine is changed, and nothing leaves it.\n\n{}\n",
        shown(&[&["backstop"], RUN].concat()),
    ))?;
    let status = scratch.backstop(RUN).status().map_err(cannot_run)?;
    let code = exit_code(status);
    if code != DONE {
        return not_done(scratch, code);
    }
    let log = SafeText::new(scratch.git(LOG)?).terminal();
    terminal::print(&format!(
        "\n{}\n{log}\n{}",
        shown(&[&["git"], LOG].concat()),
        what_was_seen(scratch, style),
    ))?;
    Ok(DONE)
}

fn what_was_seen(scratch: &Scratch, style: Style) -> String {
    let mut text = format!(
        "{}\n  \
         Phases 2A and 2B ran at the same time, each in a git worktree of its own.\n  \
         2A forgot a name, and the project's tests noticed: Backstop read their output and called it\n  \
         `test_failure`. The second attempt was told which test had failed, and passed.\n  \
         Each finished phase is a commit. The failed attempt is in none of them.\n\n{}\n",
        style.strong("What you saw"),
        style.strong("Look closer (the demo's state is apart from yours, so it has a script of its own)"),
    );
    for (words, why) in LOOK {
        text.push_str(&format!("  {}\n      {why}\n", scratch.typed(words)));
    }
    text.push_str(&format!(
        "\n{}\n  \
         backstop run PLAN.md --agent claude --commit auto     a plan of your own; --dry-run shows it first\n  \
         backstop exec -- npm test                             any command, classified and retried\n  \
         backstop demo command, backstop demo faults           more to watch\n",
        style.strong("Next"),
    ));
    text
}

/// The run as one object: its completion as `run --json` gives it, what failed on the way, and the
/// commits.
fn run_as_json(scratch: &Scratch) -> Result<u8, CliError> {
    let output = scratch
        .backstop(&[RUN, &["--json"]].concat())
        .stderr(Stdio::inherit())
        .output()
        .map_err(cannot_run)?;
    let code = exit_code(output.status);
    let mut lines: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let ending = lines.pop().unwrap_or_default();
    let failures: Vec<Value> = lines
        .iter()
        .filter(|event| event["kind"] == "error.classified")
        .map(|event| json!({ "phase": event["operation"], "attempt": event["attempt"], "reason": event["fault"]["reason"], "cause": event["fault"]["cause"] }))
        .collect();
    let commits: Vec<Value> = scratch
        .git(&["log", "--reverse", "--format=%H %s"])?
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(sha, subject)| json!({ "sha": sha, "subject": subject }))
        .collect();
    let value = json!({
        "schema": JSON_SCHEMA, "folder": scratch.root().display().to_string(),
        "repository": scratch.project().display().to_string(), "exit": code, "ending": ending,
        "failures": failures, "commits": commits,
        "next": LOOK.iter().map(|(words, _)| scratch.typed(words)).collect::<Vec<_>>(),
    });
    terminal::print(&format!("{}\n", to_json(&value)))?;
    Ok(code)
}

fn not_done(scratch: &Scratch, code: u8) -> Result<u8, CliError> {
    let again = scratch.typed(RUN);
    let what = if code == INTERRUPTED { "the demo was stopped" } else { "the demo did not end as it should" };
    terminal::warn(
        what,
        Some(&format!("`{again}` goes on with it, `{}` says why", scratch.typed(&["explain", "last"]))),
    );
    Ok(code)
}

fn cannot_run(error: std::io::Error) -> CliError {
    super::cannot_run("backstop", &error)
}

fn exit_code(status: std::process::ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(INTERRUPTED)
}

/// Ctrl-C reaches the run, too, which lets its phases end: the demo waits for it. A handler, not
/// ignoring: what we start gets the default back.
fn survive_interrupts() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing at all.
    unsafe {
        libc::signal(libc::SIGINT, nothing as extern "C" fn(libc::c_int) as libc::sighandler_t);
    }
}
