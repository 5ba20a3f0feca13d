//! Traces, and sending them to a collector that is there, is not, lies or sleeps.

use super::*;
use backstop_config::{Given, Surroundings, load};
use backstop_core::{
    Decision, EVENT_SCHEMA, EventId, EventKind, Evidence, Fault, Outcome, Reason, RunId, Timestamp,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

fn events() -> Vec<Event> {
    let run: RunId = "r-7f3a".parse().unwrap();
    let mut fault = Fault::new(Reason::NetworkTransient);
    fault.cause = Some("npm error code ECONNRESET".into());
    fault.evidence.push(Evidence {
        rule: "npm.econnreset".into(),
        line: Some(1),
        text: "npm error code ECONNRESET".into(),
        stream: None,
    });
    let finished = |attempt, success, exit| EventKind::AttemptFinished {
        operation: "npm ci".into(),
        attempt,
        success,
        duration_ms: 900,
        exit: Some(exit),
        signal: None,
        output: None,
        delivery: None,
    };
    let kinds = [
        EventKind::RunStarted {
            operation: "npm ci".into(),
            folder: Some("/srv".into()),
            profile: Some("command".into()),
            parent: None,
        },
        EventKind::AttemptStarted { operation: "npm ci".into(), attempt: 1 },
        finished(1, false, 1),
        EventKind::ErrorClassified { operation: "npm ci".into(), attempt: 1, fault: Box::new(fault) },
        EventKind::DecisionMade {
            operation: None,
            attempt: 1,
            decision: Decision {
                action: backstop_core::Action::Retry {
                    after: Duration::from_millis(1100),
                    attempt: 2,
                    of: 4,
                },
                why: "attempt 1 of 4".into(),
            },
            reclassified: None,
        },
        EventKind::AttemptStarted { operation: "npm ci".into(), attempt: 2 },
        finished(2, true, 0),
        EventKind::RunEnded {
            outcome: Outcome::Done,
            reason: None,
            attempts: 2,
            duration_ms: 4000,
            exit: Some(0),
            next: None,
        },
    ];
    (1..)
        .zip(kinds)
        .map(|(seq, kind)| Event {
            schema: EVENT_SCHEMA,
            id: EventId { run, seq },
            run,
            seq,
            at: Timestamp::from_millis(1_760_000_000_000 + i64::try_from(seq).unwrap() * 1000),
            session: None,
            surface: "exec".into(),
            caller: None,
            kind,
        })
        .collect()
}

#[test]
fn a_run_is_a_trace_with_a_span_for_each_attempt() {
    let request = trace::request(&events(), "shop").unwrap();
    let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 3);
    let (root, first, second) = (&spans[0], &spans[1], &spans[2]);
    let hex = |value: &serde_json::Value, digits: usize| {
        let text = value.as_str().unwrap();
        assert!(text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit()), "{text}");
        text.to_owned()
    };
    for span in spans {
        assert_eq!(span["traceId"], root["traceId"]);
        hex(&span["traceId"], 32);
        hex(&span["spanId"], 16);
        let nanos = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"));
    }
    assert_eq!(first["parentSpanId"], root["spanId"]);
    assert_ne!(first["spanId"], second["spanId"]);
    assert!(root.get("parentSpanId").is_none());
    assert_eq!((root["name"].as_str(), first["name"].as_str()), (Some("exec npm ci"), Some("attempt 1")));
    assert_eq!(first["startTimeUnixNano"], "1760000002000000000");
    assert_eq!(first["endTimeUnixNano"], "1760000002900000000");
    assert_eq!(first["status"], serde_json::json!({ "code": 2, "message": "network_transient" }));
    assert_eq!((root["status"]["code"].as_u64(), second["status"]["code"].as_u64()), (Some(1), Some(1)));
    let of = |span: &serde_json::Value, key: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).unwrap()["value"].clone()
    };
    for (key, want) in [
        ("backstop.reason", "network_transient"),
        ("backstop.class", "transient"),
        ("backstop.rule", "npm.econnreset"),
        ("backstop.decision", "retry"),
        ("backstop.why", "attempt 1 of 4"),
    ] {
        assert_eq!(of(first, key)["stringValue"], want, "{key}");
    }
    assert_eq!(of(root, "backstop.attempts")["intValue"], "2");
    assert_eq!(of(&request["resourceSpans"][0]["resource"], "service.name")["stringValue"], "shop");
    let names: Vec<&str> =
        first["events"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["error.classified", "decision.made"]);
    // The same run is the same trace; another beginning is another one.
    assert_eq!(trace::request(&events(), "shop").unwrap(), request);
    let mut later = events();
    later[0].at = Timestamp::from_millis(5);
    let other = trace::request(&later, "shop").unwrap();
    assert_ne!(other["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"], root["traceId"]);
    assert!(trace::request(&[], "shop").is_none());
}

/// A config that sends to this port.
fn config(port: u16) -> Config {
    let around = Surroundings {
        cwd: "/".into(),
        home: None,
        xdg_config_home: None,
        env: &|_| None,
        users: Vec::new(),
        state_root: None,
    };
    let given = |key: &str, value: String| Given { flag: "--x".to_owned(), key: key.to_owned(), value };
    let endpoint = format!("http://127.0.0.1:{port}/otlp/");
    let flags = [given("otel.endpoint", endpoint), given("otel.service", "shop".to_owned())];
    load(&around, &flags, &|_: &Path, _: &str| false).unwrap()
}

/// A server that reads one request whole, answers, and tells what it read.
fn answering(answer: &'static [u8]) -> (u16, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut read = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&read).into_owned();
            let length =
                text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if let (Some(length), Some((_, body))) = (length, text.split_once("\r\n\r\n"))
                && body.len() >= length
            {
                stream.write_all(answer).unwrap();
                // Kept open: whoever waits for the end of the answer waits in vain.
                std::thread::sleep(Duration::from_millis(20));
                return text;
            }
            let n = stream.read(&mut piece).unwrap();
            read.extend_from_slice(&piece[..n]);
        }
    });
    (port, server)
}

#[test]
fn a_trace_reaches_its_collector() {
    let (port, server) = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    export(&config(port), &Client::new(), &events()).unwrap();
    let request = server.join().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /otlp/v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert!(head.contains(&format!("host: 127.0.0.1:{port}\r\n")), "{head}");
    let sent: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(sent, trace::request(&events(), "shop").unwrap());
}

#[test]
fn a_collector_that_refuses_or_lies_is_named() {
    let (port, server) = answering(b"HTTP/1.1 503 Busy\r\n\r\n");
    let error = export(&config(port), &Client::new(), &events()).unwrap_err();
    assert!(matches!(error, OtelError::Refused { status: 503, .. }), "{error}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    server.join().unwrap();
    let (port, server) = answering(b"SSH-2.0-OpenSSH\r\n");
    let error = export(&config(port), &Client::new(), &events()).unwrap_err();
    assert!(matches!(error, OtelError::NoCollector { .. }), "{error}");
    server.join().unwrap();
    static FLOOD: [u8; 1 << 16] = [b'x'; 1 << 16];
    let (port, server) = answering(&FLOOD);
    assert!(matches!(export(&config(port), &Client::new(), &events()), Err(OtelError::NoCollector { .. })));
    let _ = server.join();
}

#[test]
fn a_collector_that_is_not_there_or_sleeps_is_given_up() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = export(&config(gone), &Client::new(), &events()).unwrap_err();
    assert!(matches!(error, OtelError::Send { .. }), "{error}");
    assert!(!error.hint().is_empty());
    // It takes the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = export(&config(silent.local_addr().unwrap().port()), &Client::new(), &events()).unwrap_err();
    assert!(matches!(error, OtelError::Slow { .. }), "{error}");
}

#[test]
fn it_is_off_unless_it_is_switched_on() {
    let around = Surroundings {
        cwd: "/".into(),
        home: None,
        xdg_config_home: None,
        env: &|_| None,
        users: Vec::new(),
        state_root: None,
    };
    let off = load(&around, &[], &|_: &Path, _: &str| false).unwrap();
    assert!(off.otel().is_none() && export(&off, &Client::new(), &events()).is_ok());
    let env = |name: &str| (name == "BACKSTOP_OTEL_ENDPOINT").then(|| "https://collector/otlp".to_owned());
    let around = Surroundings { env: &env, ..around };
    let on = load(&around, &[], &|_: &Path, _: &str| false).unwrap();
    assert_eq!(on.otel().unwrap().0.whole(), "https://collector/otlp");
}
