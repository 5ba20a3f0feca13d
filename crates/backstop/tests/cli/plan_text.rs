//! Plans for tests: a table and its sections, written phase by phase.

#[cfg(target_os = "linux")]
use crate::harness::is_alive;
use crate::harness::{Project, Run, until};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A plan in the making. No gates, unless a phase names some.
pub(crate) struct PlanText {
    all: String,
    rows: Vec<[String; 4]>,
    sections: String,
}

impl PlanText {
    pub(crate) fn new() -> Self {
        Self { all: "gates = []".to_owned(), rows: Vec::new(), sections: String::new() }
    }

    /// A setting of every phase.
    pub(crate) fn all(mut self, setting: &str) -> Self {
        self.all = format!("{}\n{setting}", self.all);
        self
    }

    /// A phase with these settings, as TOML.
    pub(crate) fn phase(mut self, id: &str, after: &str, settings: &str) -> Self {
        let name = format!("Step {id}");
        self.sections
            .push_str(&format!("\n### Phase {id}: {name}\n- [ ] task {id}\n```backstop\n{settings}\n```\n"));
        self.rows.push([id.to_owned(), name, after.to_owned(), String::new()]);
        self
    }

    /// A phase that runs a line of shell.
    pub(crate) fn sh(self, id: &str, after: &str, script: &str) -> Self {
        self.phase(id, after, &format!("command = '''{script}'''"))
    }

    /// The last phase may run beside this one.
    pub(crate) fn beside(mut self, id: &str) -> Self {
        if let Some(row) = self.rows.last_mut() {
            row[3] = id.to_owned();
        }
        self
    }

    pub(crate) fn text(&self) -> String {
        let row = |[id, name, after, beside]: &[String; 4]| {
            format!("| {id} | {name} | {after} | {beside} | ⬜ |\n")
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "# Plan\n\n```backstop\n{}\n```\n\n| Phase | Name | Depends On | Parallel With | Status |\n|---|---|---|---|---|\n{rows}{}",
            self.all, self.sections
        )
    }

    /// Writes it to `plan.md`.
    pub(crate) fn write(&self, project: &Project) {
        project.file("plan.md", self.text());
    }
}

/// `backstop run plan.md FLAGS`. Phases find the user's tree at `$MAIN`, and a place outside of it
/// at `$PLACE`.
pub(crate) fn run(project: &Project, flags: &[&str]) -> Run {
    let place = project.beside("place");
    std::fs::create_dir_all(&place).unwrap();
    let mut args = vec!["run", "plan.md"];
    args.extend(flags);
    project
        .run(&args)
        .env("MAIN", &project.path().display().to_string())
        .env("PLACE", &place.display().to_string())
}

/// What phases wrote to a file at `$PLACE`.
pub(crate) fn place(project: &Project, name: &str) -> String {
    std::fs::read_to_string(project.beside("place").join(name)).unwrap_or_default()
}

/// The state file of a phase.
pub(crate) fn state(project: &Project, id: &str) -> Value {
    let text = project.read(&format!(".backstop/runs/plan/phases/phase-{id}.json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{id}: {error}: {text}"))
}

/// The events of one kind.
pub(crate) fn events(project: &Project, kind: &str) -> Vec<Value> {
    project.events().into_iter().filter(|event| event["kind"] == kind).collect()
}

/// The reasons of all failures, in order.
pub(crate) fn reasons(project: &Project) -> Vec<String> {
    let all = events(project, "error.classified");
    all.iter().map(|event| event["fault"]["reason"].as_str().unwrap_or("none").to_owned()).collect()
}

/// Checks that a text has all of these.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
}

/// Sends SIGINT twice, as two keys are typed: the second when the first has been taken. Two that
/// come at once are one for the system. Gives the time from the second to the end.
#[cfg(target_os = "linux")]
pub(crate) fn interrupt_twice(child: &mut Child) -> std::time::Duration {
    signal(child, "INT");
    let pid = child.id();
    until("the signal is taken", || !is_pending(pid));
    // What is told to end by the first may end before the second is sent.
    let _ = Command::new("kill").args(["-INT", &pid.to_string()]).stderr(Stdio::null()).status();
    let from = std::time::Instant::now();
    until("it ends", || child.try_wait().unwrap().is_some());
    from.elapsed()
}

/// Whether a signal was sent to a process and not handled yet. One that it died of is.
#[cfg(target_os = "linux")]
pub(crate) fn is_pending(pid: u32) -> bool {
    if !is_alive(&pid.to_string()) {
        return false;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let waits = |line: &&str| line.starts_with("ShdPnd:") && line.ends_with(|c: char| c != '0');
    status.lines().any(|line| waits(&line))
}

/// The exit code of a process of ours, and what it said.
pub(crate) fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}
