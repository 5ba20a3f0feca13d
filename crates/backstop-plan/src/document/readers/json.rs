//! Plans in JSON: which of the two formats it is, and what both read.

use super::super::draft::Draft;
use super::super::error::{PlanError, PlanErrorKind};
use super::super::format::Format;
use super::super::source::Source;
use super::{ralph, task_master};
use backstop_core::json::{Member, Node, Value, parse};

/// Whether a text can only be JSON: it begins with a brace, or with a list of them.
pub(super) fn is_json(text: &[u8]) -> bool {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).trim_ascii_start();
    let list = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    text.starts_with(b"{") || list.is_some_and(|rest| rest.starts_with(b"{"))
}

/// Reads a plan in JSON.
pub(super) fn read(text: &[u8], wanted: Option<Format>) -> Result<Draft, Vec<PlanError>> {
    let source = Source::new(text).map_err(|error| vec![error])?;
    let root = parse(source.text()).map_err(|error| {
        let (line, column) = source.position(error.at);
        vec![PlanError::at(line, column, PlanErrorKind::Json { message: error.kind.to_string().into() })]
    })?;
    let document = Json { source };
    let members = match root.as_ref().map(|root| &root.value) {
        Some(Value::Object(members)) => members.as_slice(),
        Some(Value::Array(tasks)) if wanted != Some(Format::Ralph) => {
            return Ok(task_master::read_tasks(&document, tasks));
        }
        _ => &[],
    };
    if wanted != Some(Format::TaskMaster)
        && let Some(stories) = list(members, "userStories")
    {
        return Ok(ralph::read(&document, stories));
    }
    if wanted != Some(Format::Ralph)
        && let Some(draft) = task_master::read(&document, members)
    {
        return Ok(draft);
    }
    let expected = match wanted {
        Some(Format::Ralph) => "an object with `userStories`",
        Some(_) => "an object with `tasks`, or with tags that have `tasks`",
        None => "an object with `tasks` (Task Master) or `userStories` (ralph)",
    };
    let kind = PlanErrorKind::NotFormat { format: wanted.map_or("json", Format::name), expected };
    Err(vec![PlanError::at(1, 1, kind)])
}

/// A JSON text.
pub(super) struct Json<'t> {
    source: Source<'t>,
}

impl Json<'_> {
    /// The line of a byte, counted from 0.
    pub(super) fn line(&self, at: usize) -> usize {
        self.source.line_of(at)
    }

    /// The text of a value: of a string its content, of anything else what is written.
    pub(super) fn text(&self, node: &Node) -> String {
        match &node.value {
            Value::Text(text) => text.clone(),
            _ => self.source.text()[node.start..node.end].to_owned(),
        }
    }

    /// The text of a member; empty where it is not there or null.
    pub(super) fn member(&self, members: &[Member], key: &str) -> String {
        let text = get(members, key).map(|node| self.text(node)).unwrap_or_default();
        if text == "null" { String::new() } else { text }
    }
}

/// A member's value.
pub(super) fn get<'m>(members: &'m [Member], key: &str) -> Option<&'m Node> {
    members.iter().find(|member| member.key == key).map(|member| &member.node)
}

/// A member that is a list.
pub(super) fn list<'m>(members: &'m [Member], key: &str) -> Option<&'m [Node]> {
    match &get(members, key)?.value {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

/// The members of an object.
pub(super) fn object(node: &Node) -> Option<&[Member]> {
    match &node.value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}
