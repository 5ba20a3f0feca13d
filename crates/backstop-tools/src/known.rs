//! Making the tools of servers known before they are used, and what to say about those that cannot
//! be.

use crate::catalogue::CacheState;
use crate::toolbox::Toolbox;
use backstop_core::{Fault, Name, SafeText};
use backstop_report::{CacheMissing, Notice, cache_missing};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long servers whose lists are old have to give new ones.
const STALE_WAIT: Duration = Duration::from_secs(3);

/// How long servers that were never asked have for their lists, where others are known.
const UNLISTED_WAIT: Duration = Duration::from_secs(3);

/// Something to warn of, and what to do about it.
pub(crate) type Warning = (String, Option<String>);

impl Toolbox {
    /// What to say before servers are asked, where their lists are old, missing or damaged.
    /// `operation` is what needs them, `stale` are the servers of old lists that it needs.
    pub fn cache_notice(&self, operation: &str, stale: &[Name]) -> Option<Notice> {
        let problem = match self.cache_state() {
            CacheState::Read if !stale.is_empty() => {
                let names: Vec<&str> = stale.iter().map(Name::as_str).collect();
                Some(SafeText::new(format!("the lists of these servers are old: {}", names.join(", "))))
            }
            CacheState::Read => return None,
            CacheState::Missing if self.unlisted().is_empty() => return None,
            CacheState::Missing => None,
            CacheState::Invalid(why) => Some(SafeText::new(why.as_str())),
        };
        Some(cache_missing(&CacheMissing {
            path: SafeText::new(self.cache_file()?.display().to_string()),
            operation: SafeText::new(operation),
            problem,
            live: !self.upstreams().is_empty(),
        }))
    }

    /// Asks the servers whose tools are not known, and those whose lists are old: of these, the old
    /// lists are good enough where a server takes its time. Gives what could not be used.
    pub async fn ask_unknown(self: &Arc<Self>) -> Vec<Warning> {
        let wait = (!self.catalogue().is_empty()).then_some(UNLISTED_WAIT);
        self.ask_for_lists(self.unlisted(), self.stale(), wait).await
    }

    /// The servers of these tools whose lists are old, and the servers to ask before the tools are
    /// called: none where each tool's server is known, which the call itself asks within its time.
    pub fn servers_to_ask<'n>(&self, tools: impl IntoIterator<Item = &'n str>) -> (Vec<Name>, Vec<Name>) {
        let (mut servers, mut is_unknown) = (BTreeSet::new(), false);
        for tool in tools {
            match self.server_of_tool(tool) {
                Some(server) => drop(servers.insert(server.clone())),
                None => is_unknown = true,
            }
        }
        let stale = self.stale().into_iter().filter(|name| servers.contains(name)).collect();
        (stale, if is_unknown { self.unlisted() } else { Vec::new() })
    }

    /// Asks these servers for their lists before tools are called, within a limit of the call.
    pub async fn ask_before_calls(
        self: &Arc<Self>,
        unlisted: Vec<Name>,
        stale: Vec<Name>,
        limit: Option<Duration>,
    ) -> Vec<Warning> {
        let wait = limit.map_or(UNLISTED_WAIT, |limit| limit.min(UNLISTED_WAIT));
        self.ask_for_lists(unlisted, stale, Some(wait)).await
    }

    async fn ask_for_lists(
        self: &Arc<Self>,
        unlisted: Vec<Name>,
        stale: Vec<Name>,
        wait: Option<Duration>,
    ) -> Vec<Warning> {
        let renewed = self.refresh_all(stale.clone(), Some(STALE_WAIT));
        let (asked, renewed) = tokio::join!(self.refresh_all(unlisted.clone(), wait), renewed);
        let is_silent = |server: &&Name| !asked.contains_key(*server);
        let silent = |server: &Name| {
            let what = format!("the tools of {server} are missing: it has not answered yet");
            (what, Some(format!("`backstop tools refresh {server}` waits for it")))
        };
        let is_old = |server: &&Name| !matches!(renewed.get(*server), Some(Ok(_)));
        let old = |server: &Name| (format!("{server} does not answer: its old list of tools is used"), None);
        let mut warnings: Vec<Warning> = unlisted.iter().filter(is_silent).map(silent).collect();
        warnings.extend(stale.iter().filter(is_old).map(old));
        for (server, answer) in asked {
            if let Err(fault) = answer {
                warnings.push(fault_warning(&format!("the tools of {server} are missing"), &fault));
            }
        }
        warnings.extend(self.setup_warnings());
        warnings
    }

    /// The servers that cannot be used as they are set up: one warning for all of the same cause.
    pub fn setup_warnings(&self) -> Vec<Warning> {
        let mut by_cause: Vec<(&crate::SetupProblem, Vec<String>)> = Vec::new();
        for problem in self.problems() {
            let server = SafeText::new(problem.server.as_str()).line(80);
            let is_same = |(other, _): &&mut (&crate::SetupProblem, Vec<String>)| {
                other.what == problem.what && other.hint == problem.hint
            };
            match by_cause.iter_mut().find(is_same) {
                Some((_, servers)) => servers.push(server),
                None => by_cause.push((problem, vec![server])),
            }
        }
        let warning = |(problem, servers): (&crate::SetupProblem, Vec<String>)| {
            let they = if servers.len() == 1 { "it is" } else { "they are" };
            let what = problem.what.line(300);
            let what = what.strip_prefix("it is").map_or(what.clone(), |rest| format!("{they}{rest}"));
            let what = format!("the tools of {} are missing: {what}", servers.join(", "));
            (what, Some(problem.hint.clone()))
        };
        by_cause.into_iter().map(warning).collect()
    }
}

/// What happened, because of this fault.
pub fn fault_warning(what: &str, fault: &Fault) -> Warning {
    let cause = fault.cause.as_ref().map(|cause| cause.line(300)).unwrap_or_default();
    (format!("{what} ({}): {cause}", fault.reason), Some(fault.suggested_action.line(300)))
}
