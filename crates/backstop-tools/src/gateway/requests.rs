//! What each method of the gateway does.

use super::own_tools::report_with_confirm;
use super::session::ToClient;
use super::{Gateway, Session, lock};
use crate::call::{CallFailure, CallOutcome, CallRequest, WantedTarget};
use crate::catalogue::CacheState;
use crate::catalogue::definition::without_structured;
use crate::connection::meta_of;
use crate::jsonrpc::{
    self, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Members, Raw, RpcError, raw, with_member,
};
use crate::log_level::LogLevel;
use crate::protocol::{
    Era, LEGACY_VERSION, LEGACY_VERSIONS, META_CAPABILITIES, META_CLIENT, META_GATEWAYS, META_LOG_LEVEL,
    META_SERVER, META_VERSION, MODERN_VERSION, UNSUPPORTED_VERSION, our_name,
};
use crate::result::Head;
use backstop_core::{Reason, SafeText};
use backstop_engine::Cancel;
use backstop_report::{NO_SERVERS_LINE, fenced};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many gateways a call may come through.
const GATEWAYS_MAX: usize = 3;
/// How many characters of a server's instructions are passed on.
const INSTRUCTIONS_CHARS_MAX: usize = 2000;
/// Errors that a client acts on by itself: they pass as they are.
const PASSED_ON: &[i64] = &[-32042, -32021];

/// A request of a client.
pub(super) struct Asked<'a> {
    pub(super) session: &'a Arc<Session>,
    pub(super) id: &'a RawValue,
    pub(super) params: Option<&'a RawValue>,
    /// The `_meta` of the parameters.
    pub(super) meta: Map<String, Value>,
    pub(super) era: Era,
    pub(super) cancel: Cancel,
}

impl Asked<'_> {
    /// A member of the parameters.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let params: BTreeMap<String, &RawValue> = serde_json::from_str(self.params?.get()).ok()?;
        serde_json::from_str(params.get(key)?.get()).ok()
    }
}

impl Gateway {
    /// A client said something that wants no answer.
    pub(super) fn noticed(&self, session: &Session, method: &str, params: Option<&RawValue>) {
        if method == "notifications/cancelled"
            && let Some(params) = params
        {
            let params: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(params.get()).ok();
            if let Some(id) = params.as_ref().and_then(|params| params.get("requestId")) {
                session.cancel(id.get());
            }
        }
    }

    /// The answer to a request, in the shape of the client's era.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        session: &Arc<Session>,
        (id, method): (&RawValue, &str),
        params: Option<&RawValue>,
        cancel: Cancel,
    ) -> Result<Raw, RpcError> {
        let meta = params.map(meta_of).unwrap_or_default();
        let era = self.era_of(session, &meta)?;
        let asked = Asked { session, id, params, meta, era, cancel };
        let result = self.carry_out(&asked, method).await?;
        Ok(match era {
            Era::Legacy => result,
            Era::Modern => modern(&result, method),
        })
    }

    /// The era of a request: one of the modern era says so in each.
    fn era_of(&self, session: &Session, meta: &Map<String, Value>) -> Result<Era, RpcError> {
        let Some(version) = meta.get(META_VERSION).and_then(Value::as_str) else { return Ok(session.era()) };
        if version != MODERN_VERSION {
            let mut error =
                RpcError::new(UNSUPPORTED_VERSION, format!("version {version} of MCP is not known here"));
            let supported: Vec<&str> =
                [MODERN_VERSION].into_iter().chain(LEGACY_VERSIONS.iter().copied()).collect();
            error.data = Some(json!({ "supported": supported, "requested": version }));
            return Err(error);
        }
        if session.introduce(Era::Modern, meta.get(META_CLIENT), meta.get(META_CAPABILITIES)) {
            self.client_is_known(session);
        }
        Ok(Era::Modern)
    }

    async fn carry_out(self: &Arc<Self>, asked: &Asked<'_>, method: &str) -> Result<Raw, RpcError> {
        match method {
            "initialize" => self.initialize(asked).map(|hello| raw(&hello)),
            "server/discover" => Ok(raw(&self.discover())),
            "ping" => Ok(raw(&json!({}))),
            // Rare ones are boxed: the future of each call would have room for them.
            "tools/list" => Ok(raw(&json!({ "tools": Box::pin(self.tools(asked.era)).await }))),
            "tools/call" => self.call_tool(asked).await,
            "logging/setLevel" => self.set_log_level(asked),
            "resources/list" | "resources/templates/list" | "prompts/list" => {
                Box::pin(self.list_all(method, &asked.cancel)).await
            }
            "resources/read" => Box::pin(self.read_resource(asked)).await,
            "prompts/get" => Box::pin(self.get_prompt(asked)).await,
            "subscriptions/listen" => Box::pin(self.listen(asked)).await,
            "resources/subscribe" | "resources/unsubscribe" | "completion/complete" => {
                let words = format!("{method} is not passed on by this gateway");
                Err(RpcError::new(METHOD_NOT_FOUND, words))
            }
            _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("unknown method {method}"))),
        }
    }

    /// What the gateway can do, in either era.
    fn capabilities(&self) -> Value {
        let changing = json!({ "listChanged": true });
        json!({ "tools": changing, "resources": changing, "prompts": changing, "logging": {} })
    }

    /// What the servers say about themselves, and which cannot be used.
    fn instructions(&self) -> String {
        let mut text = String::new();
        let toolbox = self.toolbox();
        for problem in toolbox.problems() {
            text.push_str(&format!(
                "The tools of {} are not available: {}; {}.\n",
                problem.server,
                problem.what.line(200),
                problem.hint
            ));
        }
        if toolbox.upstreams().is_empty() && toolbox.problems().is_empty() {
            text.push_str(&format!("There are no tools: {NO_SERVERS_LINE}.\n"));
        }
        if let CacheState::Invalid(why) = toolbox.cache_state() {
            let why = SafeText::new(why.as_str()).line(200);
            text.push_str(&format!(
                "{}: the kept lists of tools cannot be used ({why}). Servers are asked for them now; \
                 `backstop tools refresh` lists them anew.\n",
                Reason::CacheInvalid
            ));
        }
        for (server, listing) in toolbox.catalogue().listings() {
            if let Some(said) = listing.hello.get("instructions").and_then(Value::as_str) {
                let said: String = said.chars().take(INSTRUCTIONS_CHARS_MAX).collect();
                let said = fenced(&SafeText::new(said), INSTRUCTIONS_CHARS_MAX);
                text.push_str(&format!("The server {server} says of itself:\n{said}"));
            }
        }
        text
    }

    /// A client of the old era says hello. One that is a gateway names those that its calls come
    /// through: a gateway that is asked by itself would ask for ever.
    fn initialize(&self, asked: &Asked<'_>) -> Result<Value, RpcError> {
        let params = asked.params.map(jsonrpc::value).unwrap_or_default();
        let above = asked.meta.get(META_GATEWAYS).and_then(Value::as_array);
        let above: Vec<&str> = above.into_iter().flatten().filter_map(Value::as_str).collect();
        if above.contains(&self.id.as_str()) || above.len() > GATEWAYS_MAX {
            let words = "this gateway is an upstream of itself: take its own entry out of its servers";
            return Err(RpcError::new(INVALID_REQUEST, words));
        }
        lock(&self.above).extend(above.into_iter().map(str::to_owned));
        let wanted = params["protocolVersion"].as_str().unwrap_or_default();
        let version = if LEGACY_VERSIONS.contains(&wanted) { wanted } else { LEGACY_VERSION };
        asked.session.introduce(Era::Legacy, params.get("clientInfo"), params.get("capabilities"));
        self.client_is_known(asked.session);
        Ok(json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": our_name(),
            "instructions": self.instructions(),
        }))
    }

    fn discover(&self) -> Value {
        json!({
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self.capabilities(),
            "instructions": self.instructions(),
            "_meta": { META_SERVER: our_name() },
        })
    }

    async fn call_tool(self: &Arc<Self>, asked: &Asked<'_>) -> Result<Raw, RpcError> {
        let invalid = |words: &str| RpcError::new(INVALID_PARAMS, words);
        let params = asked.params.ok_or_else(|| invalid("tools/call needs parameters"))?;
        let Members(mut members) =
            serde_json::from_str(params.get()).map_err(|_| invalid("the parameters are not an object"))?;
        let name: String = members
            .remove("name")
            .and_then(|name| serde_json::from_str(name.get()).ok())
            .ok_or_else(|| invalid("`name` is missing"))?;
        // Some clients write `null` where there are none.
        let arguments = members.remove("arguments").filter(|arguments| arguments.get() != "null");
        let arguments = arguments.map_or_else(|| raw(&json!({})), ToOwned::to_owned);
        members.remove("_meta");
        if self.settings.own_tools
            && let Some(tool) = super::own_tools::find(&name)
        {
            return Ok(Box::pin(self.call_own(tool, &arguments, asked)).await);
        }
        if let Some(state) =
            members.get("requestState").and_then(|state| serde_json::from_str::<String>(state.get()).ok())
            && let Some(resumed) =
                self.resume(&state, members.get("inputResponses").map(|raw| jsonrpc::value(raw)))
        {
            return self.until_input(resumed, asked).await;
        }
        let mut request =
            CallRequest::new(WantedTarget::Tool(name), arguments).cancelled_by(asked.cancel.clone());
        request.meta.clone_from(&asked.meta);
        let token = request.meta.remove("progressToken");
        request.more =
            members.into_iter().map(|(name, value)| (name.into_owned(), value.to_owned())).collect();
        self.make_call(request, token, asked).await
    }

    /// Makes a call for a client, and passes what servers ask meanwhile on to it.
    pub(super) async fn make_call(
        self: &Arc<Self>,
        mut request: CallRequest,
        token: Option<Value>,
        asked: &Asked<'_>,
    ) -> Result<Raw, RpcError> {
        request.caller = asked.session.caller();
        request.session = Some(asked.session.id.clone());
        let log_level = asked.meta.get(META_LOG_LEVEL).and_then(Value::as_str).and_then(LogLevel::named);
        if token.is_some() || log_level.is_some() {
            let session = Arc::clone(asked.session);
            request.progress = Some(Arc::new(ToClient { session, token, log_level }));
        }
        let running = self.start_call(request, asked);
        self.until_input(running, asked).await
    }

    /// What a client is told of a call.
    pub(super) fn call_result(&self, outcome: CallOutcome, era: Era) -> Result<Raw, RpcError> {
        match outcome {
            CallOutcome::Done(success) => {
                let toolbox = self.toolbox();
                if let Some(server) = toolbox.server_of(&success.tool) {
                    let is_first = {
                        let mut refreshed = lock(&self.refreshed);
                        !refreshed.contains(&server.name) && refreshed.insert(server.name.clone())
                    };
                    // It runs now: whether its list is still what it was is found out behind.
                    if is_first {
                        self.refresh_behind(&server.name);
                    }
                }
                if era == Era::Legacy && success.is_structured_otherwise {
                    return Ok(raw(&without_structured(&jsonrpc::value(&success.result))));
                }
                Ok(success.result)
            }
            CallOutcome::Failed(failure) => match &failure.answer {
                Some(Err(error)) if PASSED_ON.contains(&error.code) => Err(error.clone()),
                _ => Ok(raw(&failure_result(&failure, self.settings.own_tools))),
            },
        }
    }
}

/// A request that is one too many.
pub(super) fn too_many() -> RpcError {
    RpcError::new(jsonrpc::INTERNAL_ERROR, "too many requests are being worked on: wait for some answers")
}

/// The result that tells a client that a call failed: the text that explains it, what the server
/// gave besides text, and the report. Some clients show the model the text, others the report: each
/// says how the call is repeated.
pub(super) fn failure_result(failure: &CallFailure, has_own_tools: bool) -> Value {
    let mut text = failure.text();
    let report = if has_own_tools { report_with_confirm(failure) } else { failure.report() };
    if let (Some(run), Some(_), true) = (failure.run, &failure.confirm, has_own_tools) {
        let confirm = super::own_tools::OwnTool::Confirm.name();
        text.push_str(&format!("To repeat it: call the tool `{confirm}` with {{\"run\": \"{run}\"}}.\n"));
    }
    let mut content = vec![json!({ "type": "text", "text": text })];
    if let Some(Ok(answer)) = &failure.answer {
        let answer = jsonrpc::value(answer);
        let blocks = answer["content"].as_array().cloned().unwrap_or_default();
        content.extend(blocks.into_iter().filter(|block| block["type"] != "text"));
    }
    json!({ "content": content, "structuredContent": report, "isError": true })
}

/// A result as clients of the modern era want it.
fn modern(result: &RawValue, method: &str) -> Raw {
    let mut result = result.to_owned();
    if Head::of(&result).result_type.is_none() {
        result = with_member(&result, "resultType", &Value::from("complete"));
    }
    let is_list = method.ends_with("/list") || matches!(method, "server/discover" | "resources/read");
    if is_list {
        let members: Map<String, Value> = match jsonrpc::value(&result) {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        if !members.contains_key("ttlMs") {
            result = with_member(&result, "ttlMs", &Value::from(0));
        }
        if !members.contains_key("cacheScope") {
            result = with_member(&result, "cacheScope", &Value::from("private"));
        }
    }
    result
}
