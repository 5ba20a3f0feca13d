//! One of each notice about a tool.

use super::{Sample, Texts};
use crate::*;
use backstop_core::{Reason, SafeText};
use std::time::Duration;

/// Every notice about a tool.
pub(crate) fn tools(t: &Texts) -> Vec<Sample> {
    let (tool, params) = (t.tool.clone(), vec![t.param.clone()]);
    let key = vec![t.param.0.clone(), t.param.1.clone()];
    let sample = |name, notice, cause: &SafeText| Sample {
        name,
        notice,
        cause: cause.clone(),
        operation: t.tool.clone(),
        key: key.clone(),
    };
    let error = ToolError {
        reason: Reason::Unknown,
        message: t.message.clone(),
        tool: tool.clone(),
        category: None,
        params: params.clone(),
        next: None,
    };
    let failure = ExecutionFailure {
        reason: Reason::ToolFailed,
        message: t.message.clone(),
        tool: tool.clone(),
        category: None,
        params: params.clone(),
        attempts: 3,
        earlier: 0,
        may_have_taken_effect: false,
        confirm: None,
        next: None,
    };
    let mut all = vec![
        sample("generic_error", generic_error(&error), &t.message),
        sample("execution_failure", execution_failure(&failure), &t.message),
    ];
    let lost = ExecutionFailure { may_have_taken_effect: true, ..failure.clone() };
    all.push(sample("execution_failure_unconfirmed", execution_failure(&lost), &t.message));
    let confirm = ExecutionFailure { confirm: Some(t.command.clone()), ..lost };
    all.push(sample("execution_failure_confirm", execution_failure(&confirm), &t.message));
    let missing = ToolNotFound {
        tool: tool.clone(),
        params: params.clone(),
        nearest: ["a__copy", "b__copy", "c__move", "d", "e", "f"].map(SafeText::from).to_vec(),
        prefixes: vec!["MetaMCP_github".into(), "MetaMCP_chrome-devtools".into()],
        message: None,
        next: None,
    };
    all.push(sample("tool_not_found", tool_not_found(&missing), &"Tool not found".into()));
    let nothing = ToolNotFound { nearest: vec![], prefixes: vec![], ..missing };
    all.push(sample("tool_not_found_none_near", tool_not_found(&nothing), &"Tool not found".into()));
    let param = |name: &SafeText, kind: &str| Param { name: name.clone(), kind: kind.into() };
    let invalid = InvalidParameters {
        tool: tool.clone(),
        params: params.clone(),
        missing: vec![t.id.clone()],
        mistyped: vec![param(&t.param.0, "a number")],
        unknown: vec![t.test.clone()],
        expected: vec![param(&t.id, "string"), param(&t.param.0, "string")],
        message: Some(t.message.clone()),
    };
    all.push(sample("invalid_parameters", invalid_parameters(&invalid), &t.message));
    let timeout = ToolTimeout {
        tool: tool.clone(),
        params: params.clone(),
        after: Duration::from_millis(30_000),
        partial: Some(t.message.clone()),
        ..ToolTimeout::default()
    };
    all.push(sample("timeout", tool_timeout(&timeout), &"after 30000ms".into()));
    let not_sent =
        ToolTimeout { partial: None, not_sent: true, next: Some("check that it starts".into()), ..timeout };
    all.push(sample("timeout_not_sent", tool_timeout(&not_sent), &"after 30000ms".into()));
    let lost = ToolTimeout { not_sent: false, may_have_taken_effect: true, next: None, ..not_sent };
    all.push(sample("timeout_unconfirmed", tool_timeout(&lost), &"after 30000ms".into()));
    let lost = ToolTimeout { confirm: Some(t.command.clone()), ..lost };
    all.push(sample("timeout_confirm", tool_timeout(&lost), &"after 30000ms".into()));
    let part = PartialSuccess {
        tool: tool.clone(),
        params: params.clone(),
        succeeded: ["id1", "id2", "id3"].map(SafeText::from).to_vec(),
        failed: ["id4", "id5"].map(|id| FailedItem { id: id.into(), message: t.message.clone() }).to_vec(),
        warnings: vec![t.test.clone()],
        unconfirmed: 0,
        retry: Some(t.command.clone()),
    };
    all.push(sample("partial_success", partial_success(&part), &t.message));
    let some = PartialSuccess { unconfirmed: 1, ..part.clone() };
    all.push(sample("partial_success_some_unconfirmed", partial_success(&some), &t.message));
    let all_lost = PartialSuccess { unconfirmed: 2, retry: None, ..part };
    all.push(sample("partial_success_unconfirmed", partial_success(&all_lost), &t.message));
    let cache = CacheMissing {
        path: t.param.1.clone(),
        operation: tool,
        problem: Some(t.problem.clone()),
        live: true,
    };
    let mut cache = sample("cache_missing", cache_missing(&cache), &t.problem);
    cache.key = vec![t.param.1.clone()];
    all.push(cache);
    all
}

/// The variants, each with a message that begins as the seed's.
pub(crate) fn variants(t: &Texts) -> Vec<Sample> {
    let of = |name, category: &str, text: &str| {
        let message = SafeText::new(format!("{text}: {}", t.message.raw()));
        let given = ToolError {
            reason: Reason::ToolFailed,
            message: message.clone(),
            tool: t.tool.clone(),
            category: Some(category.into()),
            params: vec![t.param.clone()],
            next: None,
        };
        let key = vec![t.param.0.clone(), t.param.1.clone()];
        Sample { name, notice: generic_error(&given), cause: message, operation: t.tool.clone(), key }
    };
    vec![
        of("browser", "browser", "element not found"),
        of("github", "github", "404 repository not found"),
        of("graphql", "graphql", "field not found"),
        of("docs", "docs", "library not resolved"),
    ]
}

/// The variants with the seed's own tools and messages.
pub(crate) fn seed_variants() -> Vec<(&'static str, Notice)> {
    let of = |tool: &str, message: &str, params: &[(&str, &str)]| {
        generic_error(&ToolError {
            reason: Reason::ToolFailed,
            message: message.into(),
            tool: tool.into(),
            category: None,
            params: params.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            next: None,
        })
    };
    let pull = [("owner", "acme"), ("repo", "shop"), ("pull_number", "12")];
    vec![
        ("variant_browser", of("MetaMCP_chrome-devtools__click", "element not found", &[("uid", "1_42")])),
        (
            "variant_github",
            of("MetaMCP_github-zengaming__get_pull_request", "404 repository not found", &pull),
        ),
        (
            "variant_graphql",
            of("MetaMCP_graphql-tools__get_field_details", "field not found", &[("field_name", "users")]),
        ),
        (
            "variant_docs",
            of("MetaMCP_context7__resolve-library-id", "library not resolved", &[("libraryName", "query")]),
        ),
    ]
}
