//! Looks which hooks of ours a settings file has, for checks. It must not change anything.

use super::agent::Target;
use super::change::read;
use super::error::InstallError;
use super::hooks::{COMMAND, hooks, program};
use super::plugin::own_file;
use backstop_core::json::{Node, Value, member, parse};

/// The hooks of ours in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The programs that they call, each once: `backstop`, or a path that ends in it.
    pub programs: Vec<String>,
    /// The events that have no hook of ours although `backstop init` would add one.
    pub missing: Vec<&'static str>,
    /// Whether the file is an older version of our plugin.
    pub is_outdated: bool,
}

/// The hooks of ours in the file of a target; `None` if there are none.
pub fn installed(target: &Target) -> Result<Option<Installed>, InstallError> {
    let Some(text) = read(target)? else { return Ok(None) };
    if let Some(own) = own_file(target.agent) {
        let default = COMMAND.split(' ').next().unwrap_or_default().to_owned();
        let is_outdated = text != own.text;
        let ours = Installed { programs: vec![default], missing: Vec::new(), is_outdated };
        return Ok(own.is_ours(&text).then_some(ours));
    }
    let at = |error| InstallError::at(&target.file, &text, error);
    let Some(root) = parse(&text).map_err(at)? else { return Ok(None) };
    let members = root.object("the whole file").map_err(at)?;
    let Some(lists) = member(members, "hooks").map_err(at)? else { return Ok(None) };
    let lists = lists.node.object("hooks").map_err(at)?;
    let mut programs: Vec<String> = Vec::new();
    let mut missing = Vec::new();
    for hook in hooks(target.agent) {
        let list = member(lists, hook.event).map_err(at)?;
        let called: Vec<String> = list.map(|list| called(&list.node)).unwrap_or_default();
        if called.is_empty() {
            missing.push(hook.event);
        }
        for program in called {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
    }
    Ok((!programs.is_empty()).then_some(Installed { programs, missing, is_outdated: false }))
}

/// The programs of our handlers in the list of an event.
fn called(list: &Node) -> Vec<String> {
    let Value::Array(groups) = &list.value else { return Vec::new() };
    let handlers = groups.iter().flat_map(|group| match &group.value {
        Value::Object(members) => members.iter().filter(|m| m.key == "hooks").collect(),
        _ => Vec::new(),
    });
    let handlers = handlers.flat_map(|member| match &member.node.value {
        Value::Array(handlers) => handlers.as_slice(),
        _ => &[],
    });
    handlers.filter_map(program).collect()
}
