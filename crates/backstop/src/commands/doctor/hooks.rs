//! Checks the hooks in agents' settings: which are installed, and whether they can be run.

use super::super::init::{REMOVE_ONE, folders, is_twice};
use super::{Check, State};
use crate::process;
use backstop_install::{Agent, Folders, Installed, Scope, Target, installed};

/// The name of these checks.
const NAME: &str = "hooks";

pub(super) fn check(checks: &mut Vec<Check>) {
    let Ok(folders) = folders() else { return };
    let mut found = Vec::new();
    for agent in Agent::ALL {
        for scope in [Scope::Project, Scope::User] {
            look(agent, scope, &folders, &mut found, checks);
        }
        if is_twice(agent, &folders) {
            let says = format!(
                "{}: in the project's settings and in yours, so each event is handled twice",
                agent.name()
            );
            checks.push(Check::note(NAME, says, REMOVE_ONE));
        }
    }
    if found.is_empty() {
        checks.push(Check::good(NAME, "not installed; `backstop init` installs them for coding agents"));
    } else {
        checks.push(Check::good(NAME, format!("installed for {}", found.join(", "))));
    }
}

/// Looks at the settings of one agent in one scope.
fn look(agent: Agent, scope: Scope, folders: &Folders, found: &mut Vec<String>, checks: &mut Vec<Check>) {
    let Ok(target) = Target::new(agent, scope, folders) else { return };
    let hooks = match installed(&target) {
        Ok(Some(hooks)) => hooks,
        Ok(None) => return,
        Err(error) => {
            let hint = Some(error.hint());
            checks.push(Check { name: NAME, state: State::Note, says: error.to_string(), hint });
            return;
        }
    };
    let place = format!("{} ({})", agent.name(), scope.name());
    checks.extend(trouble(&hooks, &place, scope));
    found.push(place);
}

/// What is wrong with installed hooks.
fn trouble(hooks: &Installed, place: &str, scope: Scope) -> Option<Check> {
    let flag = if scope == Scope::User { " --user" } else { "" };
    let again = format!("`backstop init{flag}` updates them");
    if let Some(program) = hooks.programs.iter().find(|program| !process::is_on_the_path(program)) {
        if !program.contains('/') {
            // The agent's PATH may be another one.
            let says = format!("{place}: they call `{program}`, which is not on the PATH");
            return Some(Check::note(NAME, says, "put backstop on the PATH of the agent"));
        }
        let says = format!("{place}: they call `{program}`, which does not exist");
        let hint = format!("correct the path, or `backstop init{flag} --remove` and `backstop init{flag}`");
        return Some(Check { name: NAME, state: State::Bad, says, hint: Some(hint) });
    }
    if !hooks.missing.is_empty() {
        let says = format!("{place}: no hook for {}", hooks.missing.join(", "));
        return Some(Check::note(NAME, says, again));
    }
    hooks.is_outdated.then(|| Check::note(NAME, format!("{place}: the plugin is of another version"), again))
}
