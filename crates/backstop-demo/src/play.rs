//! What a demo does before somebody's eyes, step by step.

use crate::{DemoError, Scratch, command, faults, plan};
use backstop_classify::Classifier;
use backstop_core::{SafeText, Timestamp};
use backstop_report::{
    DEMO_COMMAND_STARTS, DEMO_FAULTS_END, DEMO_FAULTS_START, DemoPlan, Style, demo_command_ended,
    demo_command_json, demo_plan_ended, demo_plan_starts, demo_plan_stopped, demo_step, to_json,
};
use serde_json::{Value, json};
use std::process::ExitStatus;

/// The exit code of a plan's run that a signal ended.
const INTERRUPTED: u8 = 130;

/// Where a demo is shown.
pub struct Stage<'s> {
    /// The demo's folder.
    pub scratch: &'s Scratch,
    /// Whether it is shown as JSON.
    pub json: bool,
    /// How text is dressed.
    pub style: Style,
    /// Prints data.
    pub print: &'s dyn Fn(&str) -> std::io::Result<()>,
}

impl Stage<'_> {
    fn print(&self, text: &str) -> Result<(), DemoError> {
        Ok((self.print)(text)?)
    }

    fn print_json(&self, value: &Value) -> Result<(), DemoError> {
        self.print(&format!("{}\n", to_json(value)))
    }
}

/// What did not end well, and what to do about it.
pub type Warning = (&'static str, String);

/// Runs a plan in a process of its own, and shows what came of it. Gives its exit code, and where
/// it did not end well a warning and what to do about it.
pub fn play_plan(stage: &Stage<'_>) -> Result<(u8, Option<Warning>), DemoError> {
    let scratch = stage.scratch;
    plan::prepare(scratch)?;
    if stage.json {
        return play_plan_as_json(stage).map(|code| (code, None));
    }
    let typed = [&["backstop"], plan::RUN].concat();
    stage.print(&demo_plan_starts(&scratch.project(), &typed, stage.style))?;
    let code = exit_code(plan::run(scratch)?);
    if code != 0 {
        let (again, explain) = (scratch.typed(plan::RUN), scratch.typed(&["explain", "last"]));
        return Ok((code, Some(demo_plan_stopped(code == INTERRUPTED, &again, &explain))));
    }
    let (log, typed) = (scratch.git(plan::LOG)?, [&["git"], plan::LOG].concat());
    stage.print(&demo_plan_ended(&typed, &log, &plan::look(scratch), stage.style))?;
    Ok((code, None))
}

fn play_plan_as_json(stage: &Stage<'_>) -> Result<u8, DemoError> {
    let scratch = stage.scratch;
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
    stage.print_json(&shown.json())?;
    Ok(exit)
}

fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(INTERRUPTED)
}

/// Runs a command that fails once, under `exec`, and tells its story.
pub fn play_command(stage: &Stage<'_>) -> Result<(), DemoError> {
    let scratch = stage.scratch;
    command::prepare(scratch)?;
    if stage.json {
        let answer = command::output(scratch, &["exec", "--json", "--", "sh", "install.sh"], "/dev/null")?;
        let ending: Value = serde_json::from_str(answer.trim()).unwrap_or_default();
        let explain = scratch.typed(&["explain", "last"]);
        return stage.print_json(&demo_command_json(scratch.root(), &ending, &explain));
    }
    let show = |typed: &str, printed: &str| {
        stage.print(&demo_step(typed, &SafeText::new(printed).terminal(), stage.style))
    };
    stage.print(DEMO_COMMAND_STARTS)?;
    // Both streams in one, in the order in which a terminal would show them.
    let shown = command::output(scratch, &["exec", "--", "sh", "install.sh"], "&1")?;
    show("backstop exec -- sh install.sh", &shown)?;
    let run = command::run_in(&shown).unwrap_or("last");
    show(&format!("backstop explain {run}"), &command::output(scratch, &["explain", run], "&1")?)?;
    stage.print(&demo_command_ended(run))
}

/// Classifies a shipped script of failures, one after the other.
pub fn play_faults(
    stage: &Stage<'_>,
    classifier: &Classifier,
    now: &dyn Fn() -> Timestamp,
) -> Result<(), DemoError> {
    faults::prepare(stage.scratch);
    if !stage.json {
        stage.print(DEMO_FAULTS_START)?;
    }
    for step in faults::SCRIPT {
        let (title, signal) = step.play(&stage.scratch.project(), now())?;
        let fault = classifier.classify(&signal);
        if stage.json {
            let mut value = backstop_report::fault_json(fault.as_ref());
            value["step"] = json!(title);
            stage.print_json(&value)?;
            continue;
        }
        let answer = match &fault {
            Some(fault) => backstop_report::fault(fault, stage.style),
            None => backstop_report::success(stage.style),
        };
        stage.print(&demo_step(&title, &answer, stage.style))?;
    }
    if stage.json { Ok(()) } else { stage.print(DEMO_FAULTS_END) }
}
