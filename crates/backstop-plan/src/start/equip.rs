//! What each phase needs: an agent or a command, gates, limits.

use super::RunError;
use crate::agents::{named_agent, own_agents};
use crate::document::{GateSetting, Limit, Phase, Plan};
use crate::workspace::{Equipment, Setup, Worker};
use backstop_config::{Config, PlanSettings};
use backstop_core::nearest::nearest;
use backstop_exec::Limits;
use backstop_work::CommandLine;
use backstop_work::agent::{Agent, BUILTINS, KNOWN_ACP, TemplateOptions, from_template};
use backstop_work::gate::{Detected, Gate, Origin, detect};
use backstop_work::idioms::Idioms;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What gates are usually called, whether or not the project has one.
const USUAL_NAMES: [&str; 8] = ["lint", "format", "fmt", "typecheck", "types", "test", "tests", "build"];
/// As good as no limit.
const NEVER: Duration = Duration::from_secs(366 * 24 * 3600);

/// Gives each phase what it needs: an agent or a command, gates, limits.
#[derive(Debug)]
pub struct Equipper {
    settings: PlanSettings,
    folder: PathBuf,
    agents: Vec<Agent>,
    gates: Gates,
    grace: Duration,
    kept_bytes_max: usize,
}

#[derive(Debug)]
struct Gates {
    /// From the configuration, by name.
    config: Vec<Gate>,
    /// From the project's files.
    detected: Detected,
    /// Whether the detected ones are run.
    auto: bool,
}

impl Equipper {
    /// Reads the configuration and looks at the project's files. `is_trusted` says whether somebody
    /// trusts the project: then the gates that its files suggest are run, unless the settings say
    /// no.
    pub fn new(config: &Config, folder: &Path, is_trusted: bool) -> Result<Self, RunError> {
        let settings = config.plan();
        let agents = own_agents(config)?;
        let fixes = config.commands("gates", "fix");
        let config_gates = config.commands("gates", "check").into_iter().map(|(name, argv)| {
            let mut gate = Gate::new(name.clone(), CommandLine::Argv(argv), Origin::Config);
            gate.fix = fixes.get(&name).cloned().map(CommandLine::Argv);
            gate
        });
        let detected = detect(folder);
        let auto = settings.gates == "auto" || (settings.gates == "ask" && is_trusted);
        let gates = Gates { config: config_gates.collect(), detected, auto };
        let exec = config.exec();
        Ok(Self {
            settings,
            folder: folder.to_owned(),
            agents,
            gates,
            grace: exec.grace,
            kept_bytes_max: usize::try_from(exec.output_bytes_max).unwrap_or(usize::MAX),
        })
    }

    /// The gates that the project's files suggest, where somebody should say whether they are run:
    /// the plan, the settings and whoever trusts the project have said nothing.
    pub fn undecided_gates(&self, plan: &Plan) -> Vec<String> {
        let is_undecided = self.settings.gates == "ask" && !self.gates.auto && self.gates.config.is_empty();
        let left_open = plan.phases.iter().any(|phase| phase.settings.gates.is_none());
        let names =
            self.gates.detected.gates.iter().map(|gate| format!("{}: {}", gate.name, gate.check.shown()));
        names.filter(|_| is_undecided && left_open).collect()
    }

    /// Runs the gates that the project's files suggest.
    pub fn run_detected_gates(&mut self) {
        self.gates.auto = true;
    }

    /// What a person should know about the gates of this plan: what is checked, and what is not.
    pub fn notes(&self, plan: &Plan, equipment: &[Equipment]) -> Vec<String> {
        let mut notes = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for gate in equipment.iter().flat_map(|equipment| &equipment.gates) {
            if !names.contains(&gate.name.as_str()) {
                names.push(&gate.name);
            }
        }
        let left_open = plan.phases.iter().any(|phase| phase.settings.gates.is_none());
        if !names.is_empty() {
            notes.push(format!("checked, on the base first and as work lands: {}", names.join(", ")));
        }
        if left_open
            && !self.gates.auto
            && self.gates.config.is_empty()
            && !self.gates.detected.gates.is_empty()
        {
            let names: Vec<&str> = self.gates.detected.gates.iter().map(|gate| gate.name.as_str()).collect();
            notes.push(format!(
                "gates that this project suggests are not run: {}; --gates auto runs them",
                names.join(", ")
            ));
        }
        notes.extend(self.gates.detected.notes.iter().filter(|_| self.gates.auto && left_open).cloned());
        notes
    }

    /// What every phase of a plan needs. Phases that nobody can work on are named, all of them.
    pub fn equip(&self, plan: &Plan) -> Result<Vec<Equipment>, RunError> {
        let mut idle: Vec<String> = Vec::new();
        let mut all = Vec::new();
        for phase in &plan.phases {
            match self.worker(phase)? {
                Some(worker) => {
                    let limits = self.limits(phase, &worker);
                    let (setup, protect) = (self.setup(phase), self.protect(phase));
                    let fallbacks = self.fallbacks(phase, &worker)?;
                    let gates = self.gates(phase, plan.defaults.gates.as_deref().unwrap_or_default())?;
                    let idioms = Idioms::default();
                    let asked = None;
                    all.push(Equipment { gates, limits, worker, fallbacks, setup, protect, idioms, asked });
                }
                None => idle.push(phase.id.shown().to_owned()),
            }
        }
        if !idle.is_empty() {
            return Err(RunError::NoWorker { phases: idle });
        }
        let untold = plan.phases.iter().zip(&all).filter(|(phase, equipment)| {
            matches!(equipment.worker, Worker::Agent { .. }) && phase.section.raw().trim().is_empty()
        });
        let untold: Vec<String> = untold.map(|(phase, _)| phase.id.shown().to_owned()).collect();
        if untold.is_empty() { Ok(all) } else { Err(RunError::NoSection { phases: untold }) }
    }

    /// Lets nobody work on these phases: a person has done it, and their gates decide.
    pub fn accept(plan: &Plan, equipment: &mut [Equipment], accepted: &[String]) -> Result<(), RunError> {
        for given in accepted {
            equipment[Self::place(plan, given)?].worker = Worker::Nobody;
        }
        Ok(())
    }

    /// The place in the plan of a phase that somebody names.
    fn place(plan: &Plan, given: &str) -> Result<usize, RunError> {
        let known = || plan.phases.iter().map(|phase| phase.id.shown().to_owned()).collect();
        let unknown = || RunError::NoPhase { given: given.to_owned(), known: known() };
        let id: crate::document::PhaseId = given.parse().map_err(|_| unknown())?;
        plan.phases.iter().position(|phase| phase.id.key() == id.key()).ok_or_else(unknown)
    }

    /// The gates of the phases that are named, of all where none is, each once. Nobody needs to be
    /// able to work on them.
    pub(super) fn gates_of(&self, plan: &Plan, phases: &[String]) -> Result<Vec<Gate>, RunError> {
        let named = phases.iter().map(|given| Self::place(plan, given)).collect::<Result<Vec<_>, _>>()?;
        let common = plan.defaults.gates.as_deref().unwrap_or_default();
        let mut gates: Vec<Gate> = Vec::new();
        for (at, phase) in plan.phases.iter().enumerate() {
            if named.is_empty() || named.contains(&at) {
                let new = self.gates(phase, common)?.into_iter().filter(|gate| !gates.contains(gate));
                let new: Vec<Gate> = new.collect();
                gates.extend(new);
            }
        }
        Ok(gates)
    }

    fn worker(&self, phase: &Phase) -> Result<Option<Worker>, RunError> {
        if let Some(command) = &phase.settings.command {
            return Ok(Some(Worker::Command(command.clone())));
        }
        let Some(name) = phase.settings.agent.as_ref().or(self.settings.agent.as_ref()) else {
            return Ok(None);
        };
        let agent = self.agent(name)?;
        let model = phase.settings.model.clone().or_else(|| self.settings.model.clone());
        Ok(Some(Worker::Agent { agent, model }))
    }

    /// The agent of phases that name none, where one is set.
    pub fn usual_agent(&self) -> Result<Option<Agent>, RunError> {
        self.settings.agent.as_deref().map(|name| self.agent(name)).transpose()
    }

    /// An agent by its name, or by its command: `my-agent --prompt {prompt_file}`, `./my-agent`.
    fn agent(&self, name: &str) -> Result<Agent, RunError> {
        if let Some(agent) = named_agent(name, &self.agents)? {
            return Ok(agent);
        }
        if name.contains(|c: char| c.is_whitespace() || c == '/')
            && let Some(words) = backstop_core::shell::words(name)
            && let Some(program) = words.first()
        {
            let short = program.rsplit('/').next().unwrap_or(program).to_owned();
            return Ok(from_template(&short, words, TemplateOptions::default())?);
        }
        let known = self.agents.iter().map(|agent| agent.name.clone());
        let plain = BUILTINS.iter().map(|agent| agent.name);
        let by_acp =
            KNOWN_ACP.iter().map(|agent| agent.name).filter(|name| plain.clone().all(|n| n != *name));
        let known = plain.clone().chain(by_acp).map(str::to_owned).chain(known).collect();
        Err(RunError::NoAgent { given: name.to_owned(), known })
    }

    /// The agents that take over while the agent of a phase is limited: others than that one.
    fn fallbacks(&self, phase: &Phase, worker: &Worker) -> Result<Vec<Agent>, RunError> {
        let Worker::Agent { agent: own, .. } = worker else { return Ok(Vec::new()) };
        let names = phase.settings.fallback_agents.as_ref().unwrap_or(&self.settings.fallback_agents);
        names.iter().filter(|name| **name != own.name).map(|name| self.agent(name)).collect()
    }

    fn setup(&self, phase: &Phase) -> Option<Setup> {
        let inputs = |own: &[String]| match own.is_empty() {
            true => self.settings.setup_inputs.clone(),
            false => own.to_vec(),
        };
        let own = phase.settings.setup.clone();
        let command = own.or_else(|| self.settings.setup.clone().map(CommandLine::Argv))?;
        Some(Setup { command, inputs: inputs(&phase.settings.setup_inputs) })
    }

    /// What the configuration protects and what the plan does: neither takes from the other.
    fn protect(&self, phase: &Phase) -> Vec<String> {
        self.settings.protect.iter().chain(&phase.settings.protect).cloned().collect()
    }

    fn limits(&self, phase: &Phase, worker: &Worker) -> Limits {
        let or = |given: Option<&Limit>, otherwise: Option<Duration>| match given {
            Some(Limit::After(limit)) => Some(*limit),
            Some(Limit::None) => None,
            None => otherwise,
        };
        let idle = self.settings.idle.filter(|_| matches!(worker, Worker::Agent { .. }));
        Limits {
            wall: or(phase.settings.timeout.as_ref(), self.settings.timeout),
            idle: or(phase.settings.idle.as_ref(), idle),
            grace: self.grace,
            kept_bytes_max: self.kept_bytes_max,
            ..Limits::default()
        }
    }

    /// The gates of a phase: what the plan says, else what the configuration says, else what was
    /// found, where that counts. `common` are those that the plan asks of every phase.
    fn gates(&self, phase: &Phase, common: &[GateSetting]) -> Result<Vec<Gate>, RunError> {
        let flaky = phase.settings.flaky.unwrap_or(self.settings.flaky);
        let mut gates = match &phase.settings.gates {
            Some(settings) => {
                let mut gates = Vec::new();
                for setting in settings {
                    let origin = if common.contains(setting) { Origin::PlanWide } else { Origin::Plan };
                    gates.extend(self.named(phase, setting, origin)?);
                }
                gates
            }
            None => self.usual(phase.settings.dir.as_deref()),
        };
        if let Some(dir) = &phase.settings.dir {
            // What the configuration names is written for the project's folder.
            let is_plans = |gate: &&mut Gate| matches!(gate.origin, Origin::Plan | Origin::PlanWide);
            gates.iter_mut().filter(is_plans).for_each(|gate| in_folder(gate, dir));
        }
        for gate in &mut gates {
            gate.flaky = gate.flaky.max(flaky);
        }
        Ok(gates)
    }

    /// The configuration's gates, each in place of the detected one of its name. Those that the
    /// files of a phase's own folder suggest are run there.
    fn usual(&self, dir: Option<&str>) -> Vec<Gate> {
        let mut gates = self.gates.config.clone();
        if self.gates.auto {
            let own = dir.map(|dir| {
                let mut found = detect(&self.folder.join(dir)).gates;
                found.iter_mut().for_each(|gate| in_folder(gate, dir));
                found
            });
            let own = own.filter(|own| !own.is_empty());
            let others = own.as_deref().unwrap_or(&self.gates.detected.gates).iter();
            gates.extend(
                others.filter(|gate| !self.gates.config.iter().any(|own| gate.is_called(&own.name))).cloned(),
            );
        }
        gates
    }

    /// The gates that a plan means. Those that it brings itself have this origin.
    fn named(&self, phase: &Phase, setting: &GateSetting, origin: Origin) -> Result<Vec<Gate>, RunError> {
        if let Some(check) = &setting.check {
            let mut gate = Gate::new(setting.name.to_string(), check.clone(), origin);
            gate.fix = setting.fix.clone();
            gate.timeout = match &setting.timeout {
                Some(Limit::After(limit)) => Some(*limit),
                // A clock that never comes to an end: nothing would mean the usual one.
                Some(Limit::None) => Some(NEVER),
                None => None,
            };
            return Ok(vec![gate]);
        }
        // Naming a plan on the command line trusts what it names: a gate's name will do.
        let all = self.gates.config.iter().chain(&self.gates.detected.gates);
        let mut found: Vec<Gate> = Vec::new();
        for gate in all.filter(|gate| gate.is_called(setting.name.as_str())) {
            if !found.iter().any(|known| known.name == gate.name || known.origin == Origin::Config) {
                found.push(gate.clone());
            }
        }
        if found.is_empty() && !self.is_nearly_known(setting.name.as_str()) {
            // No gate's name: a command of one word.
            let check = CommandLine::Shell(setting.name.to_string());
            return Ok(vec![Gate::new(setting.name.to_string(), check, origin)]);
        }
        if found.is_empty() {
            return Err(RunError::NoGate {
                phase: phase.id.shown().to_owned(),
                given: setting.name.to_string(),
            });
        }
        Ok(found)
    }

    /// Whether this is a usual name of a gate, or like one: a gate was meant, and no command.
    fn is_nearly_known(&self, name: &str) -> bool {
        let gates = self.gates.config.iter().chain(&self.gates.detected.gates);
        nearest(name, USUAL_NAMES.into_iter().chain(gates.map(|gate| gate.name.as_str()))).is_some()
    }
}

/// Has a gate run in a folder below the project's.
fn in_folder(gate: &mut Gate, dir: &str) {
    gate.check = command_in(&gate.check, dir);
    gate.fix = gate.fix.as_ref().map(|fix| command_in(fix, dir));
}

/// The command, run in a folder.
fn command_in(command: &CommandLine, dir: &str) -> CommandLine {
    let line = match command {
        CommandLine::Shell(line) => line.clone(),
        CommandLine::Argv(words) => backstop_core::shell::line(words),
    };
    CommandLine::Shell(format!("cd {} && {line}", backstop_core::shell::line([dir])))
}

/// Takes out agents that cannot take over because their programs are not there. Gives what a person
/// should know about that.
pub fn drop_missing_fallbacks(equipment: &mut [Equipment], is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut notes = Vec::new();
    for equipment in equipment {
        equipment.fallbacks.retain(|agent| {
            let is_there = agent.argv.first().is_some_and(|program| is_there(program));
            let note = format!("{} cannot take over: its program is not there", agent.name);
            if !is_there && !notes.contains(&note) {
                notes.push(note);
            }
            is_there
        });
    }
    notes
}

/// The programs that are not there, with the phases that need them: known before anything is begun.
pub fn missing_programs(
    plan: &Plan,
    equipment: &[Equipment],
    is_there: &dyn Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut missing: Vec<(String, String)> = Vec::new();
    for (phase, equipment) in plan.phases.iter().zip(equipment) {
        let Worker::Agent { agent, .. } = &equipment.worker else { continue };
        let Some(program) = agent.argv.first() else { continue };
        if !is_there(program) && !missing.iter().any(|(known, _)| known == program) {
            missing.push((program.clone(), phase.id.shown().to_owned()));
        }
    }
    missing
}
