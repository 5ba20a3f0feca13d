//! Servers that send more than anybody wants.

use crate::peers::{Server, patient_client, read_request};
use backstop_core::Dispatch;
use backstop_http::{HttpError, HttpErrorKind, Request};
use std::io::Write;

/// Answers with a beginning, and then with the same bytes again and again.
fn floods(beginning: &'static str, again: &'static str) -> Server {
    Server::start(move |mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(beginning.as_bytes());
        let piece = again.repeat(1000);
        while stream.write_all(piece.as_bytes()).is_ok() {}
    })
}

async fn fetch(server: &Server, bytes_max: usize) -> Result<Vec<u8>, HttpError> {
    patient_client().send(Request::get(&server.address("/"))).await?.bytes(bytes_max).await
}

#[tokio::test]
async fn floods_the_head() {
    let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    let many = Server::answers(format!("HTTP/1.1 200 OK\r\n{many}\r\n"));
    for server in [
        floods("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
        floods("HTTP/1.1 200 OK\r\nx: ", "y"),
        floods("HTTP/1.1 200 ", "OK"),
        many,
    ] {
        let error = fetch(&server, 1 << 20).await.unwrap_err();
        assert!(matches!(error.kind(), HttpErrorKind::HeadTooLarge { .. }), "{error:?}");
        assert_eq!(error.dispatch(), Dispatch::Answered);
    }
}

#[tokio::test]
async fn floods_the_body() {
    for beginning in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
    ] {
        let error = fetch(&floods(beginning, "x"), 10_000).await.unwrap_err();
        assert_eq!(error.kind(), &HttpErrorKind::BodyTooLarge { bytes_max: 10_000 }, "{beginning}");
        assert_eq!(error.dispatch(), Dispatch::Answered);
    }
}

#[tokio::test]
async fn a_body_may_be_as_long_as_the_limit() {
    let server = Server::answers("HTTP/1.1 200 OK\r\n\r\n0123456789");
    assert_eq!(fetch(&server, 10).await.unwrap(), b"0123456789");
    assert!(fetch(&server, 9).await.is_err());
    let server = Server::answers("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789");
    assert_eq!(fetch(&server, 10).await.unwrap(), b"0123456789");
    assert!(fetch(&server, 9).await.is_err());
}

#[tokio::test]
async fn floods_chunk_extensions_and_trailers() {
    for (beginning, again) in [
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", "x"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "x: y\r\n"),
    ] {
        let error = fetch(&floods(beginning, again), 10_000).await.unwrap_err();
        assert!(matches!(error.kind(), HttpErrorKind::NotHttp { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn the_beginning_of_a_body_is_enough_for_a_message() {
    let server = floods("HTTP/1.1 500 Oops\r\n\r\n", "x");
    let mut response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
    assert_eq!(response.status(), 500);
    assert_eq!(response.body_start(4096).await, vec![b'x'; 4096]);
    // One that breaks off ends there.
    let server = Server::answers("HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nhalf");
    let mut response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
    assert_eq!(response.body_start(4096).await, b"half");
}
