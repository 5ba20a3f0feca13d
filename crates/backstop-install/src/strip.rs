//! Computes the patches that remove hooks from a settings file.

use super::hooks::{Whose, whose};
use super::merge::list_name;
use super::patch::Patch;
use backstop_core::json::{Gap, JsonError, Node, Value, member, parse};
use std::collections::BTreeSet;

/// The result of removing our hooks from a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Strip {
    /// The patches; empty if there is nothing of ours.
    pub(crate) patches: Vec<Patch>,
    /// The events that had a hook of ours.
    pub(crate) events: Vec<String>,
    /// The number of hooks that call Backstop and were edited: they stay.
    pub(crate) left: usize,
    /// Whether only an empty object is left.
    pub(crate) is_empty: bool,
}

/// Computes how our hooks are removed from `text`. Lists that become empty are removed if they are
/// in `made`; if that is unknown (`None`), all of them are.
pub(crate) fn strip(text: &str, made: Option<&BTreeSet<String>>) -> Result<Strip, JsonError> {
    let mut strip = Strip::default();
    let Some(root) = parse(text)? else { return Ok(strip) };
    let members = root.object("the whole file")?;
    let Some(hooks) = member(members, "hooks")? else { return Ok(strip) };
    let is_made = |name: &str| made.is_none_or(|made| made.contains(name));
    let lists = hooks.node.object("hooks")?;
    let mut patches = Vec::new();
    let mut goes = vec![false; lists.len()];
    for (list, goes) in lists.iter().zip(&mut goes) {
        let name = list_name(&list.key);
        let Value::Array(groups) = &list.node.value else { continue };
        let fates: Vec<Fate> = groups.iter().map(|group| strip.group(text, group, &mut patches)).collect();
        if fates.iter().any(|fate| *fate != Fate::Untouched) {
            strip.events.push(list.key.clone());
        }
        let gone: Vec<bool> = fates.iter().map(|fate| *fate == Fate::Goes).collect();
        *goes = is_empty(&gone) && is_made(&name);
        if !*goes {
            cut(text, &list.node, &gone, &mut patches);
        }
    }
    if is_empty(&goes) && is_made("hooks") {
        let gone: Vec<bool> = members.iter().map(|m| m.key == "hooks").collect();
        strip.is_empty = is_empty(&gone);
        cut(text, &root, &gone, &mut strip.patches);
    } else {
        cut(text, &hooks.node, &goes, &mut patches);
        patches.sort_by_key(|patch| patch.at);
        strip.patches = patches;
    }
    Ok(strip)
}

/// What happens to a group of handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// No handler is ours.
    Untouched,
    /// Other handlers stay in it.
    Stays,
    /// Every handler is ours.
    Goes,
}

impl Strip {
    /// Decides what happens to a group; where it stays, cuts our handlers out of it.
    fn group(&mut self, text: &str, group: &Node, patches: &mut Vec<Patch>) -> Fate {
        let Value::Object(members) = &group.value else { return Fate::Untouched };
        let Some(list) = members.iter().find(|m| m.key == "hooks") else { return Fate::Untouched };
        let Value::Array(handlers) = &list.node.value else { return Fate::Untouched };
        let whose: Vec<Whose> = handlers.iter().map(whose).collect();
        self.left += whose.iter().filter(|w| **w == Whose::Changed).count();
        let gone: Vec<bool> = whose.iter().map(|w| *w == Whose::Ours).collect();
        if is_empty(&gone) {
            return Fate::Goes;
        }
        cut(text, &list.node, &gone, patches);
        if gone.contains(&true) { Fate::Stays } else { Fate::Untouched }
    }
}

/// Whether every part is removed.
fn is_empty(gone: &[bool]) -> bool {
    !gone.is_empty() && gone.iter().all(|gone| *gone)
}

/// Cuts parts out of an object or array, each with its comma and the white space before it.
fn cut(text: &str, from: &Node, gone: &[bool], patches: &mut Vec<Patch>) {
    let parts = from.parts();
    if gone.contains(&true) && from.gaps(text).iter().any(Gap::has_comment) {
        return cut_between_comments(text, from, gone, patches);
    }
    if is_empty(gone) {
        let take = from.end - from.start - 2;
        return patches.push(Patch { at: from.start + 1, take, put: String::new() });
    }
    let mut n = 0;
    while n < parts.len() {
        if !gone[n] {
            n += 1;
            continue;
        }
        let behind = (n..parts.len()).find(|at| !gone[*at]).unwrap_or(parts.len());
        let (at, end) = match n.checked_sub(1) {
            Some(before) => (parts[before].1, parts[behind - 1].1),
            None => (parts[0].0, parts[behind].0),
        };
        patches.push(Patch { at, take: end - at, put: String::new() });
        n = behind;
    }
}

/// The same where there are comments around the parts: they stay.
fn cut_between_comments(text: &str, from: &Node, gone: &[bool], patches: &mut Vec<Patch>) {
    let (parts, gaps) = (from.parts(), from.gaps(text));
    let mut run_start = 0;
    for (n, (start, end)) in parts.iter().copied().enumerate() {
        if !gone[n] {
            run_start = n + 1;
            continue;
        }
        let (before, behind) = (gaps[n], gaps[n + 1]);
        // What follows must not end up in a comment that goes on to the end of its line.
        let is_after_line = before.last_comment().is_some_and(|comment| comment.is_line);
        let at = if is_after_line && !behind.is_line_end() { start } else { before.trailing_space() };
        patches.push(Patch { at, take: end - at, put: String::new() });
        // The comma behind it; of the last parts, the one before the first of them.
        let comma = behind.comma.or_else(|| gaps[run_start].comma.filter(|_| run_start > 0));
        patches.extend(comma.map(|at| Patch { at, take: 1, put: String::new() }));
    }
    patches.sort_by_key(|patch| patch.at);
}
