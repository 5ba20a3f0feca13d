use super::super::patience::{GARBAGE_LINES_MAX, PERMISSIONS_MAX, REJECTED_MAX, UNKNOWN_REQUESTS_MAX};
use super::*;

const CAPABLE: &str = r#"{"id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"additionalDirectories":{}}}}}"#;
const ANY: &str = r#"{"id":0,"result":{"protocolVersion":1}}"#;

fn begin(session: Option<&str>) -> Conversation {
    let (conversation, first) = Conversation::new(Topic {
        prompt: "Do it.".to_owned(),
        folders: vec![PathBuf::from("/w"), PathBuf::from("/s/out")],
        session: session.map(str::to_owned),
        modes: &["acceptEdits"],
        ..Topic::default()
    });
    let [Act::Send(first)] = &first[..] else { panic!("{first:?}") };
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(
        (&first["method"], &first["params"]["clientCapabilities"]),
        (&json!("initialize"), &json!({}))
    );
    conversation
}

/// The methods and parameters that a line makes it send.
fn sent(conversation: &mut Conversation, line: &str) -> Vec<(String, Value)> {
    let acts = conversation.line(line.as_bytes());
    messages(acts)
}

fn messages(acts: Vec<Act>) -> Vec<(String, Value)> {
    let send = |act| match act {
        Act::Send(text) => {
            let message: Value = serde_json::from_str(&text).unwrap();
            let method = message["method"].as_str().unwrap_or("answer").to_owned();
            Some((
                method,
                message.get("params").or(message.get("result")).or(message.get("error")).cloned().unwrap(),
            ))
        }
        _ => None,
    };
    acts.into_iter().filter_map(send).collect()
}

fn said(text: &str) -> String {
    json!({"method": "session/update", "params": {"sessionId": "s-1", "update":
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
    .to_string()
}

/// A conversation whose prompt is under way. Its id is 3 where a mode was set, else 2.
fn at_work() -> Conversation {
    let mut conversation = begin(None);
    sent(&mut conversation, ANY);
    let asked = sent(&mut conversation, r#"{"id":1,"result":{"sessionId":"s-1"}}"#);
    assert_eq!(asked[0].0, "session/prompt");
    conversation
}

#[test]
fn a_new_session_gets_its_mode_and_then_the_prompt() {
    let mut conversation = begin(None);
    let new = sent(&mut conversation, CAPABLE);
    assert_eq!(
        new,
        [(
            "session/new".to_owned(),
            json!({"cwd": "/w", "mcpServers": [], "additionalDirectories": ["/s/out"]})
        )]
    );
    let modes = r#"{"id":1,"result":{"sessionId":"s-1","modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"acceptEdits"},{"id":"bypassPermissions"}]}}}"#;
    let acts = conversation.line(modes.as_bytes());
    assert_eq!(acts[0], Act::Session("s-1".to_owned()));
    assert_eq!(
        messages(acts),
        [("session/set_mode".to_owned(), json!({"sessionId": "s-1", "modeId": "acceptEdits"}))]
    );
    let prompt = sent(&mut conversation, r#"{"id":2,"result":{}}"#);
    assert_eq!(
        (prompt[0].0.as_str(), &prompt[0].1["prompt"][0]["text"]),
        ("session/prompt", &json!("Do it."))
    );
    let thought =
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk"}}}"#;
    assert_eq!(conversation.line(thought.as_bytes()), [Act::Answers]);
    sent(&mut conversation, &said("Done."));
    sent(
        &mut conversation,
        r#"{"id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":7,"cachedReadTokens":1,"outputTokens":3}}}"#,
    );
    assert_eq!(conversation.step, Step::Over);
    // The end of a turn is no success by itself.
    assert_eq!(conversation.output.report, Report::Unsaid);
    assert_eq!(conversation.output.last_words.as_deref(), Some("Done."));
    assert_eq!(conversation.output.usage.unwrap().input_tokens, 8);
}

#[test]
fn a_loaded_session_gets_its_mode_again_and_what_it_replays_is_not_counted() {
    let mut conversation = begin(Some("old"));
    let load = sent(&mut conversation, CAPABLE);
    assert_eq!((load[0].0.as_str(), &load[0].1["sessionId"]), ("session/load", &json!("old")));
    sent(&mut conversation, &said("replayed"));
    let modes = r#"{"id":1,"result":{"modes":{"currentModeId":"read-only","availableModes":[{"id":"acceptEdits"}]}}}"#;
    assert_eq!(sent(&mut conversation, modes)[0].0, "session/set_mode");
    assert!(sent(&mut conversation, r#"{"id":2,"result":{}}"#).is_empty(), "the replay is let pass");
    sent(&mut conversation, &said("replayed late"));
    assert_eq!(messages(conversation.replayed())[0].0, "session/prompt");
    sent(&mut conversation, &said("new"));
    sent(&mut conversation, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(conversation.output.words, "new\n");
    // Without a replay where there is a choice.
    let mut conversation = begin(Some("old"));
    let resume = r#"{"id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}}"#;
    assert_eq!(sent(&mut conversation, resume)[0].0, "session/resume");
    assert_eq!(sent(&mut conversation, r#"{"id":1,"result":{}}"#)[0].0, "session/set_mode");
    assert_eq!(sent(&mut conversation, r#"{"id":2,"result":{}}"#)[0].0, "session/prompt");
    // One that it does not know is refused, which is no failure of the work.
    let mut conversation = begin(Some("old"));
    sent(&mut conversation, CAPABLE);
    sent(&mut conversation, r#"{"id":1,"error":{"code":-32603,"message":"No previous sessions found"}}"#);
    assert!(conversation.session_refused && conversation.step == Step::Over);
}

#[test]
fn a_mode_that_is_a_config_option_is_set_as_one_and_a_mode_that_is_not_there_is_named() {
    let options = r#"{"id":1,"result":{"sessionId":"s-1","configOptions":[{"id":"mode","category":"mode","currentValue":"plan","options":[{"value":"build"},{"value":"plan"}]},{"id":"model","options":[{"value":"m"}]}]}}"#;
    let mut conversation = begin(None);
    conversation.topic.model = Some("m".to_owned());
    sent(&mut conversation, ANY);
    let set = sent(&mut conversation, options);
    assert_eq!(
        set[0],
        (
            "session/set_config_option".to_owned(),
            json!({"sessionId": "s-1", "configId": "mode", "value": "build"})
        )
    );
    assert_eq!(sent(&mut conversation, r#"{"id":2,"result":{}}"#)[0].1["configId"], "model");
    let mut conversation = begin(None);
    conversation.topic.mode = Some("yolo".to_owned());
    sent(&mut conversation, ANY);
    sent(&mut conversation, options);
    let trouble = conversation.trouble.unwrap();
    assert_eq!(trouble.reason, Reason::InvalidUsage);
    assert!(trouble.suggested_action.raw().contains("`build`"), "{}", trouble.suggested_action);
    // One that nobody asked for and that it does not take is no condition.
    let mut conversation = begin(None);
    sent(&mut conversation, ANY);
    sent(&mut conversation, options);
    let refused = r#"{"id":2,"error":{"code":-32603,"message":"Cannot enable privileged approval modes in an untrusted folder."}}"#;
    assert_eq!(sent(&mut conversation, refused)[0].0, "session/prompt");
}

#[test]
fn a_continued_session_that_names_no_modes_gets_its_mode_all_the_same() {
    let loaded = |mode: Option<&str>, modes: &'static [&'static str]| {
        let mut conversation = begin(Some("old"));
        conversation.topic.mode = mode.map(str::to_owned);
        conversation.topic.modes = modes;
        sent(&mut conversation, CAPABLE);
        conversation
    };
    let null = r#"{"id":1,"result":null}"#;
    for (mode, modes, want) in [
        (None, &["autoEdit"][..], "autoEdit"),
        (Some("mine"), &["autoEdit"][..], "mine"),
        (Some("mine"), &[], "mine"),
    ] {
        let mut conversation = loaded(mode, modes);
        let set = sent(&mut conversation, null);
        assert_eq!(set, [("session/set_mode".to_owned(), json!({"sessionId": "old", "modeId": want}))]);
        assert!(sent(&mut conversation, r#"{"id":2,"result":{}}"#).is_empty());
        assert_eq!(messages(conversation.replayed())[0].0, "session/prompt");
    }
    // Of an agent that nobody knows, those are tried that agents have.
    let mut conversation = loaded(None, &[]);
    assert_eq!(sent(&mut conversation, null)[0].1["modeId"], "acceptEdits");
    let refused = r#"{"id":2,"error":{"code":-32602,"message":"no such mode"}}"#;
    assert_eq!(sent(&mut conversation, refused)[0].1["modeId"], "autoEdit");
    assert!(sent(&mut conversation, r#"{"id":3,"result":null}"#).is_empty(), "one is enough");
    assert_eq!(messages(conversation.replayed())[0].0, "session/prompt");
    let mut conversation = loaded(None, &[]);
    sent(&mut conversation, null);
    let unknown = r#"{"id":2,"error":{"code":-32601,"message":"Method not found"}}"#;
    assert!(sent(&mut conversation, unknown).is_empty() && conversation.step == Step::Replay);
    // One that somebody asked for is a condition: the agent's refusal is an error.
    let mut conversation = loaded(Some("mine"), &[]);
    sent(&mut conversation, null);
    sent(&mut conversation, refused);
    assert_eq!(conversation.trouble.unwrap().reason, Reason::InvalidUsage);
}

#[test]
fn permissions_are_answered_and_recorded_and_asked_for_without_end_they_end_it() {
    let ask = |path: &str| {
        json!({"id": 7, "method": "session/request_permission", "params": {"toolCall": {"title": "write", "locations": [{"path": path}]},
            "options": [{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]}})
        .to_string()
    };
    let mut conversation = at_work();
    assert_eq!(sent(&mut conversation, &ask("/w/a"))[0].1["outcome"]["optionId"], "y");
    assert_eq!(sent(&mut conversation, &ask("/etc/a"))[0].1["outcome"]["optionId"], "n");
    assert!(conversation.output.denials[0].raw().contains("/etc/a is outside"));
    for _ in 0..REJECTED_MAX {
        sent(&mut conversation, &ask("/etc/a"));
    }
    assert_eq!(conversation.trouble.as_ref().unwrap().reason, Reason::PermissionDenied);
    // What it may do it may not ask for without end either.
    let mut conversation = at_work();
    for _ in 0..PERMISSIONS_MAX {
        assert_eq!(sent(&mut conversation, &ask("/w/a"))[0].1["outcome"]["optionId"], "y");
    }
    assert!(conversation.trouble.is_none());
    sent(&mut conversation, &ask("/w/a"));
    assert!(conversation.trouble.unwrap().cause.unwrap().raw().contains("times for permission"));
    // Once it was cancelled nothing is allowed any more.
    let mut conversation = at_work();
    assert_eq!(messages(conversation.cancel())[0].0, "session/cancel");
    assert!(conversation.cancel().is_empty(), "once");
    assert_eq!(sent(&mut conversation, &ask("/w/a"))[0].1["outcome"]["outcome"], "cancelled");
    sent(&mut conversation, r#"{"id":2,"result":{"stopReason":"cancelled"}}"#);
    assert_eq!((conversation.step, &conversation.output.report), (Step::Over, &Report::Unsaid));
}

#[test]
fn what_is_no_protocol_is_bounded_and_named() {
    let mut conversation = begin(None);
    sent(&mut conversation, r#"{"id":0,"result":{"protocolVersion":7}}"#);
    assert!(conversation.trouble.unwrap().cause.unwrap().raw().contains("version 7"));
    let mut conversation = begin(None);
    for _ in 0..=GARBAGE_LINES_MAX {
        sent(&mut conversation, "Welcome to my agent!");
    }
    assert!(conversation.trouble.unwrap().cause.unwrap().raw().contains("Welcome to my agent!"));
    let mut conversation = at_work();
    let unknown = r#"{"id":"q","method":"craft/drain","params":{}}"#;
    assert_eq!(sent(&mut conversation, unknown)[0].1["code"], -32601);
    for _ in 0..UNKNOWN_REQUESTS_MAX {
        sent(&mut conversation, unknown);
    }
    assert!(conversation.trouble.unwrap().cause.unwrap().raw().contains("craft/drain"));
    // Answers that nobody asked for, updates of no kind and notifications are passed over.
    let mut conversation = at_work();
    for odd in [
        r#"{"id":99,"result":{}}"#,
        r#"{"method":"x/y"}"#,
        r#"{"method":"session/update"}"#,
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":7}}}"#,
    ] {
        assert!(sent(&mut conversation, odd).is_empty() && conversation.step == Step::Prompt, "{odd}");
    }
}

#[test]
fn failures_are_read_and_a_process_that_ends_too_early_says_when() {
    let mut conversation = at_work();
    sent(
        &mut conversation,
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"usage_update","_meta":{"_claude/rateLimit":{"status":"rejected","resetsAt":1790000000}}}}}"#,
    );
    sent(
        &mut conversation,
        r#"{"id":2,"error":{"code":-32603,"message":"You've hit your limit","data":{"errorKind":"rate_limit"}}}"#,
    );
    let Report::Failed(failure) = &conversation.output.report else { panic!() };
    assert_eq!((failure.status, failure.resets_at), (Some(429), Some(1_790_000_000)));
    // Copilot ends its turn well and says it in words.
    let mut conversation = at_work();
    sent(&mut conversation, &said("Info: Request failed due to a transient API error. Retrying..."));
    sent(&mut conversation, &said("Error: 429 The usage limit has been reached"));
    sent(&mut conversation, r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    let Report::Failed(failure) = &conversation.output.report else { panic!() };
    assert_eq!((failure.status, failure.reason), (Some(429), Some(Reason::RateLimited)));
    let mut conversation = at_work();
    conversation.ended(false);
    assert_eq!(conversation.output.report, Report::Unsaid, "we ended it");
    conversation.ended(true);
    let Report::Failed(failure) = &conversation.output.report else { panic!() };
    assert!(failure.text.contains("before it answered the prompt") && failure.reason == Some(Reason::Crash));
}
