//! Framing of requests and responses: lengths, chunks, streams, redirects, and servers that lie.

use crate::peers::{OK, Server, patient_client, read_request};
use backstop_core::Dispatch;
use backstop_http::{BodyClosed, Headers, HttpErrorKind, Method, Request, RequestBody, Version};
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};

/// A server that answers with these bytes, and what it was sent.
fn heard_by(answer: &'static str) -> (Server, Receiver<String>) {
    let (heard, requests) = channel();
    let server = Server::start(move |mut stream: TcpStream, _| {
        heard.send(read_request(&mut stream)).unwrap();
        let _ = stream.write_all(answer.as_bytes());
    });
    (server, requests)
}

#[tokio::test]
async fn a_request_goes_out_as_it_is_given() {
    let (server, requests) = heard_by(OK);
    let request = Request::post(&server.address("/v1/items?page=2"))
        .header("content-type", "application/json")
        .and_then(|request| request.secret_header("authorization", "Bearer canary"))
        .unwrap()
        .body(b"{\"a\":1}".to_vec());
    let mut response = patient_client().send(request).await.unwrap();
    assert!(response.is_success());
    assert_eq!(response.version(), Version::Http11);
    assert_eq!(response.headers().text("Content-Length"), Some("2"));
    assert_eq!(response.bytes(10).await.unwrap(), b"ok");
    let heard = requests.recv().unwrap();
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "{\"a\":1}");
    let mut lines: Vec<&str> = head.lines().collect();
    lines.sort_unstable();
    let agent = format!("user-agent: backstop/{}", env!("CARGO_PKG_VERSION"));
    let host = format!("host: 127.0.0.1:{}", server.port);
    let mut want = vec![
        "POST /v1/items?page=2 HTTP/1.1",
        "authorization: Bearer canary",
        "content-length: 7",
        "content-type: application/json",
        &host,
        &agent,
    ];
    want.sort_unstable();
    assert_eq!(lines, want);
}

#[tokio::test]
async fn methods_with_and_without_a_body() {
    for (method, length) in [
        (Method::GET, None),
        (Method::DELETE, None),
        (Method::POST, Some("content-length: 0")),
        (Method::PUT, Some("content-length: 0")),
        (Method::PATCH, Some("content-length: 0")),
    ] {
        let (server, requests) = heard_by("HTTP/1.1 204 No Content\r\n\r\n");
        let mut response =
            patient_client().send(Request::new(method.clone(), &server.address("/"))).await.unwrap();
        assert_eq!((response.status(), response.bytes(0).await.unwrap().len()), (204, 0));
        let heard = requests.recv().unwrap();
        assert_eq!(heard.lines().find(|line| line.starts_with("content-length")), length, "{heard}");
    }
    // The head of a response to HEAD announces a body that does not come.
    let (server, _requests) = heard_by("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n");
    let mut response = patient_client().send(Request::new(Method::HEAD, &server.address("/"))).await.unwrap();
    assert_eq!(response.bytes(0).await.unwrap(), b"");
}

#[tokio::test]
async fn headers_about_the_connection_are_the_clients() {
    // Headers that were taken over from a response, with its framing among them.
    let (server, requests) =
        heard_by("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-a: b\r\n\r\n0\r\n\r\n");
    let response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
    requests.recv().unwrap();
    let taken: Headers = response.headers().clone();
    assert!(taken.contains("transfer-encoding"));
    let request = Request::post(&server.address("/")).headers(taken).body(b"x".to_vec());
    patient_client().send(request).await.unwrap();
    let heard = requests.recv().unwrap();
    assert!(heard.contains("x-a: b\r\n") && heard.contains("content-length: 1\r\n"), "{heard}");
    assert!(!heard.contains("transfer-encoding"), "{heard}");
}

#[tokio::test]
async fn a_failure_is_evidence() {
    let server = Server::answers("HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\n\r\nwait a moment");
    let mut response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
    let body = response.body_start(6).await;
    let signal = response.signal(body);
    assert_eq!((signal.status, signal.dispatch), (Some(429), Dispatch::Answered));
    assert_eq!(signal.headers, [("retry-after".to_owned(), "7".to_owned())]);
    assert_eq!(signal.stdout, b"wait a");
}

#[tokio::test]
async fn redirects_are_responses() {
    let elsewhere = Server::answers(OK);
    for status in [301, 302, 303, 307, 308] {
        let to = elsewhere.address("/x");
        let server = Server::answers(format!(
            "HTTP/1.1 {status} Moved\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            to.whole()
        ));
        let request = Request::post(&server.address("/")).secret_header("authorization", "x").unwrap();
        let response = patient_client().send(request).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.headers().text("location"), Some(to.whole()));
    }
    assert_eq!(elsewhere.accepted(), 0);
}

#[tokio::test]
async fn chunks_arrive_as_they_are_sent() {
    let (go, gone_on) = channel::<()>();
    let gone_on = std::sync::Mutex::new(gone_on);
    let server = Server::start(move |mut stream, _| {
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        for piece in ["3\r\none\r\n", "3\r\ntwo\r\n", "0\r\nx-trailer: y\r\n\r\n"] {
            stream.write_all(piece.as_bytes()).unwrap();
            // The next one is not sent before this one was read.
            let _ = gone_on.lock().unwrap().recv();
        }
    });
    let mut response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
    for want in ["one", "two"] {
        let piece = response.chunk().await.unwrap().unwrap();
        assert_eq!(&*piece, want.as_bytes());
        go.send(()).unwrap();
    }
    assert_eq!(response.chunk().await.unwrap(), None);
    assert_eq!(response.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_stream_goes_up_while_it_is_written() {
    for (length, framing) in [(None, "transfer-encoding: chunked"), (Some(6), "content-length: 6")] {
        let (server, requests) = heard_by(OK);
        let (mut sender, body) = RequestBody::stream(length);
        let client = patient_client();
        let request = Request::post(&server.address("/")).body(body);
        let (response, ()) = tokio::join!(client.send(request), async {
            sender.send(b"abc".to_vec()).await.unwrap();
            sender.send(b"def".to_vec()).await.unwrap();
            sender.finish().await.unwrap();
        });
        assert!(response.unwrap().is_success());
        let heard = requests.recv().unwrap();
        assert!(heard.contains(framing) && heard.contains("abc") && heard.contains("def"), "{heard}");
    }
}

#[tokio::test]
async fn a_stream_that_is_given_up_is_never_complete() {
    for length in [None, Some(6)] {
        let (server, requests) = heard_by(OK);
        let (mut sender, body) = RequestBody::stream(length);
        let client = patient_client();
        let request = Request::post(&server.address("/")).body(body);
        let (response, ()) = tokio::join!(client.send(request), async {
            sender.send(b"abc".to_vec()).await.unwrap();
            drop(sender);
        });
        let error = response.unwrap_err();
        assert_eq!(error.kind(), &HttpErrorKind::RequestBody);
        drop(client);
        let heard = requests.recv().unwrap();
        assert!(!heard.contains("\r\n0\r\n"), "{heard}");
    }
}

#[tokio::test]
async fn the_sender_of_a_stream_learns_that_the_request_has_ended() {
    let (mut sender, body) = RequestBody::stream(None);
    let to = crate::peers::address(&format!("http://127.0.0.1:{}/", crate::peers::closed_port()));
    patient_client().send(Request::post(&to).body(body)).await.unwrap_err();
    assert_eq!(sender.send(b"x".to_vec()).await, Err(BodyClosed));
}

#[tokio::test]
async fn a_response_may_come_before_the_request_is_complete() {
    let server = Server::start(|mut stream, _| {
        // The head only; 413 and done.
        let mut byte = [0; 1];
        let _ = stream.peek(&mut byte);
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig");
        crate::peers::hold(stream);
    });
    let client = patient_client();
    let (mut sender, body) = RequestBody::stream(None);
    let request = Request::post(&server.address("/")).body(body);
    let (response, ()) = tokio::join!(client.send(request), async {
        sender.send(b"abc".to_vec()).await.unwrap();
    });
    let mut response = response.unwrap();
    assert_eq!((response.status(), response.bytes(10).await.unwrap()), (413, b"big".to_vec()));
    // That connection is not used again.
    let request = Request::get(&server.address("/"));
    assert_eq!(client.send(request).await.unwrap().status(), 413);
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_body_that_is_shorter_than_announced() {
    for (answer, received) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", 4),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", 0),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", 4),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf", 4),
    ] {
        let server = Server::answers(answer);
        let mut response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
        let error = response.bytes(100).await.unwrap_err();
        assert_eq!(error.kind(), &HttpErrorKind::BodyCut { received }, "{answer}");
        assert_eq!(error.dispatch(), Dispatch::Lost);
    }
}

#[tokio::test]
async fn what_is_not_http() {
    for answer in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "220 mail ESMTP\r\n",
        "HTTP/1.1 99 x\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "HTTP/3.0 200 OK\r\n\r\n",
        "\u{15}\u{3}\u{1}\0\u{2}\u{2}\u{16}",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    ] {
        let server = Server::answers(answer);
        let error = patient_client().send(Request::get(&server.address("/"))).await.unwrap_err();
        assert!(matches!(error.kind(), HttpErrorKind::NotHttp { .. }), "{answer:?}: {error:?}");
        assert_eq!(error.dispatch(), Dispatch::Answered, "{answer:?}");
        assert!(error.hint().contains("curl -v"), "{}", error.hint());
    }
    let server = Server::answers("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n");
    let mut response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
    let error = response.bytes(100).await.unwrap_err();
    assert!(matches!(error.kind(), HttpErrorKind::NotHttp { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_speaks_first_is_not_http() {
    let server = Server::start(|mut stream, _| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n");
        crate::peers::hold(stream);
    });
    let error = patient_client().send(Request::get(&server.address("/"))).await.unwrap_err();
    // Whether it spoke before the request was written is a race; what it is, is not.
    assert!(matches!(error.kind(), HttpErrorKind::NotHttp { .. }), "{error:?}");
    assert_ne!(error.dispatch(), Dispatch::Lost);
}
