//! Lists of all servers together: tools, resources, prompts.

use super::changes::Changed;
use super::requests::Asked;
use super::{Gateway, lock};
use crate::catalogue::Tool;
use crate::catalogue::definition::repair_item;
use crate::connection::{Connection, RequestFailure, RequestLimits};
use crate::jsonrpc::{self, INVALID_PARAMS, Raw, RpcError, raw, with_member};
use crate::names::unique_names;
use crate::protocol::Era;
use backstop_core::Name;
use backstop_engine::Cancel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a list waits for servers that have not been asked before. Whoever is slower comes with
/// a change of the list.
const LIST_WAIT: Duration = Duration::from_secs(10);
/// How long it waits for them where the tools of others are known, and for one that was waited for
/// before.
const BRIEF_WAIT: Duration = Duration::from_secs(1);
/// How long one server may take for a resource or a prompt.
const READ_MAX: Duration = Duration::from_secs(60);
/// How many resources are remembered by their server.
const RESOURCES_MAX: usize = 10_000;

/// Takes characters that act on a terminal or reorder text out of what describes a tool, a resource
/// or a prompt. Names and schemas' keys stay: they are what is called.
fn without_controls(item: &mut Value) {
    match item {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if matches!(key.as_str(), "description" | "title") => {
                        if text.contains(acts) {
                            text.retain(|c| !acts(c));
                        }
                    }
                    _ => without_controls(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(without_controls),
        _ => {}
    }
}

/// Control characters other than line ends and tabs, and characters that reorder text.
fn acts(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Gateway {
    /// The tools of all servers: at once from what is known, refreshed behind.
    pub(super) async fn tools(self: &Arc<Self>, era: Era) -> Vec<Value> {
        let (mut unknown, mut old): (Vec<Name>, Vec<Name>) = (Vec::new(), Vec::new());
        let toolbox = self.toolbox();
        for name in toolbox.upstreams().keys() {
            let is_first = lock(&self.refreshed).insert(name.clone());
            if !toolbox.is_listed(name) {
                unknown.push(name.clone());
            } else if is_first && !toolbox.is_fresh(name) {
                old.push(name.clone());
            } else if is_first {
                lock(&self.refreshed).remove(name);
            }
        }
        for name in &old {
            self.refresh_behind(name);
        }
        // Each is waited for once: a server that is never ready must not delay every list.
        let (new, slow): (Vec<Name>, Vec<Name>) =
            unknown.into_iter().partition(|name| self.waits_first("tools/list", name));
        for name in &slow {
            self.refresh_behind(name);
        }
        if !new.is_empty() {
            let asked = new.len();
            let wait = if toolbox.catalogue().is_empty() { LIST_WAIT } else { BRIEF_WAIT };
            let answers = toolbox.refresh_all(new, Some(wait)).await;
            if answers.len() < asked {
                let (gateway, known) = (Arc::clone(self), toolbox.catalogue().len());
                tokio::spawn(async move { gateway.tell_when_listed(known).await });
            }
        }
        let own = self.settings.own_tools.then(super::own_tools::definitions).unwrap_or_default();
        let public = |tool: &Arc<Tool>| {
            let mut public = tool.public(era);
            without_controls(&mut public);
            public
        };
        toolbox.catalogue().tools().map(public).chain(own).collect()
    }

    /// Whether a method waits for a server for the first time.
    fn waits_first(&self, method: &str, server: &Name) -> bool {
        lock(&self.waited).insert((method.to_owned(), server.clone()))
    }

    /// Tells clients when servers that were slow have given their lists.
    async fn tell_when_listed(&self, before: usize) {
        for _ in 0..60 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if self.toolbox().catalogue().len() != before {
                self.tell_change(Changed::Tools);
                return;
            }
        }
    }

    /// The servers that a method can be asked of, as far as is known: those with resources or with
    /// prompts; of them `only` this one, where it is known. All are connected to at once, and one
    /// that is not ready costs little time.
    async fn having(
        &self,
        method: &str,
        only: Option<&Name>,
        cancel: &Cancel,
    ) -> BTreeMap<Name, Arc<Connection>> {
        let capability = method.split('/').next().unwrap_or_default();
        let toolbox = self.toolbox();
        let known = toolbox.catalogue();
        let mut tasks = JoinSet::new();
        for (name, upstream) in toolbox.upstreams() {
            if only.is_some_and(|only| only != name) {
                continue;
            }
            let listing = known.listings().get(name);
            if listing.is_some_and(|listing| listing.hello["capabilities"].get(capability).is_none()) {
                continue;
            }
            let wait = match (self.waits_first(method, name), listing.is_some()) {
                (true, true) => LIST_WAIT,
                (true, false) if known.is_empty() => LIST_WAIT,
                // It never said what it has, and was waited for.
                (false, false) if upstream.open_connection().is_none() => continue,
                _ => BRIEF_WAIT,
            };
            let (name, upstream, cancel) = (name.clone(), Arc::clone(upstream), cancel.clone());
            tasks.spawn(async move {
                let connection = tokio::time::timeout(wait, upstream.connection(&cancel)).await;
                (name, connection.ok().and_then(Result::ok))
            });
        }
        let mut found = BTreeMap::new();
        while let Some(done) = tasks.join_next().await {
            if let Ok((name, Some(connection))) = done
                && connection.has(capability)
            {
                found.insert(name, connection);
            }
        }
        found
    }

    /// A list of all servers together. A server that does not answer costs its own part.
    pub(super) async fn list_all(&self, method: &str, cancel: &Cancel) -> Result<Raw, RpcError> {
        let key = match method {
            "resources/list" => "resources",
            "resources/templates/list" => "resourceTemplates",
            _ => "prompts",
        };
        let limits = RequestLimits { idle: None, total: Some(LIST_WAIT) };
        let (mut all, mut servers): (Vec<Value>, Vec<Name>) = (Vec::new(), Vec::new());
        let mut tasks = JoinSet::new();
        for (server, connection) in self.having(method, None, cancel).await {
            let (method, cancel) = (method.to_owned(), cancel.clone());
            tasks.spawn(async move {
                let items = connection.list(&method, key, limits, &cancel).await;
                (server, items.unwrap_or_default())
            });
        }
        let mut lists = BTreeMap::new();
        while let Some(done) = tasks.join_next().await {
            lists.extend(done.ok());
        }
        for (server, items) in lists {
            for mut item in items {
                if !repair_item(key, &mut item) {
                    continue;
                }
                without_controls(&mut item);
                if let Some(uri) = item["uri"].as_str() {
                    let mut known = lock(&self.resources);
                    if known.len() < RESOURCES_MAX {
                        known.insert(uri.to_owned(), server.clone());
                    }
                }
                all.push(item);
                servers.push(server.clone());
            }
        }
        if key == "prompts" {
            self.name_prompts(&mut all, &servers);
        }
        Ok(raw(&json!({ key: all })))
    }

    /// Gives prompts the names that clients use, and remembers whose each is.
    fn name_prompts(&self, prompts: &mut [Value], servers: &[Name]) {
        let own = |prompt: &Value| prompt["name"].as_str().unwrap_or_default().to_owned();
        let parts: Vec<(&Name, String)> = servers.iter().zip(prompts.iter().map(own)).collect();
        let names = unique_names(parts.iter().map(|(server, name)| (Some(server.as_str()), name.as_str())));
        let mut known = lock(&self.prompts);
        known.clear();
        for ((prompt, name), (server, own)) in prompts.iter_mut().zip(names).zip(&parts) {
            prompt["name"] = name.as_str().into();
            known.insert(name, ((*server).clone(), own.clone()));
        }
    }

    /// The server and the own name of a prompt. Where it is not known, servers are asked once.
    async fn prompt_named(&self, name: &str, cancel: &Cancel) -> Option<(Name, String)> {
        let known = || lock(&self.prompts).get(name).cloned();
        if known().is_none() {
            self.list_all("prompts/list", cancel).await.ok()?;
        }
        known()
    }

    /// Reads a resource of the server that has it; where that is not known, of the first that does.
    pub(super) async fn read_resource(&self, asked: &Asked<'_>) -> Result<Raw, RpcError> {
        let uri = asked.text("uri").ok_or_else(|| RpcError::new(INVALID_PARAMS, "`uri` is missing"))?;
        let known = lock(&self.resources).get(&uri).cloned();
        let mut last = RpcError::new(-32002, format!("no server has the resource {uri}"));
        let limit = if known.is_some() { READ_MAX } else { LIST_WAIT };
        for connection in self.having("resources/read", known.as_ref(), &asked.cancel).await.values() {
            match self.ask_one(connection, "resources/read", limit, asked).await {
                Ok(result) => return Ok(result),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Gets a prompt under the name that it is listed by.
    pub(super) async fn get_prompt(&self, asked: &Asked<'_>) -> Result<Raw, RpcError> {
        let name = asked.text("name").ok_or_else(|| RpcError::new(INVALID_PARAMS, "`name` is missing"))?;
        let nothing = || RpcError::new(INVALID_PARAMS, format!("there is no prompt {name}"));
        let (server, prompt) = self.prompt_named(&name, &asked.cancel).await.ok_or_else(nothing)?;
        let toolbox = self.toolbox();
        let upstream = toolbox.upstreams().get(&server).ok_or_else(nothing)?;
        let connection = upstream.connection(&asked.cancel).await.map_err(|fault| {
            let cause = fault.cause.as_ref().map(|cause| cause.raw().to_owned()).unwrap_or_default();
            RpcError::new(jsonrpc::INTERNAL_ERROR, cause)
        })?;
        let params = asked.params.map(|params| with_member(params, "name", &Value::from(prompt)));
        let asked = Asked {
            session: asked.session,
            id: asked.id,
            params: params.as_deref(),
            meta: asked.meta.clone(),
            era: asked.era,
            cancel: asked.cancel.clone(),
        };
        self.ask_one(&connection, "prompts/get", READ_MAX, &asked).await
    }

    async fn ask_one(
        &self,
        connection: &Connection,
        method: &str,
        limit: Duration,
        asked: &Asked<'_>,
    ) -> Result<Raw, RpcError> {
        let limits = RequestLimits { idle: None, total: Some(limit) };
        let answer = connection.request(method, asked.params, limits, &asked.cancel).await;
        answer.map_err(|failure| match failure {
            RequestFailure::Rpc(error) => error,
            RequestFailure::TimedOut { .. } => {
                RpcError::new(jsonrpc::INTERNAL_ERROR, "the server does not answer")
            }
            _ => RpcError::new(jsonrpc::INTERNAL_ERROR, "the connection to the server failed"),
        })
    }
}
