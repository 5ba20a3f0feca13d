//! The tools of all servers, under the names that callers use.
//!
//! A [`Catalogue`] is a value: it is made anew when a server's list changes. [`cache`] keeps the
//! lists on disk, so that they are there before any server has started. Names, descriptions and
//! schemas are text from outside.

pub(crate) mod broken_cache;
pub(crate) mod cache;
pub(crate) mod definition;

use crate::arguments::Schema;
use crate::names::unique_names;
use crate::protocol::Era;
use backstop_config::McpServerSettings;
use backstop_core::{Name, SafeText, Timestamp};
use globset::Glob;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// How many characters of a description are searched and shown.
const DESCRIPTION_CHARS_MAX: usize = 4000;
/// How many changes of known tools are remembered for a server.
const CHANGES_MAX: usize = 50;

/// What a server answered when it was asked for its tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Value>,
    /// How many more there were than are taken.
    pub(crate) left_out: usize,
    pub(crate) era: Era,
    pub(crate) hello: Value,
}

/// The list of one server, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerListing {
    /// What the list depends on, as a hash of the server's settings.
    pub(crate) fingerprint: String,
    /// When it was asked for.
    pub listed_at: Timestamp,
    pub(crate) era: Era,
    /// What the server said when it was greeted: its capabilities and its name.
    pub(crate) hello: Value,
    /// The tools as the server describes them.
    pub(crate) tools: Vec<Value>,
    /// How many more tools there were than are taken.
    #[serde(default)]
    pub left_out: usize,
    /// What changed in tools that were known before, newest last.
    #[serde(default)]
    pub changes: Vec<ToolChange>,
}

/// A known tool that is described differently now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolChange {
    /// The tool, as the server calls it.
    pub tool: String,
    /// What changed: `description`, `schema`, `annotations`.
    pub what: Vec<String>,
    /// When that was noticed.
    pub at: Timestamp,
}

/// Whether the lists on disk could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheState {
    /// They were read.
    Read,
    /// There are none yet.
    Missing,
    /// They cannot be read; why.
    Invalid(String),
}

impl ServerListing {
    /// The new list of a server, with what changed since the old one.
    pub(crate) fn new(fingerprint: String, listing: Listing, old: Option<&Self>, now: Timestamp) -> Self {
        let mut changes: Vec<ToolChange> = old.map(|old| old.changes.clone()).unwrap_or_default();
        // A server whose settings changed is another server.
        for before in old.filter(|old| old.fingerprint == fingerprint).into_iter().flat_map(|old| &old.tools)
        {
            let after = listing.tools.iter().find(|tool| tool["name"] == before["name"]);
            let what = after.map(|after| changed(before, after)).unwrap_or_default();
            if !what.is_empty() {
                let tool = before["name"].as_str().unwrap_or_default().to_owned();
                changes.push(ToolChange { tool, what, at: now });
            }
        }
        let from = changes.len().saturating_sub(CHANGES_MAX);
        changes.drain(..from);
        let Listing { tools, left_out, era, hello } = listing;
        Self { fingerprint, listed_at: now, era, hello, tools, left_out, changes }
    }

    /// Whether the same tools are described in the same way.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.tools == other.tools
    }
}

fn changed(before: &Value, after: &Value) -> Vec<String> {
    let parts = [("description", "description"), ("inputSchema", "schema"), ("annotations", "annotations")];
    let differs = |key: &str| before.get(key) != after.get(key);
    parts.into_iter().filter(|(key, _)| differs(key)).map(|(_, what)| what.to_owned()).collect()
}

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// The name that callers use.
    pub name: String,
    /// The server that has it.
    pub server: Name,
    /// The name that the server uses.
    pub tool: String,
    /// What it is for, as the server says.
    pub description: SafeText,
    /// Whether the server says that it changes nothing.
    pub read_only: bool,
    /// Whether a second call does no more than the first, as the server or the settings say.
    pub repeatable: bool,
    category: Option<String>,
    /// The list that it is in, and where.
    listing: Arc<ServerListing>,
    index: usize,
    schema: OnceLock<Result<Schema, String>>,
}

impl Tool {
    fn new(
        name: String,
        server: &Name,
        listing: &Arc<ServerListing>,
        index: usize,
        settings: Option<&McpServerSettings>,
    ) -> Self {
        let raw = &listing.tools[index];
        let tool = raw["name"].as_str().unwrap_or_default().to_owned();
        let hint = |key: &str| raw["annotations"][key].as_bool().unwrap_or(false);
        let read_only = hint("readOnlyHint");
        let configured = settings.is_some_and(|settings| matches_any(&settings.repeatable, &tool));
        let description: String =
            raw["description"].as_str().unwrap_or_default().chars().take(DESCRIPTION_CHARS_MAX).collect();
        let category = settings.and_then(|settings| settings.category.clone());
        Self {
            repeatable: read_only || hint("idempotentHint") || configured,
            read_only,
            description: SafeText::new(description),
            category,
            server: server.clone(),
            name,
            tool,
            listing: Arc::clone(listing),
            index,
            schema: OnceLock::new(),
        }
    }

    /// The category of its server: what the settings say.
    pub fn category(&self) -> Option<&str> {
        self.category.as_deref()
    }

    /// Everything that the server says of it, under its own name.
    pub fn raw(&self) -> &Value {
        &self.listing.tools[self.index]
    }

    /// Everything that the server says of it, under the name that callers use, as clients of this
    /// era accept it.
    pub(crate) fn public(&self, era: Era) -> Value {
        let mut tool = self.raw().clone();
        definition::repair_tool(&mut tool, era);
        tool["name"] = Value::from(self.name.as_str());
        tool
    }

    /// The members of its definition that are not as the protocol says.
    pub fn odd_members(&self) -> Vec<String> {
        definition::repair_tool(&mut self.raw().clone(), Era::Modern)
    }

    /// Its parameters: the name, with `?` where it is optional, and the type.
    pub fn parameters(&self) -> Vec<(String, String)> {
        crate::arguments::expected(self.input_schema())
    }

    /// The schema of its arguments, as the server gives it.
    pub(crate) fn input_schema(&self) -> &Value {
        &self.raw()["inputSchema"]
    }

    /// The schema of its arguments, where it can be used; else why not.
    pub(crate) fn schema(&self) -> Result<&Schema, &str> {
        self.schema.get_or_init(|| Schema::read(self.input_schema())).as_ref().map_err(String::as_str)
    }

    /// Why its arguments are not checked before they are sent, if they are not.
    pub fn schema_problem(&self) -> Option<&str> {
        self.schema().err()
    }
}

/// Whether a tool's name fits one of these patterns.
pub(crate) fn matches_any(patterns: &[String], tool: &str) -> bool {
    let fits = |pattern: &String| {
        Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(tool)) || pattern == tool
    };
    patterns.iter().any(fits)
}

/// The tools of all servers.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: BTreeMap<String, Arc<Tool>>,
    listings: BTreeMap<Name, Arc<ServerListing>>,
}

impl Catalogue {
    /// From the lists of servers. `settings` says what of a server is offered, and how.
    pub(crate) fn new(
        listings: BTreeMap<Name, Arc<ServerListing>>,
        settings: &BTreeMap<Name, &McpServerSettings>,
        prefix: bool,
    ) -> Self {
        let prefix = prefix || listings.len() != 1;
        let offered = |server: &Name, tool: &Value| {
            let Some(name) = tool["name"].as_str().filter(|name| !name.is_empty()) else { return false };
            settings.get(server).is_none_or(|settings| {
                (settings.allow.is_empty() || matches_any(&settings.allow, name))
                    && !matches_any(&settings.deny, name)
            })
        };
        let all: Vec<(&Name, &Arc<ServerListing>, usize)> = listings
            .iter()
            .flat_map(|(server, listing)| (0..listing.tools.len()).map(move |at| (server, listing, at)))
            .filter(|(server, listing, at)| offered(server, &listing.tools[*at]))
            .collect();
        let parts = all.iter().map(|(server, listing, at)| {
            (prefix.then_some(server.as_str()), listing.tools[*at]["name"].as_str().unwrap_or_default())
        });
        let names = unique_names(parts);
        let made = names.into_iter().zip(&all).map(|(name, (server, listing, at))| {
            let tool = Tool::new(name.clone(), server, listing, *at, settings.get(*server).copied());
            (name, Arc::new(tool))
        });
        Self { tools: made.collect(), listings: listings.clone() }
    }

    #[cfg(test)]
    pub(crate) fn of_lists(lists: &[(&str, Vec<Value>)]) -> Self {
        let listing = |tools: &[Value]| ServerListing {
            fingerprint: String::new(),
            listed_at: Timestamp::from_millis(0),
            era: Era::Legacy,
            hello: Value::Null,
            tools: tools.to_vec(),
            left_out: 0,
            changes: Vec::new(),
        };
        let listings =
            lists.iter().map(|(server, tools)| (server.parse().unwrap(), Arc::new(listing(tools))));
        Self::new(listings.collect(), &BTreeMap::new(), true)
    }

    /// A tool by the name that callers use.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// All tools, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The list of each server that has been asked.
    pub fn listings(&self) -> &BTreeMap<Name, Arc<ServerListing>> {
        &self.listings
    }

    /// The names of the servers whose tools are known.
    pub(crate) fn servers(&self) -> Vec<String> {
        self.listings.keys().map(ToString::to_string).collect()
    }

    /// The tools that have all of these words in their name or description, best first: a word in
    /// the name counts more.
    pub fn search(&self, words: &str) -> Vec<&Arc<Tool>> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let score = |tool: &Arc<Tool>| {
            let (name, text) = (tool.name.to_lowercase(), tool.description.raw().to_lowercase());
            let points = words.iter().map(|word| match (name.contains(word), text.contains(word)) {
                (true, _) => Some(2),
                (false, true) => Some(1),
                (false, false) => None,
            });
            points.sum::<Option<u32>>()
        };
        let mut found: Vec<(u32, &Arc<Tool>)> =
            self.tools().filter_map(|tool| score(tool).map(|points| (points, tool))).collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        found.into_iter().map(|(_, tool)| tool).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listing(tools: Value) -> Listing {
        let tools = tools.as_array().unwrap().clone();
        Listing { tools, left_out: 0, era: Era::Legacy, hello: json!({}) }
    }

    #[test]
    fn what_is_offered_is_what_the_settings_allow() {
        let tools = json!([{ "name": "get_a" }, { "name": "get_b" }, { "name": "set_a" }, { "nonsense": 1 }]);
        let listings = |name: &str| {
            let new = ServerListing::new("f".into(), listing(tools.clone()), None, Timestamp::from_millis(0));
            BTreeMap::from([(name.parse::<Name>().unwrap(), Arc::new(new))])
        };
        let settings = McpServerSettings {
            allow: vec!["get_*".to_owned()],
            deny: vec!["get_b".to_owned()],
            ..McpServerSettings::default()
        };
        let name: Name = "s".parse().unwrap();
        let settings = BTreeMap::from([(name, &settings)]);
        let names = |catalogue: &Catalogue| catalogue.tools().map(|t| t.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&Catalogue::new(listings("s"), &settings, true)), ["s__get_a"]);
        assert_eq!(names(&Catalogue::new(listings("s"), &settings, false)), ["get_a"]);
        assert_eq!(Catalogue::new(listings("t"), &settings, true).len(), 3);
    }

    #[test]
    fn a_tool_that_is_described_differently_is_noticed() {
        let at = Timestamp::from_millis(7);
        let old = ServerListing::new(
            "f".into(),
            listing(json!([{ "name": "a", "description": "x" }, { "name": "b" }])),
            None,
            at,
        );
        assert!(old.changes.is_empty());
        let new = listing(json!([{ "name": "a", "description": "y", "inputSchema": {} }, { "name": "c" }]));
        let same = ServerListing::new("f".into(), new.clone(), Some(&old), at);
        assert_eq!(
            same.changes,
            [ToolChange { tool: "a".into(), what: vec!["description".into(), "schema".into()], at }]
        );
        assert!(ServerListing::new("other".into(), new, Some(&old), at).changes.is_empty());
    }

    #[test]
    fn a_tool_is_repeatable_by_its_annotations_or_the_settings() {
        let tool = |annotations: Value| json!({ "name": "a", "annotations": annotations });
        let made = |raw: Value, settings: Option<&McpServerSettings>| {
            let listing = listing(json!([raw]));
            let listing = ServerListing::new("f".into(), listing, None, Timestamp::from_millis(0));
            Tool::new("s__a".into(), &"s".parse().unwrap(), &Arc::new(listing), 0, settings)
        };
        assert!(!made(tool(json!({})), None).repeatable);
        assert!(!made(tool(json!({ "destructiveHint": false })), None).repeatable);
        assert!(made(tool(json!({ "readOnlyHint": true })), None).repeatable);
        assert!(made(tool(json!({ "idempotentHint": true })), None).repeatable);
        let settings = McpServerSettings { repeatable: vec!["a*".into()], ..McpServerSettings::default() };
        assert!(made(tool(json!({})), Some(&settings)).repeatable);
    }

    #[test]
    fn a_search_looks_in_names_first() {
        let catalogue = Catalogue::of_lists(&[(
            "s",
            vec![
                json!({ "name": "read", "description": "reads an Issue" }),
                json!({ "name": "issue", "description": "x" }),
                json!({ "name": "other" }),
            ],
        )]);
        let names: Vec<&str> = catalogue.search("ISSUE").iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["s__issue", "s__read"]);
        assert!(catalogue.search("issue nope").is_empty());
    }
}
