//! Computes the patches that put hooks into a settings file.

use super::hooks::{Hook, Whose, whose};
use super::layout::{Layout, Piece};
use super::patch::Patch;
use backstop_core::json::{BOM, JsonError, Node, Value, member, parse};
use std::collections::BTreeSet;

/// The result of putting hooks into a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Merge {
    /// The patches; empty if every hook is there already.
    pub(crate) patches: Vec<Patch>,
    /// The events that had no hook of ours.
    pub(crate) events: Vec<&'static str>,
    /// Objects and lists that did not exist before, e.g. `hooks`, `hooks.Stop`.
    pub(crate) made: BTreeSet<String>,
    /// Whether a hook of ours was there before.
    pub(crate) was_there: bool,
}

/// The name under which an event's list is recorded.
pub(crate) fn list_name(event: &str) -> String {
    format!("hooks.{event}")
}

/// Computes how `wanted` hooks are put into `text`. An event that has a hook of ours already is
/// skipped.
pub(crate) fn merge(text: &str, wanted: &[Hook]) -> Result<Merge, JsonError> {
    let root = parse(text)?;
    let layout = Layout::of(text, root.as_ref());
    let mut merge = Merge::default();
    let Some(root) = root else {
        let from = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
        merge.create_all(wanted);
        let file = layout.file(&Piece::Object(vec![("hooks", lists(wanted))]));
        merge.patches.push(if text[from..].trim().is_empty() {
            Patch { at: from, take: text.len() - from, put: file }
        } else {
            // Nothing but comments: they stay above.
            let line_end = if text.ends_with('\n') { "" } else { "\n" };
            Patch { at: text.len(), take: 0, put: format!("{line_end}{file}") }
        });
        return Ok(merge);
    };
    let Some(hooks) = member(root.object("the whole file")?, "hooks")? else {
        merge.create_all(wanted);
        merge.patches.extend(layout.append(text, &root, &[(Some("hooks"), lists(wanted))]));
        return Ok(merge);
    };
    let there = hooks.node.object("hooks")?;
    let mut missing = Vec::new();
    for hook in wanted {
        let Some(list) = member(there, hook.event)? else {
            merge.events.push(hook.event);
            merge.made.insert(list_name(hook.event));
            missing.push((Some(hook.event), Piece::Array(vec![hook.group()])));
            continue;
        };
        let groups = list.node.array(&list_name(hook.event))?;
        if groups.iter().any(calls_us) {
            merge.was_there = true;
        } else {
            merge.events.push(hook.event);
            merge.patches.extend(layout.append(text, &list.node, &[(None, hook.group())]));
        }
    }
    if !missing.is_empty() {
        merge.patches.extend(layout.append(text, &hooks.node, &missing));
    }
    // Insertions after the last list come after the insertions into that list.
    merge.patches.sort_by_key(|patch| patch.at);
    Ok(merge)
}

impl Merge {
    /// Notes that every wanted hook and its lists are new in the file.
    fn create_all(&mut self, wanted: &[Hook]) {
        self.events = wanted.iter().map(|hook| hook.event).collect();
        self.made = wanted.iter().map(|hook| list_name(hook.event)).collect();
        self.made.insert("hooks".to_owned());
    }
}

fn lists(wanted: &[Hook]) -> Piece {
    Piece::Object(wanted.iter().map(|hook| (hook.event, Piece::Array(vec![hook.group()]))).collect())
}

/// Whether a group has a handler that calls Backstop.
fn calls_us(group: &Node) -> bool {
    let Value::Object(members) = &group.value else { return false };
    members.iter().filter(|m| m.key == "hooks").any(|m| match &m.node.value {
        Value::Array(handlers) => handlers.iter().any(|handler| whose(handler) != Whose::Other),
        _ => false,
    })
}
