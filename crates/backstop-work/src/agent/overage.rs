//! Paid usage beside a subscription. An agent whose subscription is used up may go on with usage
//! that costs extra, and says so in an event; unless somebody allowed that, the limit is what it is
//! without it: waited for.

use backstop_classify::model_of_window;
use backstop_core::{Fault, LimitWindow, Reason, SafeText, Timestamp};
use serde_json::Value;

/// What an event stands for that says that usage is paid for from now on: the limit that the
/// subscription has reached, with its end. The wait is counted when the attempt is judged.
pub(super) fn begun(line: &[u8]) -> Option<Fault> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.contains("\"isUsingOverage\""))?;
    let event: Value = serde_json::from_str(text.trim()).ok()?;
    let info = event.get("rate_limit_info").filter(|_| event["type"] == "rate_limit_event")?;
    if info.get("isUsingOverage") != Some(&Value::Bool(true)) {
        return None;
    }
    let mut fault = Fault::new(Reason::RateLimited);
    fault.cause = Some("the subscription is used up, and further usage would be paid for extra".into());
    fault.suggested_action =
        "wait for the reset, or allow paid usage: `plan.allow_overage = true`, `--allow-overage`".into();
    fault.facts.provider = Some("anthropic".into());
    fault.facts.from_client = true;
    let kind = info.get("rateLimitType").and_then(Value::as_str).unwrap_or_default();
    fault.facts.window = LimitWindow::in_text(kind);
    fault.facts.model = model_of_window(kind).map(SafeText::new);
    let seconds = info.get("resetsAt").and_then(Value::as_i64);
    fault.facts.resets_at = seconds.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1000)));
    Some(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usage_that_is_paid_for_extra_is_a_limit() {
        let event = |using: &str, status: &str| {
            format!(
                r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":1778565600,"rateLimitType":"five_hour","overageStatus":"allowed","isUsingOverage":{using}}}}}"#
            )
        };
        let fault = begun(event("true", "allowed").as_bytes()).unwrap();
        assert_eq!((fault.reason, fault.facts.window), (Reason::RateLimited, Some(LimitWindow::FiveHour)));
        assert_eq!(fault.facts.resets_at, Some(Timestamp::from_millis(1_778_565_600_000)));
        for line in [
            event("false", "allowed"),
            event("false", "rejected"),
            r#"{"type":"assistant","text":"\"isUsingOverage\":true"}"#.to_owned(),
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#.to_owned(),
            "not JSON isUsingOverage".to_owned(),
        ] {
            assert_eq!(begun(line.as_bytes()), None, "{line}");
        }
    }
}
