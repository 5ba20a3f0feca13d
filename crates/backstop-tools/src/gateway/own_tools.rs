//! The tools of the gateway itself: batch, chain, search, explain, confirm.

use super::Gateway;
use super::requests::Asked;
use crate::batch::{BatchItem, run_batch_by};
use crate::call::{CallFailure, key_params};
use crate::chain::{Chain, run_chain_by};
use crate::jsonrpc::{self, Raw, raw};
use crate::protocol::Era;
use backstop_core::{Reason, RunId, SafeText};
use backstop_report::{Style, ToolError, failure_report, fenced, generic_error};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// How many calls of a batch run at once where nothing is said.
const AT_ONCE: u64 = 4;
/// How many tools a search gives where nothing is said.
const FOUND: u64 = 20;
/// How many characters of an event's line are given.
const EVENT_CHARS_MAX: usize = 1000;
/// How many characters of a description a search gives.
const DESCRIPTION_CHARS: usize = 300;

/// A tool of the gateway itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnTool {
    Batch,
    Chain,
    Search,
    Explain,
    Confirm,
}

const ALL: [OwnTool; 5] =
    [OwnTool::Batch, OwnTool::Chain, OwnTool::Search, OwnTool::Explain, OwnTool::Confirm];

impl OwnTool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Batch => "backstop_batch",
            Self::Chain => "backstop_chain",
            Self::Search => "backstop_search_tools",
            Self::Explain => "backstop_explain_failure",
            Self::Confirm => "backstop_confirm",
        }
    }

    fn definition(self) -> Value {
        let item = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string" }, "tool": { "type": "string" }, "arguments": { "type": "object" },
            },
            "required": ["tool"],
            "additionalProperties": false,
        });
        let mut step = item.clone();
        step["properties"]["confirm"] = json!({ "type": "string" });
        let (description, properties, required, read_only) = match self {
            Self::Batch => (
                "Call many tools at once, each with its own retries. Reports which succeeded and which failed.",
                json!({
                    "items": { "type": "array", "items": item },
                    "at_once": { "type": "integer", "minimum": 1, "maximum": 64 },
                }),
                vec!["items"],
                false,
            ),
            Self::Chain => (
                "Call tools one after the other. Arguments may use earlier results: {\"$from\": \"STEP\", \"pointer\": \"/a/0\"}.",
                json!({
                    "steps": { "type": "array", "items": step },
                    "done": { "type": "object" },
                    "confirm": { "type": "string", "description": "a run that may be repeated, such as r-7f3a" },
                }),
                vec!["steps"],
                false,
            ),
            Self::Search => (
                "Find tools by words in their names and descriptions.",
                json!({ "query": { "type": "string" }, "limit": { "type": "integer", "minimum": 1 } }),
                vec!["query"],
                true,
            ),
            Self::Explain => (
                "Explain why a call failed: every attempt, what was decided and why.",
                json!({ "run": { "type": "string", "description": "such as r-7f3a" } }),
                vec!["run"],
                true,
            ),
            Self::Confirm => (
                "Repeat a call that may have taken effect already. Only after checking that it did not.",
                json!({
                    "run": { "type": "string", "description": "such as r-7f3a" },
                    "arguments": { "type": "object", "description": "only if they hold a secret" },
                }),
                vec!["run"],
                false,
            ),
        };
        json!({
            "name": self.name(),
            "description": description,
            "inputSchema": {
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": read_only },
        })
    }
}

/// The own tool with this name.
pub(super) fn find(name: &str) -> Option<OwnTool> {
    ALL.into_iter().find(|tool| tool.name() == name)
}

/// The definitions of all own tools.
pub(super) fn definitions() -> Vec<Value> {
    ALL.into_iter().map(OwnTool::definition).collect()
}

fn text(text: impl Into<String>, structured: Option<Value>, is_error: bool) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text.into() }], "isError": is_error });
    if let Some(structured) = structured {
        result["structuredContent"] = structured;
    }
    result
}

/// The answer to a call of an own tool that cannot be carried out as it is.
fn mistake(tool: OwnTool, given: &Value, words: &str, hint: &str) -> Value {
    let (name, words, hint) = (SafeText::new(tool.name()), SafeText::new(words), SafeText::new(hint));
    let reason = Reason::InvalidParameters;
    let params = key_params(&raw(given));
    let notice = generic_error(&ToolError {
        reason,
        message: words.clone(),
        tool: name.clone(),
        category: None,
        params,
        next: Some(hint.clone()),
    });
    let mut report = failure_report(&name, &[words], &hint);
    report["reason"] = reason.code().into();
    report["class"] = json!(reason.class());
    report["next"] = notice.next().into();
    report["notice"] = notice.json();
    text(notice.terminal(Style::PLAIN), Some(report), true)
}

/// How a failed call is repeated through the gateway, in words.
fn confirm_words(failure: &CallFailure) -> Option<String> {
    let (run, _) = (failure.run?, failure.confirm.as_ref()?);
    Some(format!("call `{}` with {{\"run\": \"{run}\"}} to repeat it", OwnTool::Confirm.name()))
}

/// The report of a failed call, with the tool that repeats it.
pub(super) fn report_with_confirm(failure: &CallFailure) -> Value {
    let mut report = failure.report();
    if let (Some(run), Some(_)) = (failure.run, &failure.confirm) {
        report["confirm_tool"] = json!({ "name": OwnTool::Confirm.name(), "arguments": { "run": run } });
    }
    report
}

impl Gateway {
    pub(super) async fn call_own(
        self: &Arc<Self>,
        tool: OwnTool,
        arguments: &RawValue,
        asked: &Asked<'_>,
    ) -> Raw {
        let given = jsonrpc::value(arguments);
        let result = match tool {
            OwnTool::Batch => self.batch(&given, asked).await,
            OwnTool::Chain => self.chain(&given, asked).await,
            OwnTool::Search => self.search(&given).await,
            OwnTool::Explain => self.explain(&given),
            OwnTool::Confirm => return self.confirm(&given, asked).await,
        };
        raw(&result)
    }

    async fn batch(self: &Arc<Self>, given: &Value, asked: &Asked<'_>) -> Value {
        let items = match BatchItem::read(&given["items"].to_string()) {
            Ok(items) => items,
            Err(error) => {
                let hint = "give `items` as a list of {\"tool\": …, \"arguments\": {…}}";
                return mistake(OwnTool::Batch, given, &error.to_string(), hint);
            }
        };
        let at_once = given["at_once"].as_u64().unwrap_or(AT_ONCE);
        let at_once = usize::try_from(at_once).unwrap_or(1).min(64);
        let report = run_batch_by(&self.client_of(asked), items, at_once, &asked.cancel).await;
        let notice = report.notice_by(OwnTool::Batch.name(), None, confirm_words).terminal(Style::PLAIN);
        text(notice, Some(report.report_by(report_with_confirm)), !report.is_done())
    }

    async fn chain(self: &Arc<Self>, given: &Value, asked: &Asked<'_>) -> Value {
        let chain = match Chain::read(&given.to_string()) {
            Ok(chain) => chain,
            Err(error) => return mistake(OwnTool::Chain, given, &error.to_string(), &error.hint()),
        };
        let report = run_chain_by(&self.client_of(asked), chain, &asked.cancel).await;
        let words = match report.failed() {
            None => format!("all {} steps are done\n", report.steps.len()),
            Some((step, _, notice)) => format!(
                "step `{step}` failed, and the steps after it were not begun\n{notice}{}{}\n",
                match report.confirm() {
                    Some(run) => format!(
                        "It may have taken effect. To continue, once it is certain that it did not: add \
                         \"confirm\": \"{run}\" and call `backstop_chain` again with "
                    ),
                    None => "To continue: call `backstop_chain` again with ".to_owned(),
                },
                report.rest()
            ),
        };
        text(words, Some(report.report()), !report.is_done())
    }

    async fn search(self: &Arc<Self>, given: &Value) -> Value {
        // A client that searches may never have listed anything.
        self.tools(Era::Modern).await;
        let limit = usize::try_from(given["limit"].as_u64().unwrap_or(FOUND)).unwrap_or(usize::MAX);
        let catalogue = self.toolbox().catalogue();
        let found = catalogue.search(given["query"].as_str().unwrap_or_default());
        let rows: Vec<Value> = found
            .iter()
            .take(limit)
            .map(|tool| json!({ "tool": tool.name, "description": tool.description.line(DESCRIPTION_CHARS) }))
            .collect();
        let lines: String = found
            .iter()
            .take(limit)
            .map(|tool| format!("{}: {}\n", tool.name, tool.description.line(DESCRIPTION_CHARS)))
            .collect();
        let words = if lines.is_empty() {
            "no tool has these words; use fewer or others\n".to_owned()
        } else {
            format!("The servers' own words:\n{}", fenced(&SafeText::new(lines), DESCRIPTION_CHARS * 2))
        };
        text(words, Some(json!({ "found": found.len(), "tools": rows })), false)
    }

    fn explain(&self, given: &Value) -> Value {
        let run = given["run"].as_str().unwrap_or_default();
        let Ok(id) = run.parse::<RunId>() else {
            return mistake(
                OwnTool::Explain,
                given,
                &format!("`{run}` is not a run id"),
                "give the id that the failure named, such as r-7f3a",
            );
        };
        let toolbox = self.toolbox();
        let journal = toolbox.project.existing_journal().ok().flatten();
        let events = journal.and_then(|journal| journal.load(id).ok()).unwrap_or_default();
        if events.is_empty() {
            return mistake(
                OwnTool::Explain,
                given,
                &format!("there is no run {run} in this project"),
                "`backstop runs` lists the runs",
            );
        }
        let lines: String = events
            .iter()
            .map(|event| format!("{}\n", backstop_report::event_line(event, Style::PLAIN)))
            .collect();
        let facts: Vec<Value> = events.iter().map(|event| json!(event)).collect();
        // What servers said is in them.
        let words = format!("What is recorded of {id}:\n{}", fenced(&SafeText::new(lines), EVENT_CHARS_MAX));
        text(words, Some(json!({ "run": run, "events": facts })), false)
    }

    async fn confirm(self: &Arc<Self>, given: &Value, asked: &Asked<'_>) -> Raw {
        let run = given["run"].as_str().unwrap_or_default();
        let Ok(id) = run.parse::<RunId>() else {
            let words = format!("`{run}` is not a run id");
            let hint = "give the id that the failure named, such as r-7f3a";
            return raw(&mistake(OwnTool::Confirm, given, &words, hint));
        };
        let typed = given.get("arguments").filter(|value| value.is_object()).map(ToString::to_string);
        let request = match self.toolbox().take_confirmed(id, typed.as_deref()) {
            Ok(request) => request.cancelled_by(asked.cancel.clone()),
            Err(error) => {
                let hint = "`backstop deferred list` shows what waits";
                return raw(&mistake(OwnTool::Confirm, given, &error.to_string(), hint));
            }
        };
        match self.make_call(request, None, asked).await {
            Ok(result) => result,
            Err(error) => raw(&mistake(OwnTool::Confirm, given, &error.message, "look at the error")),
        }
    }
}
