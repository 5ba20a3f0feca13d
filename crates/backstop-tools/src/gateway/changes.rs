//! Changes of lists, on their way from servers to clients.
//!
//! A client of the old era is told of every change. One of the modern era asks for the kinds that
//! it wants with `subscriptions/listen`: a request that stays open, whose notifications carry its
//! id. Each says only that something changed, so that one of a kind is kept for a client that does
//! not read.

use super::requests::Asked;
use super::{Gateway, lock};
use crate::jsonrpc::{self, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Raw, RpcError, raw};
use crate::protocol::{Era, MODERN_VERSION, SUBSCRIPTION_ACKNOWLEDGED, TOOLS_CHANGED, meta_of_subscription};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// How many subscriptions there may be, of all clients together.
const SUBSCRIPTIONS_MAX: usize = 1024;

/// A list that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    Tools,
    Resources,
    Prompts,
}

impl Changed {
    /// The list that a notification of a server is about.
    pub(super) fn by_method(method: &str) -> Option<Self> {
        [Self::Tools, Self::Resources, Self::Prompts].into_iter().find(|changed| changed.method() == method)
    }

    fn method(self) -> &'static str {
        match self {
            Self::Tools => TOOLS_CHANGED,
            Self::Resources => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }
}

/// The changes that a client wants to hear of. Others that it may name are not passed on.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    tools_list_changed: bool,
    resources_list_changed: bool,
    prompts_list_changed: bool,
}

impl Wanted {
    fn has(self, changed: Changed) -> bool {
        match changed {
            Changed::Tools => self.tools_list_changed,
            Changed::Resources => self.resources_list_changed,
            Changed::Prompts => self.prompts_list_changed,
        }
    }

    /// What of it is passed on, as the client is told.
    fn to_json(self) -> Value {
        let mut all = serde_json::Map::new();
        for (name, wanted) in [
            ("toolsListChanged", self.tools_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
        ] {
            if wanted {
                all.insert(name.to_owned(), Value::Bool(true));
            }
        }
        Value::Object(all)
    }
}

/// What a client of the modern era listens for.
#[derive(Debug)]
pub(super) struct Subscription {
    wanted: Wanted,
    /// What it has not been told yet.
    changes: Mutex<BTreeSet<Changed>>,
    wake: Notify,
}

impl Subscription {
    fn note(&self, changed: Changed) {
        if self.wanted.has(changed) && lock(&self.changes).insert(changed) {
            self.wake.notify_one();
        }
    }

    async fn next(&self) -> Changed {
        loop {
            if let Some(changed) = lock(&self.changes).pop_first() {
                return changed;
            }
            self.wake.notified().await;
        }
    }
}

/// A subscription among those of the gateway, until this is dropped.
struct Listed<'g> {
    gateway: &'g Gateway,
    subscription: Arc<Subscription>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        lock(&self.gateway.subscriptions).retain(|other| !Arc::ptr_eq(other, &self.subscription));
    }
}

impl Gateway {
    /// Tells every client that wants to know it that a list changed.
    pub(super) fn tell_change(&self, changed: Changed) {
        for session in self.live_sessions().into_iter().filter(|session| session.era() == Era::Legacy) {
            session.notify_change(jsonrpc::notification(changed.method(), None));
        }
        for subscription in lock(&self.subscriptions).iter() {
            subscription.note(changed);
        }
    }

    /// Tells a client of the modern era of changes until it cancels, or is gone.
    pub(super) async fn listen(&self, asked: &Asked<'_>) -> Result<Raw, RpcError> {
        if asked.era != Era::Modern {
            let words = format!("subscriptions/listen belongs to version {MODERN_VERSION} of MCP");
            return Err(RpcError::new(METHOD_NOT_FOUND, words));
        }
        #[derive(Deserialize)]
        struct Params {
            notifications: Wanted,
        }
        let params = asked.params.map_or("{}", |params| params.get());
        let Params { notifications: wanted } = serde_json::from_str(params).map_err(|error| {
            RpcError::new(INVALID_PARAMS, format!("`notifications` says what is wanted: {error}"))
        })?;
        let subscription = Arc::new(Subscription { wanted, changes: Mutex::default(), wake: Notify::new() });
        {
            let mut all = lock(&self.subscriptions);
            if all.len() >= SUBSCRIPTIONS_MAX {
                return Err(RpcError::new(INTERNAL_ERROR, "there are too many subscriptions"));
            }
            all.push(Arc::clone(&subscription));
        }
        let listed = Listed { gateway: self, subscription };
        let meta = meta_of_subscription(asked.id);
        let first = raw(&json!({ "notifications": wanted.to_json(), "_meta": meta }));
        let params = raw(&json!({ "_meta": meta }));
        let telling = async {
            asked.session.send(jsonrpc::notification(SUBSCRIPTION_ACKNOWLEDGED, Some(&first))).await;
            loop {
                let changed = listed.subscription.next().await;
                asked.session.send(jsonrpc::notification(changed.method(), Some(&params))).await;
            }
        };
        tokio::select! {
            never = telling => never,
            // Whoever cancels gets no answer.
            () = asked.cancel.cancelled() => Ok(raw(&json!({ "_meta": meta }))),
        }
    }
}
