//! What on this machine would keep Backstop from doing its work: settings, stores, room on the
//! machine, supervision of processes, git.

mod sinks;

pub use sinks::sinks;

use crate::admission::UNFREEZE;
use crate::machine_state;
use crate::project::Project;
use backstop_report::{Check, date_time};
use backstop_store::{HookStore, Outbox, StateFolder, UserStore};
use std::path::Path;
use std::process::{Command, Stdio};

/// Checks a project: its settings, its stores, and whether work may begin in it.
pub fn project(project: &Project) -> Vec<Check> {
    let mut checks = vec![configuration(project)];
    stores(project, &mut checks);
    checks.push(room(project));
    checks
}

/// Checks what every project on this machine needs.
pub fn machine() -> Vec<Check> {
    vec![supervision(), rules(), git()]
}

fn configuration(project: &Project) -> Check {
    const NAME: &str = "configuration";
    if let Some((what, hint)) = backstop_config::warning(&project.config) {
        return Check::bad(NAME, what, hint);
    }
    if let Some((what, hint)) = backstop_config::untrusted(&project.config) {
        return Check::note(NAME, what, hint);
    }
    if let Some(note) = project.config.notes().first() {
        return Check::note(NAME, note, "see `backstop config check`");
    }
    let files = project.config.files();
    if files.is_empty() {
        return Check::good(NAME, "no files: every setting has its default");
    }
    let names: Vec<String> = files.iter().map(|read| read.file.shown.clone()).collect();
    Check::good(NAME, names.join(", "))
}

fn stores(project: &Project, checks: &mut Vec<Check>) {
    let folder = match project.folder().and_then(|folder| {
        folder.check_writable()?;
        Ok(folder)
    }) {
        Ok(folder) => folder,
        Err(error) => return checks.push(Check::error("state folder", &error)),
    };
    let root = folder.root().display().to_string();
    checks.push(match folder.filesystem_note() {
        Some(note) => {
            Check::note("state folder", format!("{root}: {note}"), "set BACKSTOP_STATE_DIR to a local folder")
        }
        None => Check::good("state folder", root),
    });
    checks.push(journal(project));
    checks.extend(shared_stores(folder));
}

fn journal(project: &Project) -> Check {
    let journal = project.existing_journal().and_then(|journal| {
        if let Some(journal) = journal {
            journal.check()?;
        }
        Ok(journal)
    });
    let journal = match journal {
        Ok(Some(journal)) => journal,
        Ok(None) => return Check::good("store", "nothing is recorded in this project yet"),
        Err(error) => return Check::error("store", &error),
    };
    let runs = journal.lost_runs(&project.process.is_alive).unwrap_or_default();
    if runs.is_empty() {
        return Check::good("store", journal.file().display().to_string());
    }
    let ids: Vec<String> = runs.iter().map(|run| run.run.to_string()).collect();
    Check::note(
        "store",
        format!("runs whose Backstop was killed: {}", ids.join(", ")),
        "the next `backstop exec` here ends the processes that they left",
    )
}

/// The stores that all projects share, where one is damaged.
fn shared_stores(folder: &StateFolder) -> Vec<Check> {
    let user = UserStore::open_existing(folder).and_then(|user| user.map_or(Ok(()), |u| u.check()));
    let hooks = HookStore::open_existing(folder).and_then(|hooks| hooks.map_or(Ok(()), |h| h.check()));
    let outbox = Outbox::open_existing(folder).and_then(|outbox| outbox.map_or(Ok(()), |o| o.check()));
    let checked = [("user store", user), ("hook store", hooks), ("outbox", outbox)];
    checked.into_iter().filter_map(|(name, checked)| Some(Check::error(name, &checked.err()?))).collect()
}

/// Whether new work may begin here, and whether the machine has room for it.
fn room(project: &Project) -> Check {
    if let Some(freeze) = project.frozen() {
        let since = date_time(freeze.at);
        let says =
            format!("this project is frozen since {since} ({}): {}", freeze.reason, freeze.why.line(200));
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
    const NAME: &str = "supervision";
    if cfg!(target_os = "linux") {
        if Path::new("/proc/self/stat").exists() {
            return Check::good(NAME, "a command's whole process tree can be ended, orphans too");
        }
        return Check::note(NAME, "/proc is not mounted: only process groups can be ended", "mount /proc");
    }
    Check::note(
        NAME,
        "on this system only a command's process group can be ended, not processes that leave it",
        "do not let commands start daemons",
    )
}

fn rules() -> Check {
    let rules = backstop_classify::Classifier::builtin().rules().len();
    Check::good("rules", format!("{rules} built in"))
}

fn git() -> Check {
    match Command::new("git").arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            Check::good("git", String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Check::note("git", "not found", "install git: plans are run in worktrees"),
    }
}
