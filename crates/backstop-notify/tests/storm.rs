//! A storm is one message with a count, and what comes after it waits its turn.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

use backstop_config::SinkSettings;
use backstop_core::{Reason, Redactor, SafeText, Timestamp, profile};
use backstop_notify::{About, Message, Resolved, Sender, Sink, queue};
use backstop_report::{Alert, alert};
use backstop_store::{NoteState, Outbox, StateFolder};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// A server that takes everything, and keeps the bodies.
fn server() -> (String, Arc<Mutex<Vec<serde_json::Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&bodies);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            let body = loop {
                let n = stream.read(&mut piece).unwrap();
                bytes.extend_from_slice(&piece[..n]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Some(body) =
                    text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok())
                {
                    break body;
                }
            };
            kept.lock().unwrap().push(body);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        }
    });
    (url, bodies)
}

fn message(operation: &str) -> Message {
    let given = Alert {
        operation: SafeText::new(operation),
        project: "/srv/shop".into(),
        ..Alert::new(Reason::NetworkPermanent, now())
    };
    Message::new(&alert(&given), About::of(&given))
}

fn send(outbox: &Outbox, sink: &Sink, limit: Duration) {
    let resolve = |_: &_| Resolved::Sink(Box::new(sink.clone()), None);
    let policy = profile("request").unwrap();
    let sender = Sender {
        outbox,
        resolve: &resolve,
        relieved: &|| false,
        policy,
        client: backstop_http::Client::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _ = runtime.block_on(async { tokio::time::timeout(limit, sender.run()).await });
}

#[test]
fn a_thousand_failures_are_one_message_with_their_count() {
    let temp = tempfile::tempdir().unwrap();
    let folder =
        StateFolder::open(&temp.path().join("s"), Arc::new(now), Arc::new(Redactor::default())).unwrap();
    let outbox = Outbox::open(&folder).unwrap();
    let (url, bodies) = server();
    let settings = SinkSettings { kind: Some("webhook".into()), url: Some(url), ..SinkSettings::default() };
    let sink = Sink::from_settings("ops", &settings).unwrap();
    let sinks = [sink.clone()];
    for n in 0..1000 {
        // Ports and ids differ, the trouble is one.
        let outcome =
            queue(&outbox, &sinks, &message(&format!("curl http://127.0.0.1:{n}/x")), "/srv/shop").unwrap();
        assert_eq!(outcome.queued.len(), 1);
    }
    send(&outbox, &sink, Duration::from_secs(20));
    assert_eq!(bodies.lock().unwrap().len(), 1);
    assert_eq!(bodies.lock().unwrap()[0]["count"], 1000);

    // The same again within ten minutes waits; another trouble does not.
    for _ in 0..3 {
        queue(&outbox, &sinks, &message("curl http://127.0.0.1:5/x"), "/srv/shop").unwrap();
    }
    queue(&outbox, &sinks, &message("npm ci"), "/srv/shop").unwrap();
    send(&outbox, &sink, Duration::from_secs(4));
    assert_eq!(bodies.lock().unwrap().len(), 2);
    assert_eq!(bodies.lock().unwrap()[1]["operation"], "npm ci");
    let waits = outbox.queued().unwrap();
    assert_eq!((waits.len(), waits[0].count, waits[0].state), (1, 3, NoteState::Queued));
}
