//! Servers and tools as the values that reports render: lists, checks, what other programs have.

use crate::catalogue::{CacheState, Tool};
use crate::import::Found;
use crate::toolbox::Toolbox;
use backstop_core::nearest::nearest;
use backstop_core::{ErrorKind, Fault, HintedError, Name, SafeText};
use backstop_report::{
    CheckedServer, ImportedFile, MissingServer, NO_SERVERS_LINE, RefreshedServer, ToolRow, near_time,
};
use std::sync::Arc;

/// A server that is not set up, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no MCP server `{}`", SafeText::new(.given.as_str()).line(60))]
pub struct UnknownServer {
    given: String,
    hint: String,
}

impl HintedError for UnknownServer {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![self.hint.clone()]
    }
}

impl Tool {
    /// The tool as reports show it.
    pub fn row(&self) -> ToolRow {
        let text = |text: String| SafeText::new(text);
        ToolRow {
            name: self.name.clone(),
            server: self.server.to_string(),
            tool: SafeText::new(self.tool.as_str()),
            description: self.description.clone(),
            read_only: self.read_only,
            repeatable: self.repeatable,
            category: self.category().map(str::to_owned),
            parameters: self.parameters().into_iter().map(|(name, kind)| (text(name), text(kind))).collect(),
            input_schema: self.raw().get("inputSchema").cloned(),
            schema_problem: self.schema_problem().map(SafeText::new),
        }
    }
}

impl Found {
    /// What was found, as reports show it.
    pub fn row(&self) -> ImportedFile {
        let (servers, left_out, error) = match &self.servers {
            Ok(imported) => {
                let text = |text: &String| SafeText::new(text.as_str());
                let left_out = imported.left_out.iter().map(|(name, why)| (text(name), text(why)));
                (imported.servers.keys().map(ToString::to_string).collect(), left_out.collect(), None)
            }
            Err(error) => (Vec::new(), Vec::new(), Some(SafeText::new(error.to_string()))),
        };
        let file = SafeText::new(self.file.display().to_string());
        ImportedFile { program: self.client.name(), file, servers, left_out, error }
    }
}

impl Toolbox {
    /// The servers whose tools are missing because of how they are set up.
    pub fn missing(&self) -> Vec<MissingServer> {
        let missing = |problem: &crate::SetupProblem| MissingServer {
            server: problem.server.clone(),
            what: problem.what.clone(),
            next: problem.hint.clone(),
        };
        self.problems().iter().map(missing).collect()
    }

    /// The server with this name.
    pub fn server_named(&self, given: &str) -> Result<Name, UnknownServer> {
        let known = given.parse::<Name>().ok().filter(|name| self.upstreams().contains_key(name));
        known.ok_or_else(|| {
            let problem = self.problems().iter().find(|problem| problem.server == given);
            let near = nearest(given, self.upstreams().keys().map(Name::as_str));
            let hint = match (problem, near) {
                (Some(problem), _) => format!("{}; {}", problem.what.line(200), problem.hint),
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) if self.upstreams().is_empty() => NO_SERVERS_LINE.to_owned(),
                (None, None) => "`backstop tools doctor` lists the servers".to_owned(),
            };
            UnknownServer { given: given.to_owned(), hint }
        })
    }

    /// These servers; all of them where none is named.
    pub fn servers_named(&self, given: &[String]) -> Result<Vec<Name>, UnknownServer> {
        match given {
            [] => Ok(self.upstreams().keys().cloned().collect()),
            given => given.iter().map(|name| self.server_named(name)).collect(),
        }
    }

    /// Asks these servers for their tools.
    pub async fn refresh_servers(self: &Arc<Self>, servers: Vec<Name>) -> Vec<RefreshedServer> {
        let answers = self.refresh_all(servers, None).await;
        let tools = |server: &Name| self.catalogue().tools().filter(|tool| tool.server == *server).count();
        let refreshed = answers.into_iter().map(|(server, changed)| RefreshedServer {
            tools: tools(&server),
            server: server.to_string(),
            changed,
        });
        refreshed.collect()
    }

    /// Starts these servers and checks them: whether they answer, and what is odd about their
    /// tools.
    pub async fn check(self: &Arc<Self>, servers: Vec<Name>) -> Vec<CheckedServer> {
        let answers = self.refresh_all(servers, None).await;
        let mut checked = Vec::new();
        for (name, answer) in &answers {
            checked.push(self.check_one(name, answer.as_ref().err().map(|fault| &**fault)).await);
        }
        checked
    }

    /// Servers that cannot be used as they are set up, as checked ones.
    pub fn check_setup(&self) -> Vec<CheckedServer> {
        let checked = |problem: &crate::SetupProblem| CheckedServer {
            server: problem.server.clone(),
            ok: false,
            tools: 0,
            notes: vec![problem.what.line(300)],
            next: Some(problem.hint.clone()),
        };
        self.problems().iter().map(checked).collect()
    }

    async fn check_one(&self, name: &Name, fault: Option<&Fault>) -> CheckedServer {
        let catalogue = self.catalogue();
        let tools: Vec<_> = catalogue.tools().filter(|tool| tool.server == *name).collect();
        let mut notes = Vec::new();
        if let Some(fault) = fault {
            let cause = fault.cause.as_ref().map(|cause| cause.line(500)).unwrap_or_default();
            notes.push(format!("{}: {cause}", fault.reason));
        }
        if let Some(listing) = catalogue.listings().get(name) {
            if listing.left_out > 0 {
                notes.push(format!("{} more tools are left out: there are too many", listing.left_out));
            }
            let now = self.project.process.now();
            notes.extend(listing.changes.iter().map(|change| {
                let (tool, what) = (SafeText::new(change.tool.as_str()).line(60), change.what.join(" and "));
                format!("{what} of {tool} changed, noticed {}", near_time(change.at, now))
            }));
        }
        for tool in &tools {
            let odd = tool.odd_members();
            if !odd.is_empty() {
                let odd = SafeText::new(odd.join(", ")).line(200);
                notes.push(format!("in the description of {}, these are not as MCP says: {odd}", tool.name));
            }
            if let Some(problem) = tool.schema_problem() {
                let problem = SafeText::new(problem).line(200);
                notes.push(format!("the arguments of {} are not checked: {problem}", tool.name));
            }
        }
        if let Some(upstream) = self.upstreams().get(name) {
            let state = upstream.state().await;
            if state.unreadable > 0 {
                notes.push(format!("it wrote {} lines that are no message", state.unreadable));
            }
            if state.stray_answers > 0 {
                notes.push(format!("it gave {} answers to nothing", state.stray_answers));
            }
            notes.push(format!("set up by {}", SafeText::new(upstream.origin.as_str()).line(200)));
        }
        let next = fault.map(|fault| fault.suggested_action.line(300));
        CheckedServer { server: name.to_string(), ok: fault.is_none(), tools: tools.len(), notes, next }
    }

    /// Whether the lists of tools on disk could be used, in a word.
    pub fn cache_words(&self) -> String {
        match self.cache_state() {
            CacheState::Read => "read".to_owned(),
            CacheState::Missing => "missing".to_owned(),
            CacheState::Invalid(why) => format!("invalid: {}", SafeText::new(why.as_str()).line(200)),
        }
    }
}
