//! Masks secrets on the way in: nothing is stored before it went through here.

use backstop_core::{EventKind, MASK, Redactor, SafeText};
use serde_json::Value;

/// Fields that hold words of ours. A secret that equals one of them ("failed") reveals nothing
/// there, and masking it would make the event unreadable.
const OUR_WORDS: &[&str] =
    &["kind", "outcome", "reason", "reclassified", "action", "class", "severity", "retry", "parent", "state"];

/// Fields that hold a checked name.
const NAMES: &[&str] = &["provider", "budget"];

/// The mask where only a name is allowed.
const NAME_MASK: &str = "redacted";

/// An event as it is stored, with its JSON.
pub(crate) struct Masked {
    pub(crate) kind: EventKind,
    pub(crate) body: String,
}

/// Masks every secret in an event.
pub(crate) fn mask_event(redactor: &Redactor, kind: EventKind) -> serde_json::Result<Masked> {
    let mut value = serde_json::to_value(&kind)?;
    let names = matches!(
        kind,
        EventKind::GuardUpdated { .. }
            | EventKind::GuardWaited { .. }
            | EventKind::BudgetConsumed { .. }
            | EventKind::BudgetRefunded { .. }
            | EventKind::BudgetExhausted { .. }
            | EventKind::BreakerOpened { .. }
            | EventKind::BreakerClosed { .. }
    );
    let mut changed = false;
    if let (true, Some(fields)) = (names, value.as_object_mut()) {
        for (_, field) in fields.iter_mut().filter(|(key, _)| NAMES.contains(&key.as_str())) {
            let secret = field.as_str().is_some_and(|text| redactor.redact(text) != text);
            if secret {
                *field = Value::from(NAME_MASK);
                changed = true;
            }
        }
    }
    mask_value(redactor, &mut value, &mut changed);
    let body = value.to_string();
    let kind = if changed { serde_json::from_value(value)? } else { kind };
    Ok(Masked { kind, body })
}

/// Events as they would be stored, for output that is not stored. An event that cannot be
/// serialised is left out.
pub fn masked(redactor: &Redactor, kinds: Vec<EventKind>) -> Vec<EventKind> {
    kinds.into_iter().filter_map(|kind| mask_event(redactor, kind).ok()).map(|masked| masked.kind).collect()
}

pub(crate) fn mask_value(redactor: &Redactor, value: &mut Value, changed: &mut bool) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(masked) = redactor.redact(text) {
                *changed |= *text != masked;
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_value(redactor, item, changed)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if field.is_string() && OUR_WORDS.contains(&key.as_str()) {
                    continue;
                }
                if let Value::String(text) = field
                    && redactor.is_secret_value(key, text)
                {
                    MASK.clone_into(text);
                    *changed = true;
                }
                mask_value(redactor, field, changed);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks every secret in a text.
pub(crate) fn mask_text(redactor: &Redactor, text: &SafeText) -> SafeText {
    SafeText::new(redactor.redact(text.raw()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::{Fault, Outcome, Reason};

    #[test]
    fn a_secret_that_is_one_of_our_words_leaves_the_event_readable() {
        let redactor = Redactor::new(["failed", "timeout", "error.classified", "openai"]);
        let ended = EventKind::RunEnded {
            outcome: Outcome::Failed,
            reason: Some(Reason::Timeout),
            attempts: 1,
            duration_ms: 2,
            exit: None,
            next: Some("why it failed".into()),
        };
        let EventKind::RunEnded { outcome, reason, next, .. } = mask_event(&redactor, ended).unwrap().kind
        else {
            panic!("another kind")
        };
        assert_eq!((outcome, reason), (Outcome::Failed, Some(Reason::Timeout)));
        assert_eq!(next.unwrap().raw(), "why it [redacted]");
        let fault = EventKind::ErrorClassified {
            operation: "openai".into(),
            attempt: 1,
            fault: Box::new(Fault::new(Reason::Timeout)),
        };
        assert!(mask_event(&redactor, fault).unwrap().body.contains("\"kind\":\"error.classified\""));
        let guard = EventKind::GuardWaited { provider: "openai".parse().unwrap(), waited_ms: 1 };
        let masked = mask_event(&redactor, guard).unwrap();
        assert!(!masked.body.contains("openai") && masked.body.contains("redacted"), "{}", masked.body);
    }
}
