//! `backstop doctor`: what on this machine would keep Backstop from doing its work.

mod hooks;
mod sinks;

use crate::error::{CliError, DONE, FAILED};
use crate::process;
use crate::terminal;
use backstop_config as config;
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_runtime::admission::UNFREEZE;
use backstop_runtime::{Project, machine_state};
use backstop_store::{HookStore, Outbox, UserStore};
use clap::Args;
use serde_json::json;
use std::process::{Command, Stdio};

/// Check this machine: state folder, store, settings, hooks, notifications, supervision.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Connect to the address of every sink too; no message is sent
    #[arg(long)]
    pub(crate) sinks: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a check came out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Note,
    Bad,
}

struct Check {
    name: &'static str,
    state: State,
    says: String,
    hint: Option<String>,
}

impl Check {
    fn good(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: State::Good, says: says.into(), hint: None }
    }

    fn note(name: &'static str, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, state: State::Note, says: says.into(), hint: Some(hint.into()) }
    }

    fn bad(name: &'static str, error: &CliError) -> Self {
        Self { name, state: State::Bad, says: error.to_string(), hint: error.first_hint().map(str::to_owned) }
    }
}

pub(crate) fn run(args: &Doctor) -> Result<u8, CliError> {
    let mut checks = vec![Check::good("version", env!("CARGO_PKG_VERSION"))];
    match process::open_quietly(&[], None) {
        Ok(project) => {
            checks.push(configuration(&project));
            store(&project, &mut checks);
            checks.push(room(&project));
            sinks::check(&project, args.sinks, &mut checks);
        }
        Err(error) => checks.push(Check::bad("configuration", &error)),
    }
    hooks::check(&mut checks);
    checks.extend(
        process::unknown_variables().into_iter().map(|(what, hint)| Check::note("environment", what, hint)),
    );
    checks.push(supervision());
    checks.push(classifier());
    checks.push(git());
    let failed = checks.iter().any(|check| check.state == State::Bad);
    let word = |state| match state {
        State::Good => "ok",
        State::Note => "note",
        State::Bad => "failed",
    };
    if args.json {
        let rows: Vec<_> = checks
            .iter()
            .map(|c| json!({ "check": c.name, "state": word(c.state), "says": c.says, "hint": c.hint }))
            .collect();
        terminal::print(&format!(
            "{}\n",
            to_json(&json!({ "schema": JSON_SCHEMA, "ok": !failed, "checks": rows }))
        ))?;
    } else {
        let style = terminal::stdout_style();
        let mut text = String::new();
        for check in &checks {
            let mark = match check.state {
                State::Good => style.good("ok    "),
                State::Note => style.strong("note  "),
                State::Bad => style.bad("failed"),
            };
            text.push_str(&format!(
                "{mark}  {:<14} {}\n",
                check.name,
                SafeText::new(check.says.clone()).line(300)
            ));
            if let Some(hint) = &check.hint {
                text.push_str(&format!(
                    "        {:<14} hint: {}\n",
                    "",
                    SafeText::new(hint.clone()).line(300)
                ));
            }
        }
        terminal::print(&text)?;
    }
    Ok(if failed { FAILED } else { DONE })
}

fn configuration(project: &Project) -> Check {
    if let Some((what, hint)) = config::warning(&project.config) {
        return Check { name: "configuration", state: State::Bad, says: what, hint: Some(hint) };
    }
    if let Some((what, hint)) = config::untrusted(&project.config) {
        return Check::note("configuration", what, hint);
    }
    if let Some(note) = project.config.notes().first() {
        return Check::note("configuration", note, "see `backstop config check`");
    }
    let files = project.config.files();
    if files.is_empty() {
        return Check::good("configuration", "no files: every setting has its default");
    }
    let names: Vec<String> = files.iter().map(|read| read.file.shown.clone()).collect();
    Check::good("configuration", names.join(", "))
}

fn store(project: &Project, checks: &mut Vec<Check>) {
    let folder = match project.folder().and_then(|folder| {
        folder.check_writable()?;
        Ok(folder)
    }) {
        Ok(folder) => folder,
        Err(error) => return checks.push(Check::bad("state folder", &error.into())),
    };
    let root = folder.root().display().to_string();
    checks.push(match folder.filesystem_note() {
        Some(note) => {
            Check::note("state folder", format!("{root}: {note}"), "set BACKSTOP_STATE_DIR to a local folder")
        }
        None => Check::good("state folder", root),
    });
    let journal = project.existing_journal().and_then(|journal| {
        if let Some(journal) = journal {
            journal.check()?;
        }
        Ok(journal)
    });
    match journal {
        Ok(Some(journal)) => {
            let runs = journal.lost_runs(&process::is_alive).unwrap_or_default();
            checks.push(if runs.is_empty() {
                Check::good("store", journal.file().display().to_string())
            } else {
                let ids: Vec<String> = runs.iter().map(|run| run.run.to_string()).collect();
                Check::note(
                    "store",
                    format!("runs whose Backstop was killed: {}", ids.join(", ")),
                    "the next `backstop exec` here ends the processes that they left",
                )
            });
        }
        Ok(None) => checks.push(Check::good("store", "nothing is recorded in this project yet")),
        Err(error) => checks.push(Check::bad("store", &error.into())),
    }
    let user = UserStore::open_existing(folder).and_then(|user| user.map_or(Ok(()), |u| u.check()));
    let hooks = HookStore::open_existing(folder).and_then(|hooks| hooks.map_or(Ok(()), |h| h.check()));
    let outbox = Outbox::open_existing(folder).and_then(|outbox| outbox.map_or(Ok(()), |o| o.check()));
    for (name, checked) in [("user store", user), ("hook store", hooks), ("outbox", outbox)] {
        if let Err(error) = checked {
            checks.push(Check::bad(name, &CliError::from(error)));
        }
    }
}

/// Whether new work may begin here, and whether the machine has room for it.
fn room(project: &Project) -> Check {
    if let Some(freeze) = project.frozen() {
        let says = format!(
            "this project is frozen since {} ({}): {}",
            backstop_report::date_time(freeze.at),
            freeze.reason,
            freeze.why.line(200)
        );
        return Check::note("host", says, format!("correct the cause, then `{UNFREEZE}`"));
    }
    let state = machine_state::look(project);
    if let Some(short) = state.short_of.first() {
        let hint = "free some; a failure for want of it freezes the project";
        return Check::note("host", short.says.line(200), hint);
    }
    let memory = state.memory_available_mb.map(|mb| format!("{mb} MB of memory, "));
    let disk = state.disk_free_gb.map_or_else(|| "disk unknown".to_owned(), |gb| format!("{gb} GB of disk"));
    Check::good("host", format!("{}{disk} free", memory.unwrap_or_default()))
}

fn supervision() -> Check {
    if cfg!(target_os = "linux") {
        if std::path::Path::new("/proc/self/stat").exists() {
            return Check::good("supervision", "a command's whole process tree can be ended, orphans too");
        }
        return Check::note(
            "supervision",
            "/proc is not mounted: only process groups can be ended",
            "mount /proc",
        );
    }
    Check::note(
        "supervision",
        "on this system only a command's process group can be ended, not processes that leave it",
        "do not let commands start daemons",
    )
}

fn classifier() -> Check {
    let rules = backstop_classify::Classifier::builtin().rules().len();
    Check::good("rules", format!("{rules} built in"))
}

fn git() -> Check {
    let found = Command::new("git").arg("--version").stdin(Stdio::null()).output();
    match found {
        Ok(output) if output.status.success() => {
            Check::good("git", String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Check::note("git", "not found", "install git: plans are run in worktrees"),
    }
}
