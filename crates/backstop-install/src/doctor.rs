//! Checks the hooks in agents' settings: which are installed, and whether they can be run.

use crate::{Agent, Folders, Installed, Scope, Target, installed};
use backstop_report::Check;

/// The name of these checks.
const NAME: &str = "hooks";

/// The commands that remove one of the two.
pub const REMOVE_ONE: &str =
    "keep one: `backstop init --remove` removes the project's, `backstop init --user --remove` yours";

/// Whether an agent's settings of this scope have hooks of ours.
pub fn is_installed(agent: Agent, scope: Scope, folders: &Folders) -> bool {
    let target = Target::new(agent, scope, folders);
    target.and_then(|target| installed(&target)).is_ok_and(|hooks| hooks.is_some())
}

/// Checks the hooks of all agents. `is_found` says whether a program is found.
pub fn checks(folders: &Folders, is_found: &dyn Fn(&str) -> bool) -> Vec<Check> {
    let (mut checks, mut found) = (Vec::new(), Vec::new());
    for agent in Agent::ALL {
        for scope in [Scope::Project, Scope::User] {
            look(agent, scope, folders, is_found, &mut found, &mut checks);
        }
        if [Scope::Project, Scope::User].into_iter().all(|scope| is_installed(agent, scope, folders)) {
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
    checks
}

/// Looks at the settings of one agent in one scope.
fn look(
    agent: Agent,
    scope: Scope,
    folders: &Folders,
    is_found: &dyn Fn(&str) -> bool,
    found: &mut Vec<String>,
    checks: &mut Vec<Check>,
) {
    let Ok(target) = Target::new(agent, scope, folders) else { return };
    let hooks = match installed(&target) {
        Ok(Some(hooks)) => hooks,
        Ok(None) => return,
        Err(error) => {
            checks.push(Check::note(NAME, error.to_string(), error.hint()));
            return;
        }
    };
    let place = format!("{} ({})", agent.name(), scope.name());
    checks.extend(trouble(&hooks, &place, scope, is_found));
    found.push(place);
}

/// What is wrong with installed hooks.
fn trouble(hooks: &Installed, place: &str, scope: Scope, is_found: &dyn Fn(&str) -> bool) -> Option<Check> {
    let flag = if scope == Scope::User { " --user" } else { "" };
    let again = format!("`backstop init{flag}` updates them");
    if let Some(program) = hooks.programs.iter().find(|program| !is_found(program)) {
        if !program.contains('/') {
            // The agent's PATH may be another one.
            let says = format!("{place}: they call `{program}`, which is not on the PATH");
            return Some(Check::note(NAME, says, "put backstop on the PATH of the agent"));
        }
        let says = format!("{place}: they call `{program}`, which does not exist");
        let hint = format!("correct the path, or `backstop init{flag} --remove` and `backstop init{flag}`");
        return Some(Check::bad(NAME, says, hint));
    }
    if !hooks.missing.is_empty() {
        let says = format!("{place}: no hook for {}", hooks.missing.join(", "));
        return Some(Check::note(NAME, says, again));
    }
    hooks.is_outdated.then(|| Check::note(NAME, format!("{place}: the plugin is of another version"), again))
}
