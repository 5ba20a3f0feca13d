//! The time that readers of messages take grows with the text and with nothing else, and what they
//! hold is bounded, whatever a server sends.

#[path = "../../backstop-core/tests/support/linear.rs"]
mod linear;

use crate::arguments::Schema;
use crate::jsonrpc::{Line, Lines, MESSAGE_BYTES_MAX, Members, Message, value, with_member};
use crate::transport::Events;
use linear::assert_linear;
use serde_json::{Value, json};

/// The largest text, in bytes.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// How much arrives at once.
const CHUNK_BYTES: usize = 4096;

const PIECES: &[&str] = &[
    "[",
    "{\"a\":",
    "\"\\ud800",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
    "\\",
    "\n",
    "data: x\n",
    "data: {\"a\":1}\n\n",
    "data:",
    "\r\n\r\n",
    ": comment\n",
    "\u{1f600}",
    "a",
];

#[test]
fn twice_the_text_takes_about_twice_as_long() {
    let rpc = |text: &str| drop(Message::parse(text.as_bytes()));
    let wrapped = |text: &str| {
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": { "a": text, "_meta": {} } });
        if let Ok(Message::Request { params: Some(params), .. }) =
            Message::parse(message.to_string().as_bytes())
        {
            drop(serde_json::from_str::<Members<'_>>(params.get()));
            drop(with_member(&params, "b", &Value::Null));
            drop(crate::connection::meta_of(&params));
        }
    };
    let lines = |text: &str| {
        let mut lines = Lines::default();
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            lines.push(chunk, |line| {
                if let Line::Whole(line) = line {
                    drop(Message::parse(line));
                }
            });
        }
    };
    let events = |text: &str| {
        let mut events = Events::default();
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            events.push(chunk, &mut |data| drop(Message::parse(data)));
        }
    };
    let arguments = |text: &str| {
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "string", "maxLength": 10 } } });
        if let Ok(checked) = Schema::read(&schema) {
            drop(checked.check(&schema, &json!({ "a": text, "b": text })));
        }
    };
    type Reader<'r> = (&'r str, &'r dyn Fn(&str));
    let readers: [Reader<'_>; 5] = [
        ("a message", &rpc),
        ("parameters", &wrapped),
        ("lines", &lines),
        ("events", &events),
        ("arguments", &arguments),
    ];
    for (name, read) in readers {
        for piece in PIECES {
            assert_linear(name, piece, TEXT_BYTES_MAX, read);
        }
    }
    // Many members, and much that is nested.
    let members = |text: &str| {
        let count = text.len() / 16;
        let all: Vec<String> = (0..count).map(|n| format!("\"k{n}\":[[{n}]]")).collect();
        let object = format!("{{{}}}", all.join(","));
        if let Ok(members) = serde_json::from_str::<Members<'_>>(&object) {
            members.0.values().for_each(|member| drop(value(member)));
        }
    };
    assert_linear("members", "x", TEXT_BYTES_MAX, &members);
}

#[test]
fn what_never_ends_is_not_kept() {
    const CHUNK: &[u8] = &[b'x'; 1 << 20];
    let chunks = 3 * MESSAGE_BYTES_MAX / CHUNK.len();
    let (mut lines, mut events, mut taken) = (Lines::default(), Events::default(), 0);
    events.push(b"data: ", &mut |_| taken += 1);
    for _ in 0..chunks {
        lines.push(CHUNK, |_| taken += 1);
        events.push(CHUNK, &mut |_| taken += 1);
        assert!(lines.held() <= 2 * MESSAGE_BYTES_MAX, "{} bytes", lines.held());
        assert!(events.held() <= 3 * MESSAGE_BYTES_MAX, "{} bytes", events.held());
    }
    assert_eq!(taken, 0);
    // What follows is read again, and the memory is given back.
    let mut whole = Vec::new();
    lines.push(b"\n{}\n", |line| whole.push(matches!(line, Line::Whole(b"{}"))));
    assert_eq!(whole, [false, true]);
    let mut seen = Vec::new();
    events.push(b"\n\ndata: {}\n\n", &mut |data| seen.push(data.to_vec()));
    assert_eq!(seen, [b"{}"]);
    assert!(lines.held() + events.held() <= 1 << 20, "{} and {} bytes", lines.held(), events.held());
}
