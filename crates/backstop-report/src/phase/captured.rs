//! What was found out about a failed attempt of a phase, as labels and values.

use crate::duration;
use crate::guidance::GuidanceContext;
use crate::notice::{Field, Words};
use backstop_core::{Fault, Reason, SafeText};

/// What was captured, in the seed's order: how many, where, what, which message.
pub(crate) fn captured(fault: &Fault, context: &GuidanceContext, message: &SafeText) -> Vec<Field> {
    let facts = &fault.facts;
    let tests = matches!(fault.reason, Reason::TestFailure | Reason::FlakyTest);
    let mut fields = Vec::new();
    let mut push = |field: Option<Field>| fields.extend(field);
    let count = facts
        .failed_count
        .or((tests && !facts.failed_tests.is_empty()).then_some(facts.failed_tests.len() as u64));
    push(count.map(|n| match tests {
        true => Field::new("failed_count", "Tests failed", n.to_string()),
        false => Field::new("failed_count", "Errors", n.to_string()),
    }));
    push(some(&facts.files).map(|files| match tests {
        true => Field::names("files", "Test files", files),
        false => Field::names("files", "Files", files),
    }));
    push(facts.line.map(|line| Field::new("line", "Line", line.to_string())));
    push(some(&facts.failed_tests).map(|tests| Field::names("tests", "Test names", tests)));
    push(some(&facts.rules).map(|rules| Field::names("rules", "Rules", rules)));
    push(Some(Field::message("message", "Message", message)));
    let mut text = |key, label, text: &Option<SafeText>| {
        if let Some(text) = text {
            fields.push(Field::message(key, label, text));
        }
    };
    text("expected", "Expected", &facts.expected);
    text("actual", "Actual", &facts.actual);
    text("missing", "Missing", &facts.missing);
    text("provider", "Provider", &facts.provider);
    text("credential", "Credential", &facts.credential);
    text("renewal", "Renewed at", &facts.renewal);
    text("claimed", "Claimed", &context.claimed);
    text("found", "Found", &context.found);
    text("last_activity", "Last activity", &facts.last_activity);
    let mut push = |field: Option<Field>| fields.extend(field);
    push(some(&context.remaining).map(|tasks| Field::names("remaining", "Still open", tasks)));
    push(context.ran_for.map(|ran| Field::new("ran_for", "Ran for", duration(ran))));
    push(
        facts
            .signal
            .as_ref()
            .map(|signal| Field::new("signal", "Signal", Words::outside(&signal.as_str().into()))),
    );
    push(context.check.as_ref().map(|check| Field::new("check", "Check", Words::code(check))));
    push(context.fix.as_ref().map(|fix| Field::new("fix", "Fix", Words::code(fix))));
    fields
}

fn some(list: &[SafeText]) -> Option<&[SafeText]> {
    (!list.is_empty()).then_some(list)
}
