//! `backstop proxy` when it is told to end: what waits, what is under way, what never ends.

use crate::harness::{Project, until};
use crate::proxy::{APIS, KEY, failed};
use crate::proxy_provider::{Answered, Provider, ProxyProcess, Reply, STREAM_HEAD};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A piece of a body.
fn chunk(events: &str) -> Vec<u8> {
    format!("{:x}\r\n{events}\r\n", events.len()).into_bytes()
}

/// Sends a request and does not wait for its answer.
fn ask(proxy: &ProxyProcess, path: &str, body: &str) -> TcpStream {
    let mut stream = proxy.connect();
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{KEY}content-length: {length}\r\n\r\n{body}").unwrap();
    stream
}

#[test]
fn a_request_that_waits_is_answered_when_the_proxy_ends() {
    let project = Project::new("proxy-ends-waiting");
    let provider = Provider::says(vec![failed(429, "retry-after: 300\r\nrequest-id: req_1\r\n")]);
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let mut stream = ask(&proxy, "/v1/messages", &APIS[0].request(false));
    until("it waits", || provider.seen().len() == 1);
    assert_eq!(proxy.end(), 0);
    let answer = Answered::read(&mut stream);
    assert_eq!((answer.status, answer.header("request-id")), (429, Some("req_1")), "{answer:?}");
    assert_eq!(answer.json()["type"], "error");
    assert_eq!(
        (answer.header("x-backstop-reason"), answer.header("x-should-retry")),
        (Some("rate_limited"), None)
    );
}

#[test]
fn a_request_under_way_ends_well_when_the_proxy_is_told_to_stop() {
    let project = Project::new("proxy-drain");
    let pieces = || {
        let api = &APIS[0];
        let mut all = vec![STREAM_HEAD.as_bytes().to_vec()];
        all.extend([api.preamble, api.content, api.content, api.end].map(chunk));
        all.push(b"0\r\n\r\n".to_vec());
        all
    };
    let provider = Provider::new(move |_, _| Reply::Drip(pieces(), Duration::from_millis(150)));
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let mut stream = ask(&proxy, "/v1/messages", &APIS[0].request(true));
    // The first content has come.
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    proxy.terminate();
    let rest = Answered::read(&mut first.as_slice().chain(&mut stream));
    assert!(rest.complete && rest.body.ends_with(APIS[0].end), "{rest:?}");
    assert_eq!(proxy.ended(), 0);
}

#[test]
fn what_does_not_end_is_ended_with_the_apis_own_error() {
    let project = Project::new("proxy-drained");
    // Nothing more comes after the first content: longer than the proxy gives what is under way,
    // a real wait, once for all.
    let provider = Provider::new(|_, seen| {
        if String::from_utf8_lossy(&seen.body).contains("plain") {
            return Reply::Silence;
        }
        let api = APIS.iter().find(|api| seen.head.contains(api.stream_path));
        let begun = api.map_or("passed on".to_owned(), |api| format!("{}{}", api.preamble, api.content));
        Reply::Drip(
            vec![[STREAM_HEAD.as_bytes(), &chunk(&begun)].concat(), Vec::new()],
            Duration::from_secs(90),
        )
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let mut streams: Vec<TcpStream> =
        APIS.iter().map(|api| ask(&proxy, api.stream_path, &api.request(true))).collect();
    // Those before them have been answered: nothing waits for what is not known of their account.
    let mut begun: Vec<[u8; 1]> = vec![[0]; APIS.len()];
    for (stream, first) in streams.iter_mut().zip(&mut begun) {
        stream.read_exact(first).unwrap();
    }
    let mut passed = ask(&proxy, "/v1/files", "x");
    let mut plain = ask(&proxy, "/v1/messages", &APIS[0].request(false).replace("hi", "plain"));
    until("all of them are under way", || provider.seen().len() == APIS.len() + 2);
    proxy.terminate();
    for ((api, mut stream), first) in APIS.iter().zip(streams).zip(begun) {
        let answer = Answered::read(&mut first.as_slice().chain(&mut stream));
        let content = format!("{}{}", api.preamble, api.content);
        let error = answer.body.strip_prefix(&content).unwrap_or_else(|| panic!("{}: {answer:?}", api.name));
        assert!(answer.complete && error.starts_with(api.error_event), "{}: {answer:?}", api.name);
        assert!(error.contains("the proxy was told to end"), "{error}");
    }
    let answer = Answered::read(&mut plain);
    assert_eq!((answer.status, answer.json()["type"].as_str()), (503, Some("error")), "{answer:?}");
    assert_eq!(answer.header("x-should-retry"), None, "another proxy may be there in a moment");
    let answer = Answered::read(&mut passed);
    assert!(answer.body.starts_with("passed on") && !answer.complete, "{answer:?}");
    assert_eq!(proxy.ended(), 0);
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), APIS.len() + 1, "{runs:?}");
    assert!(runs.iter().all(|run| run["outcome"] == "interrupted"), "{runs:?}");
}

#[test]
fn the_second_signal_ends_the_proxy_at_once() {
    let project = Project::new("proxy-second-signal");
    let provider = Provider::new(|_, _| {
        let begun = format!("{}{}", APIS[0].preamble, APIS[0].content);
        Reply::Drip(
            vec![[STREAM_HEAD.as_bytes(), &chunk(&begun)].concat(), Vec::new()],
            Duration::from_secs(90),
        )
    });
    let proxy = ProxyProcess::start(&project, &provider, &[]);
    let mut stream = ask(&proxy, "/v1/messages", &APIS[0].request(true));
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    proxy.terminate();
    until("nothing is taken any more", || TcpStream::connect(("127.0.0.1", proxy.port)).is_err());
    assert_eq!(proxy.end(), 128 + libc::SIGTERM);
    // What was cut does not look complete.
    let answer = Answered::read(&mut first.as_slice().chain(&mut stream));
    assert!(!answer.complete && answer.body.ends_with(APIS[0].content), "{answer:?}");
}
