//! `backstop agents`: which agents can work on phases here, and how each would be run.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_plan::agents::own_agents;
use backstop_report::{AgentList, AgentRow, Check};
use backstop_runtime::project::Project;
use backstop_work::agent::survey;
use clap::Args;

/// List the agents that can work on phases: installed or not, version, how each is run.
#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Agents) -> Result<(), CliError> {
    let project = process::open_quietly(&[], None)?;
    terminal::show(&list(&project), args.json)
}

/// The agents that are known, and those of the settings. Settings with a mistake are `doctor`'s and
/// `config check`'s.
fn list(project: &Project) -> AgentList {
    let own = own_agents(&project.config).unwrap_or_default();
    let texts = |words: Vec<&'static str>| words.into_iter().map(str::to_owned).collect();
    let rows = survey(&own, &process::is_on_the_path).into_iter().map(|agent| AgentRow {
        name: agent.name,
        is_found: agent.is_found,
        version: agent.version,
        is_mute: agent.is_mute,
        tested: agent.tested.map(str::to_owned),
        is_newer: agent.is_newer,
        is_acp: agent.is_acp,
        command: agent.command,
        tells: texts(agent.tells),
        hides: agent.hides.map(str::to_owned),
        install: agent.install.map(str::to_owned),
    });
    AgentList(rows.collect())
}

/// What `doctor` says about them.
pub(super) fn check(project: &Project) -> Check {
    const NAME: &str = "agents";
    let found: Vec<AgentRow> = list(project).0.into_iter().filter(|agent| agent.is_found).collect();
    let shown = |agent: &AgentRow| match &agent.version {
        Some(version) => format!("{} {version}", agent.name),
        None => agent.name.clone(),
    };
    let names: Vec<String> = found.iter().map(shown).collect();
    if found.is_empty() {
        return Check::note(NAME, "none is installed", "`backstop agents` says how each is installed");
    }
    let newer: Vec<String> =
        found.iter().filter_map(|agent| Some(format!("{} is {}", agent.name, agent.newer()?))).collect();
    let mute: Vec<&str> =
        found.iter().filter(|agent| agent.is_mute).map(|agent| agent.name.as_str()).collect();
    if !mute.is_empty() {
        let words = format!("{} --version does not end", mute.join(" and "));
        return Check::note(NAME, words, "run it by hand: it may ask something first");
    }
    match newer.is_empty() {
        true => Check::good(NAME, names.join(", ")),
        false => Check::note(NAME, newer.join("; "), "it is used all the same; `backstop agents` lists them"),
    }
}
