//! `backstop demo`: Backstop at work before your eyes, offline, in a folder of the demo's own.

use crate::error::{CliError, DONE, INTERRUPTED};
use crate::{process, terminal};
use backstop_classify::Classifier;
use backstop_core::SafeText;
use backstop_demo::{Scratch, Surroundings, command, faults, plan};
use backstop_report::{
    DEMO_COMMAND_STARTS, DEMO_FAULTS_END, DEMO_FAULTS_START, DemoPlan, demo_command_ended, demo_command_json,
    demo_plan_ended, demo_plan_starts, demo_plan_stopped, demo_step,
};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitStatus;

/// Watch Backstop at work, offline, in a folder of its own below the temporary folder. The last
/// three of these folders are kept, so that you can look at their runs.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What to watch
    #[arg(default_value = "plan")]
    pub(crate) what: DemoKind,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the demo shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoKind {
    /// A plan: phases side by side, a failed test, a retry that knows what failed, a commit for
    /// each phase
    Plan,
    /// A command that fails, is retried and recovers
    Command,
    /// Ten failures, each classified
    Faults,
}

pub(crate) fn run(args: &Demo) -> Result<u8, CliError> {
    let program = std::env::current_exe().map_err(|error| CliError::write(std::env::temp_dir(), error))?;
    let variables = std::env::vars_os().map(|(name, _)| name);
    let scratch = Scratch::make(&Surroundings {
        temp_dir: std::env::temp_dir(),
        program,
        git_variables: variables.filter(|name| name.to_string_lossy().starts_with("GIT_")).collect(),
        random: process::random,
    })?;
    match args.what {
        DemoKind::Plan => run_plan(&scratch, args.json),
        DemoKind::Command => run_command(&scratch, args.json).map(|()| DONE),
        DemoKind::Faults => {
            faults::prepare(&scratch);
            let played = play_faults(&scratch, args.json);
            scratch.remove();
            played.map(|()| DONE)
        }
    }
}

/// The state folders of the demos that are kept: a demo prints the ids of its runs, and people type
/// them.
pub(crate) fn demo_states() -> Vec<PathBuf> {
    backstop_demo::demo_states(&std::env::temp_dir())
}

/// Runs a plan in a process of its own, and shows what came of it.
fn run_plan(scratch: &Scratch, json: bool) -> Result<u8, CliError> {
    plan::prepare(scratch)?;
    survive_interrupts();
    if json {
        return run_plan_as_json(scratch);
    }
    let style = terminal::stdout_style();
    let typed = [&["backstop"], plan::RUN].concat();
    terminal::print(&demo_plan_starts(&scratch.project(), &typed, style))?;
    let code = exit_code(plan::run(scratch)?);
    if code == DONE {
        let (log, typed) = (scratch.git(plan::LOG)?, [&["git"], plan::LOG].concat());
        terminal::print(&demo_plan_ended(&typed, &log, &plan::look(scratch), style))?;
    } else {
        let (again, explain) = (scratch.typed(plan::RUN), scratch.typed(&["explain", "last"]));
        let (what, hint) = demo_plan_stopped(code == INTERRUPTED, &again, &explain);
        terminal::warn(what, Some(&hint));
    }
    Ok(code)
}

fn run_plan_as_json(scratch: &Scratch) -> Result<u8, CliError> {
    let output = plan::run_as_json(scratch)?;
    let exit = exit_code(output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let shown = DemoPlan {
        folder: scratch.root(),
        repository: &scratch.project(),
        exit,
        lines: text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        commits: plan::commits(scratch)?,
        next: plan::look(scratch).into_iter().map(|(typed, _)| typed).collect(),
    };
    terminal::print_json(&shown.json())?;
    Ok(exit)
}

fn exit_code(status: ExitStatus) -> u8 {
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

/// Runs a command that fails once, under `exec`, and tells its story.
fn run_command(scratch: &Scratch, json: bool) -> Result<(), CliError> {
    command::prepare(scratch)?;
    if json {
        let answer = command::output(scratch, &["exec", "--json", "--", "sh", "install.sh"], "/dev/null")?;
        let ending: Value = serde_json::from_str(answer.trim()).unwrap_or_default();
        let explain = scratch.typed(&["explain", "last"]);
        return terminal::print_json(&demo_command_json(scratch.root(), &ending, &explain));
    }
    let style = terminal::stdout_style();
    let show = |typed: &str, printed: &str| {
        terminal::print(&demo_step(typed, &SafeText::new(printed).terminal(), style))
    };
    terminal::print(DEMO_COMMAND_STARTS)?;
    // Both streams in one, in the order in which a terminal would show them.
    let shown = command::output(scratch, &["exec", "--", "sh", "install.sh"], "&1")?;
    show("backstop exec -- sh install.sh", &shown)?;
    let run = command::run_in(&shown).unwrap_or("last");
    show(&format!("backstop explain {run}"), &command::output(scratch, &["explain", run], "&1")?)?;
    terminal::print(&demo_command_ended(run))
}

/// Classifies a shipped script of failures, one after the other.
fn play_faults(scratch: &Scratch, json: bool) -> Result<(), CliError> {
    let classifier = Classifier::builtin().redacting(terminal::redactor().as_ref().clone());
    let style = terminal::stdout_style();
    if !json {
        terminal::print(DEMO_FAULTS_START)?;
    }
    for step in faults::SCRIPT {
        let (title, signal) = step.play(&scratch.project(), process::now())?;
        let fault = classifier.classify(&signal);
        if json {
            let mut value = backstop_report::fault_json(fault.as_ref());
            value["step"] = json!(title);
            terminal::print_json(&value)?;
            continue;
        }
        let answer = match &fault {
            Some(fault) => backstop_report::fault(fault, style),
            None => backstop_report::success(style),
        };
        terminal::print(&demo_step(&title, &answer, style))?;
    }
    if json { Ok(()) } else { terminal::print(DEMO_FAULTS_END) }
}
