//! What a run of a plan was asked for, as far as it holds when the run is continued: made of what
//! was typed, recorded as a command that a person can type again, and read back from there. That is
//! how every surface continues a run.

use super::{PlanRequest, RunError, last_run, path_in_project, recorded_options};
use crate::document::{By, Format, ReadOptions};
use crate::record::RunRecord;
use backstop_config::Given;
use backstop_core::{Clock, shell};
use backstop_runtime::Project;
use std::path::Path;
use std::time::Duration;

/// The flags of plans and campaigns that are settings: the flag, its key, and the value that it
/// sets where it takes none.
const SETTING_FLAGS: [(&str, &str, Option<&str>); 17] = [
    ("--agent", "plan.agent", None),
    ("--model", "plan.model", None),
    ("--commit", "plan.commit", None),
    ("--jobs", "plan.jobs", None),
    ("--parallel", "plan.parallel", None),
    ("--retry", "plan.retry", None),
    ("--isolation", "plan.isolation", None),
    ("--gates", "plan.gates", None),
    ("--timeout", "plan.timeout", None),
    ("--idle", "plan.idle", None),
    ("--halt-timeout", "plan.halt_timeout", None),
    ("--max-cost", "plan.max_cost", None),
    ("--max-tokens", "plan.max_tokens", None),
    ("--wait-max", "plan.wait_max", None),
    ("--waits-max", "plan.waits_max", None),
    ("--allow-overage", "plan.allow_overage", Some("true")),
    ("--no-inhibit", "plan.inhibit", Some("false")),
];

/// The latest time that a run may be told to start at.
const START_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// The setting of a flag; nothing for a flag that is none.
fn setting(flag: &str, value: &str) -> Option<Given> {
    let (flag, key, _) = SETTING_FLAGS.iter().find(|(known, ..)| *known == flag)?;
    Some(Given { flag: (*flag).to_owned(), key: (*key).to_owned(), value: value.to_owned() })
}

/// The value that a flag sets without being given one.
fn value_of_switch(flag: &str) -> Option<&'static str> {
    SETTING_FLAGS.iter().find(|(known, ..)| *known == flag)?.2
}

/// The settings of the flags that were given.
pub fn settings_given<'f>(flags: impl IntoIterator<Item = (&'f str, Option<String>)>) -> Vec<Given> {
    flags.into_iter().filter_map(|(flag, value)| setting(flag, &value?)).collect()
}

/// A command with settings as flags, and other flags after them.
pub fn command_line(words: &[&str], settings: &[Given], others: &[(&str, Option<&str>)]) -> String {
    let mut line: Vec<&str> = words.to_vec();
    for Given { flag, value, .. } in settings {
        line.push(flag);
        if value_of_switch(flag).is_none() {
            line.push(value);
        }
    }
    line.extend(others.iter().filter_map(|(flag, value)| Some([*flag, (*value)?])).flatten());
    shell::line(line)
}

/// What holds for a run and for each time that it is continued.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunCommand {
    /// The plan, as it was typed.
    pub plan: String,
    /// The flags that are settings.
    pub settings: Vec<Given>,
    /// The budget that attempts are taken from.
    pub budget: Option<String>,
    /// The format and the granularity, as far as they were typed.
    pub options: ReadOptions,
    /// The folder that phases work in, below the project's root.
    pub dir: Option<String>,
    /// Whether tracked files may have changes that are not committed.
    pub allow_dirty: bool,
    /// Whether the model requests of all phases go through a proxy.
    pub proxy: bool,
}

impl RunCommand {
    /// What a recorded run was asked for. Nothing where the record cannot be read.
    pub fn of(record: &RunRecord) -> Option<Self> {
        let line = record.plan.resume.as_str();
        if line.is_empty() {
            return Some(Self { plan: record.path().raw().to_owned(), ..Self::default() });
        }
        Self::parse(line)
    }

    /// Reads what [`RunCommand::line`] wrote.
    fn parse(line: &str) -> Option<Self> {
        let mut words = shell::words(line)?.into_iter();
        if words.next()? != "backstop" || words.next()? != "run" {
            return None;
        }
        let mut this = Self { plan: words.next()?, ..Self::default() };
        while let Some(flag) = words.next() {
            match flag.as_str() {
                "--budget" => this.budget = Some(words.next()?),
                "--format" => this.options.format = Some(Format::from_name(&words.next()?)?),
                "--by" => this.options.by = Some(By::from_name(&words.next()?)?),
                "--dir" => this.dir = Some(words.next()?),
                "--allow-dirty" => this.allow_dirty = true,
                "--proxy" => this.proxy = true,
                flag => {
                    let switch = value_of_switch(flag).map(str::to_owned);
                    this.set(setting(flag, &switch.or_else(|| words.next())?)?);
                }
            }
        }
        Some(this)
    }

    /// With this setting, in place of another value of the same flag.
    fn set(&mut self, given: Given) {
        self.settings.retain(|known| known.flag != given.flag);
        self.settings.push(given);
    }

    /// With the answer of a person who was asked whether detected gates are run.
    pub fn run_gates(&mut self, answer: Option<bool>) {
        let word = answer.map(|run| if run { "auto" } else { "none" });
        if let Some(given) = word.and_then(|word| setting("--gates", word)) {
            self.set(given);
        }
    }

    /// The command that a person types to continue the run.
    pub fn line(&self) -> String {
        let ReadOptions { format, by } = self.options;
        let others = [
            ("--budget", self.budget.as_deref()),
            ("--format", format.map(Format::name)),
            ("--by", by.map(By::name)),
            ("--dir", self.dir.as_deref()),
        ];
        let mut line = command_line(&["backstop", "run", &self.plan], &self.settings, &others);
        for (flag, is_given) in [("--allow-dirty", self.allow_dirty), ("--proxy", self.proxy)] {
            if is_given {
                line.push(' ');
                line.push_str(flag);
            }
        }
        line
    }

    /// Names the plan by its file, where the path that was typed is not that file from here.
    pub fn with_file(mut self, file: &Path, project: &Project) -> Self {
        let here = project.process.cwd.join(&self.plan).canonicalize().ok();
        if here.is_none() || here != file.canonicalize().ok() {
            self.plan = file.to_string_lossy().into_owned();
        }
        self
    }

    /// How the plan is read and where its phases work: as this says, else as the last run of it
    /// was, else as the plan looks and where the caller is. The folder becomes a part of this.
    pub fn plan_request(
        &mut self,
        project: &Project,
        accepted: &[String],
        is_fresh: bool,
    ) -> Result<PlanRequest, RunError> {
        let last = if is_fresh { None } else { last_record(project, Path::new(&self.plan)) };
        self.dir = match (&self.dir, &last) {
            (Some(dir), _) => Some(below_project(dir)?),
            (None, Some(record)) => Self::of(record).and_then(|recorded| recorded.dir),
            (None, None) => folder_here(project),
        };
        let recorded = last.as_ref().map(recorded_options).unwrap_or_default();
        let ReadOptions { format, by } = self.options;
        Ok(PlanRequest {
            options: ReadOptions { format: format.or(recorded.format), by: by.or(recorded.by) },
            dir: self.dir.clone(),
            accepted: accepted.to_vec(),
            last,
            fresh: is_fresh,
        })
    }
}

/// A format and a granularity as they are typed.
pub fn read_options(format: Option<&str>, by: Option<&str>) -> Result<ReadOptions, RunError> {
    let unknown = |name: &str| RunError::NoFormat { given: name.to_owned() };
    let format = format.map(|name| Format::from_name(name).ok_or_else(|| unknown(name))).transpose()?;
    Ok(ReadOptions { format, by: by.and_then(By::from_name) })
}

/// How long it is until a time that was typed. One that has just passed means now.
pub fn start_after(at: &str, project: &Project) -> Result<Duration, RunError> {
    let now = project.process.now();
    let clock = Clock { now: Some(now), zone: (project.process.zone)() };
    let unknown = || RunError::NoStartTime { given: at.to_owned() };
    let time = backstop_core::wait::moment(at, &clock).ok_or_else(unknown)?;
    let after = time.since(now);
    if after > START_MAX {
        return Err(RunError::StartTooFar { given: at.to_owned(), at: time });
    }
    Ok(after)
}

/// What was recorded of the last run of a plan. Nothing is made where nothing was recorded yet.
fn last_record(project: &Project, plan: &Path) -> Option<RunRecord> {
    let file = plan.canonicalize().ok().filter(|_| project.has_state())?;
    let journal = project.existing_journal().ok()??;
    let run = last_run(journal, &path_in_project(&file, &project.root)).ok()??;
    Some(RunRecord::of(&journal.load(run).ok()?))
}

/// The caller's folder, below the project's root.
fn folder_here(project: &Project) -> Option<String> {
    let here = project.process.cwd.canonicalize().ok()?;
    let root = project.root.canonicalize().ok()?;
    let below = here.strip_prefix(&root).ok()?.to_str()?.to_owned();
    (!below.is_empty()).then_some(below)
}

/// A folder below the project's root, as it is typed.
fn below_project(dir: &str) -> Result<String, RunError> {
    let dir = dir.trim_start_matches("./").trim_end_matches('/');
    if dir.starts_with('/') || dir.split('/').any(|part| part == "..") {
        return Err(RunError::NotBelow { dir: dir.to_owned() });
    }
    Ok(dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_what_was_asked_for() {
        let all = SETTING_FLAGS.iter().map(|(flag, _, switch)| (*flag, Some(switch.unwrap_or("it's 1"))));
        let every = RunCommand {
            plan: "docs/my plan.md".to_owned(),
            settings: settings_given(all.map(|(flag, value)| (flag, value.map(str::to_owned)))),
            budget: Some("night".to_owned()),
            options: ReadOptions { format: Some(Format::Backstop), by: By::from_name("task") },
            dir: Some("packages/api".to_owned()),
            allow_dirty: true,
            proxy: true,
        };
        assert_eq!(every.settings.len(), SETTING_FLAGS.len());
        for command in [every.clone(), RunCommand { plan: "p.md".to_owned(), ..RunCommand::default() }] {
            assert_eq!(RunCommand::parse(&command.line()), Some(command.clone()), "{}", command.line());
        }
        let mut answered = every;
        answered.run_gates(Some(false));
        answered.run_gates(None);
        assert_eq!(answered.line().matches("--gates none").count(), 1, "{}", answered.line());
        assert_eq!(answered.line().matches("--gates").count(), 1);
    }

    #[test]
    fn what_is_no_run_of_a_plan_is_not_read() {
        for line in [
            "",
            "backstop",
            "backstop campaign x",
            "rm -rf /",
            "backstop run",
            "backstop run p.md --no-such 1",
        ] {
            assert_eq!(RunCommand::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_folder_is_below_the_project() {
        for (given, is) in [("packages/api", "packages/api"), ("./a/", "a"), ("a", "a")] {
            assert_eq!(below_project(given).unwrap(), is);
        }
        for given in ["/etc", "..", "a/../../b"] {
            assert!(matches!(below_project(given), Err(RunError::NotBelow { .. })), "{given}");
        }
    }
}
