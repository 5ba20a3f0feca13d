//! What agents write down of a session and do not tell their hooks. Lines of JSON; only the end of
//! them is looked at, and a line that is something else is passed over.

use backstop_core::{SafeText, Timestamp};
use serde_json::Value;

/// How much of a transcript is looked at: its end.
pub const TRANSCRIPT_BYTES_MAX: usize = 4 << 20;

/// A turn that broke off, as a transcript tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenTurn {
    /// When.
    pub at: Timestamp,
    /// What the agent calls it.
    pub error: SafeText,
    /// What it said.
    pub said: SafeText,
}

/// The exit code of a command that Codex ran, by the id of its call. Nothing where it is not
/// written down, or not yet.
pub fn call_exit(transcript: &[u8], call: &str) -> Option<i64> {
    if call.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(transcript);
    text.lines().rev().filter(|line| line.contains(call)).find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let payload = line.get("payload").filter(|_| line["type"] == "event_msg")?;
        let item = payload.get("item").filter(|_| payload["type"] == "item_completed")?;
        let is_it = item["type"] == "CommandExecution" && item["id"] == call;
        item.get("exit_code").filter(|_| is_it)?.as_i64()
    })
}

/// How the last turn of a session of Claude Code broke off. Nothing where it did not.
pub fn broken_turn(transcript: &[u8]) -> Option<BrokenTurn> {
    let text = String::from_utf8_lossy(transcript);
    let said = |line: &&str| line.contains("\"assistant\"") || line.contains("\"user\"");
    let last = text.lines().rev().filter(said).find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let is_turn = (line["type"] == "assistant" || line["type"] == "user") && line["isSidechain"] != true;
        is_turn.then_some(line)
    })?;
    if last["type"] != "assistant" || last["isApiErrorMessage"] != true {
        return None;
    }
    let parts = last["message"]["content"].as_array();
    let said: Vec<&str> = parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
    Some(BrokenTurn {
        at: Timestamp::parse_rfc3339(last["timestamp"].as_str()?)?,
        error: SafeText::new(last["error"].as_str().unwrap_or("unknown")),
        said: SafeText::new(said.join("\n")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn ended(id: &str, exit: Value) -> Value {
        json!({"timestamp": "2026-11-16T06:06:03.012Z", "type": "event_msg", "payload": {"type": "item_completed", "item": {
            "type": "CommandExecution", "id": id, "status": "failed", "aggregated_output": "boom\n", "exit_code": exit}}})
    }

    fn lines(values: &[Value]) -> Vec<u8> {
        values.iter().map(|value| format!("{value}\n")).collect::<String>().into_bytes()
    }

    #[test]
    fn an_exit_code_is_found_by_its_call_and_nowhere_else() {
        let transcript =
            lines(&[ended("call_1", json!(3)), ended("call_2", json!(0)), ended("call_3", json!(null))]);
        assert_eq!(call_exit(&transcript, "call_1"), Some(3));
        assert_eq!(call_exit(&transcript, "call_2"), Some(0));
        for call in ["call_3", "call_4", "call", ""] {
            assert_eq!(call_exit(&transcript, call), None, "{call}");
        }
        // What a command prints is not what happened to it.
        let printed = ended("call_5", json!(3)).to_string();
        let mut liar = ended("call_6", json!(0));
        liar["payload"]["item"]["aggregated_output"] = json!(printed);
        assert_eq!(call_exit(&lines(&[liar.clone()]), "call_5"), None);
        assert_eq!(call_exit(&lines(&[liar]), "call_6"), Some(0));
        // A line that is cut, and one that is being written.
        let mut cut = transcript[10..].to_vec();
        cut.extend_from_slice(b"{\"type\":\"event_msg\",\"payload\":{\"id\":\"call_2\"");
        assert_eq!((call_exit(&cut, "call_1"), call_exit(&cut, "call_2")), (None, Some(0)));
    }

    #[test]
    fn a_broken_turn_is_the_last_thing_that_was_said() {
        let broken = json!({"type": "assistant", "isSidechain": false, "timestamp": "2026-11-16T06:07:41.633Z", "error": "rate_limit",
            "isApiErrorMessage": true, "message": {"content": [{"type": "text", "text": "API Error: Request rejected (429)"}]}});
        let user = json!({"type": "user", "isSidechain": false, "message": {"content": "go on"}});
        let fine = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "isApiErrorMessage"}]}});
        let cost = json!({"type": "cost-state", "by": "assistant"});
        let mut beside = user.clone();
        beside["isSidechain"] = json!(true);
        let found = broken_turn(&lines(&[user.clone(), broken.clone(), beside, cost])).unwrap();
        assert_eq!(
            (found.error.raw(), found.said.raw()),
            ("rate_limit", "API Error: Request rejected (429)")
        );
        assert_eq!(found.at.to_string(), "2026-11-16T06:07:41.633Z");
        for over in [vec![broken.clone(), user], vec![broken, fine], vec![]] {
            assert_eq!(broken_turn(&lines(&over)), None);
        }
    }

    proptest! {
        #[test]
        fn nothing_in_a_transcript_makes_it_panic(bytes in any::<Vec<u8>>(), call in any::<String>()) {
            let _ = (call_exit(&bytes, &call), broken_turn(&bytes));
        }
    }
}
