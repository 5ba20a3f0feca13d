//! Many calls at once: each with its own attempts, a bounded number at a time, and a report of what
//! succeeded and what did not.

use crate::call::{CallFailure, CallOutcome, CallRequest, CallSuccess, Caller};
use crate::toolbox::Toolbox;
use backstop_core::{Outcome, SafeText};
use backstop_engine::Cancel;
use backstop_report::{FailedItem, Notice, PartialSuccess, partial_success};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many items a batch may have.
pub const ITEMS_MAX: usize = 100_000;

/// One call of a batch.
#[derive(Debug, Clone)]
pub struct BatchItem {
    /// What it is known by: its own id, else its number from 1.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments, as JSON text.
    pub arguments: String,
}

/// A batch that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct BatchError {
    /// The line or the item, as `line 3` or `item 3`.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenItem<'i> {
    #[serde(default)]
    id: Option<Value>,
    tool: String,
    #[serde(default, borrow)]
    arguments: Option<&'i RawValue>,
}

impl BatchItem {
    /// Reads a batch: a JSON list, or one JSON object a line. All of it is read before anything is
    /// called.
    pub fn read(text: &str) -> Result<Vec<Self>, BatchError> {
        let error = |place: String, what: String| BatchError { place, what };
        let mut items = Vec::new();
        if text.trim_start().starts_with('[') {
            let list: Vec<&RawValue> = serde_json::from_str(text)
                .map_err(|e| error(format!("line {}", e.line()), format!("not a JSON list: {e}")))?;
            for (index, item) in list.into_iter().enumerate() {
                let place = format!("item {}", index + 1);
                items.push(Self::one(item.get(), items.len() + 1).map_err(|what| error(place, what))?);
            }
        } else {
            for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let place = format!("line {}", index + 1);
                items.push(Self::one(line, items.len() + 1).map_err(|what| error(place, what))?);
            }
        }
        if items.len() > ITEMS_MAX {
            let what = format!("a batch has at most {ITEMS_MAX} items, this one has {}", items.len());
            return Err(error(format!("item {}", ITEMS_MAX + 1), what));
        }
        let mut ids = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            if !ids.insert(item.id.as_str()) {
                return Err(error(
                    format!("item {}", index + 1),
                    format!("the id `{}` is there twice", item.id),
                ));
            }
        }
        Ok(items)
    }

    fn one(text: &str, number: usize) -> Result<Self, String> {
        if !text.trim_start().starts_with('{') {
            return Err("an item is an object: {\"tool\": …, \"arguments\": {…}}".to_owned());
        }
        let written: WrittenItem<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let id = match written.id {
            None => number.to_string(),
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            Some(other) => return Err(format!("`id` is a text or a number: found {other}")),
        };
        let arguments = written.arguments.map_or("{}", RawValue::get);
        if !arguments.trim_start().starts_with('{') {
            return Err("`arguments` is an object".to_owned());
        }
        Ok(Self { id, tool: written.tool, arguments: arguments.to_owned() })
    }

    /// The item as a line that [`BatchItem::read`] reads.
    pub fn line(&self) -> String {
        format!(
            "{{\"id\":{},\"tool\":{},\"arguments\":{}}}",
            Value::from(self.id.as_str()),
            Value::from(self.tool.as_str()),
            self.arguments.replace(['\n', '\r'], " ")
        )
    }
}

/// What became of one item.
#[derive(Debug)]
pub struct ItemResult {
    /// The item.
    pub item: BatchItem,
    /// What became of it; nothing where it was not begun any more.
    pub outcome: Option<CallOutcome>,
}

impl ItemResult {
    fn success(&self) -> Option<&CallSuccess> {
        match &self.outcome {
            Some(CallOutcome::Done(success)) => Some(success),
            _ => None,
        }
    }

    fn failure(&self) -> Option<&CallFailure> {
        match &self.outcome {
            Some(CallOutcome::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// Whether it may have taken effect: nothing repeats it without somebody's word.
    fn is_unconfirmed(&self) -> bool {
        self.failure().is_some_and(|failure| failure.outcome == Outcome::Unconfirmed)
    }
}

/// What became of a batch.
#[derive(Debug)]
pub struct BatchReport {
    /// Every item, in the order of the batch.
    pub items: Vec<ItemResult>,
}

impl BatchReport {
    /// The items that did not succeed, those that were not begun included.
    pub fn failed(&self) -> impl Iterator<Item = &ItemResult> {
        self.items.iter().filter(|item| item.success().is_none())
    }

    /// Whether every item succeeded.
    pub fn is_done(&self) -> bool {
        self.failed().next().is_none()
    }

    /// The failed items that may be called again without anybody's word: a file that
    /// [`BatchItem::read`] reads. What needs a confirmation is not among them.
    pub fn repeatable_subset(&self) -> String {
        let again = self.failed().filter(|item| !item.is_unconfirmed());
        again.map(|item| format!("{}\n", item.item.line())).collect()
    }

    /// The notice for people. `retry` is the command that repeats the failed items.
    pub fn notice(&self, name: &str, retry: Option<&str>) -> Notice {
        let confirm = |failure: &CallFailure| Some(format!("`{}` repeats it", failure.confirm.as_ref()?));
        self.notice_by(name, retry, confirm)
    }

    /// The notice for whoever confirms a failed item in another way, which `confirm` says.
    pub(crate) fn notice_by(
        &self,
        name: &str,
        retry: Option<&str>,
        confirm: impl Fn(&CallFailure) -> Option<String>,
    ) -> Notice {
        let id = |item: &ItemResult| SafeText::new(item.item.id.as_str());
        let failed = self.failed().map(|item| {
            let message = match item.failure() {
                Some(failure) => {
                    let text = failure.errors.last().cloned().unwrap_or_default();
                    let confirm = confirm(failure).map(|words| format!(" ({words})"));
                    SafeText::new(format!("{}{}", text.raw(), confirm.unwrap_or_default()))
                }
                None => SafeText::new("it was not begun"),
            };
            FailedItem { id: id(item), message }
        });
        let warnings =
            self.items.iter().filter_map(ItemResult::success).flat_map(|success| &success.warnings);
        partial_success(&PartialSuccess {
            tool: SafeText::new(name),
            params: Vec::new(),
            succeeded: self.items.iter().filter(|item| item.success().is_some()).map(id).collect(),
            failed: failed.collect(),
            unconfirmed: self.failed().filter(|item| item.is_unconfirmed()).count(),
            warnings: warnings.cloned().collect(),
            retry: retry.map(SafeText::new),
        })
    }

    /// The report for programs.
    pub fn report(&self) -> Value {
        self.report_by(CallFailure::report)
    }

    /// The report for whoever wants to know something else of a failure, which `failure` says.
    pub(crate) fn report_by(&self, of_failure: impl Fn(&CallFailure) -> Value) -> Value {
        let item = |item: &ItemResult| match &item.outcome {
            Some(CallOutcome::Done(success)) => json!({
                "id": item.item.id, "tool": item.item.tool, "ok": true, "attempts": success.attempts,
                "result": serde_json::from_str::<Value>(success.result()).unwrap_or(Value::Null),
                "warnings": success.warnings, "failure": null,
            }),
            Some(CallOutcome::Failed(failure)) => json!({
                "id": item.item.id, "tool": item.item.tool, "ok": false, "attempts": failure.attempts,
                "result": null, "warnings": [], "failure": of_failure(failure),
            }),
            None => json!({
                "id": item.item.id, "tool": item.item.tool, "ok": false, "attempts": 0,
                "result": null, "warnings": [], "failure": null,
            }),
        };
        let succeeded = self.items.iter().filter(|item| item.success().is_some()).count();
        json!({
            "schema": backstop_report::JSON_SCHEMA,
            "succeeded": succeeded,
            "failed": self.items.len() - succeeded,
            "items": self.items.iter().map(item).collect::<Vec<_>>(),
        })
    }
}

/// Makes all calls, at most `at_once` at a time. When `cancel` fires, running calls are stopped and
/// no other is begun.
pub async fn run_batch(
    toolbox: &Arc<Toolbox>,
    items: Vec<BatchItem>,
    at_once: usize,
    cancel: &Cancel,
) -> BatchReport {
    run_batch_by(toolbox, items, at_once, cancel).await
}

/// The same for whoever makes the calls.
pub(crate) async fn run_batch_by<C: Caller>(
    caller: &C,
    items: Vec<BatchItem>,
    at_once: usize,
    cancel: &Cancel,
) -> BatchReport {
    let slots = Arc::new(Semaphore::new(at_once.max(1)));
    let mut tasks = JoinSet::new();
    let mut results: Vec<ItemResult> = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        // The slot is taken before the task exists, so that a long batch is not a long queue of
        // tasks.
        let slot = tokio::select! {
            slot = Arc::clone(&slots).acquire_owned() => slot.ok(),
            () = cancel.cancelled() => None,
        };
        results.push(ItemResult { item: item.clone(), outcome: None });
        if let (Some(slot), false) = (slot, cancel.is_cancelled()) {
            let (caller, cancel) = (caller.clone(), cancel.clone());
            tasks.spawn(async move {
                // The arguments were read as JSON already.
                let request = CallRequest::tool(&item.tool, &item.arguments).ok()?.cancelled_by(cancel);
                let outcome = caller.make_call(request).await;
                drop(slot);
                Some((index, outcome))
            });
        }
        while let Some(done) = tasks.try_join_next() {
            put(&mut results, done);
        }
    }
    while let Some(done) = tasks.join_next().await {
        put(&mut results, done);
    }
    BatchReport { items: results }
}

fn put(results: &mut [ItemResult], done: Result<Option<(usize, CallOutcome)>, tokio::task::JoinError>) {
    if let Ok(Some((index, outcome))) = done
        && let Some(result) = results.get_mut(index)
    {
        result.outcome = Some(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_lines_or_a_list() {
        let lines =
            BatchItem::read("{\"tool\":\"a\"}\n\n{\"id\":\"x\",\"tool\":\"b\",\"arguments\":{\"n\":1.50}}\n")
                .unwrap();
        assert_eq!(lines.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["1", "x"]);
        assert_eq!(lines[1].arguments, "{\"n\":1.50}");
        let list = BatchItem::read("[{\"id\":7,\"tool\":\"a\"}]").unwrap();
        assert_eq!((list[0].id.as_str(), list[0].arguments.as_str()), ("7", "{}"));
        assert_eq!(BatchItem::read(&lines[1].line()).unwrap()[0].arguments, "{\"n\":1.50}");
        assert!(BatchItem::read("").unwrap().is_empty());
    }

    #[test]
    fn a_mistake_has_its_place_and_nothing_is_half_read() {
        for (text, place) in [
            ("{\"tool\":\"a\"}\n{\"toll\":\"b\"}", "line 2"),
            ("{\"tool\":\"a\"}\nx", "line 2"),
            ("[{\"tool\":\"a\"}, 5]", "item 2"),
            ("[{\"tool\":\"a\"}", "line 1"),
            ("{\"tool\":\"a\",\"arguments\":[1]}", "line 1"),
            ("{\"id\":\"x\",\"tool\":\"a\"}\n{\"id\":\"x\",\"tool\":\"a\"}", "item 2"),
            ("{\"id\":[],\"tool\":\"a\"}", "line 1"),
        ] {
            assert_eq!(BatchItem::read(text).unwrap_err().place, place, "{text}");
        }
        let many = "{\"tool\":\"a\"}\n".repeat(ITEMS_MAX + 1);
        assert!(BatchItem::read(&many).unwrap_err().what.contains("at most"));
    }
}
