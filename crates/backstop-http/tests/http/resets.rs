//! Connections that end when they should not: what is known of the request then.

use crate::peers::{OK, Server, patient_client, read_request, reset};
use backstop_core::Dispatch;
use backstop_http::{HttpErrorKind, Request};
use std::io::{Read, Write};

#[tokio::test]
async fn resets_after_the_request_was_read() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        reset(stream);
    });
    let request = Request::post(&server.address("/")).body(b"{}".to_vec());
    let error = patient_client().send(request).await.unwrap_err();
    assert_eq!(error.kind(), &HttpErrorKind::Reset);
    assert_eq!(error.dispatch(), Dispatch::Lost);
}

#[tokio::test]
async fn closes_after_the_request_was_read() {
    let server = Server::answers("");
    let error = patient_client().send(Request::get(&server.address("/"))).await.unwrap_err();
    assert_eq!((error.kind(), error.dispatch()), (&HttpErrorKind::Closed, Dispatch::Lost));
    let server = Server::answers("HTTP/1.1 200 OK\r\nx: ");
    let error = patient_client().send(Request::get(&server.address("/"))).await.unwrap_err();
    assert_eq!((error.kind(), error.dispatch()), (&HttpErrorKind::Closed, Dispatch::Lost));
}

#[tokio::test]
async fn resets_in_the_body() {
    let (go, gone_on) = std::sync::mpsc::channel::<()>();
    let gone_on = std::sync::Mutex::new(gone_on);
    let server = Server::start(move |mut stream, _| {
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").unwrap();
        // A reset takes back what was not read before it.
        gone_on.lock().unwrap().recv().unwrap();
        reset(stream);
    });
    let mut response = patient_client().send(Request::get(&server.address("/"))).await.unwrap();
    assert_eq!(&*response.chunk().await.unwrap().unwrap(), b"half");
    go.send(()).unwrap();
    let error = response.chunk().await.unwrap_err();
    assert_eq!((error.kind(), error.dispatch()), (&HttpErrorKind::Reset, Dispatch::Lost));
}

/// Whether the reset is there before the request is written is a race, and either outcome is right:
/// what must not be is that "not sent" is said of a request that the server has bytes of.
#[tokio::test]
async fn resets_before_the_request_is_read() {
    for read_first in [false, true] {
        let (saw, seen) = std::sync::mpsc::channel();
        let server = Server::start(move |mut stream, _| {
            let read = if read_first { stream.read(&mut [0; 1]).unwrap_or(0) } else { 0 };
            saw.send(read).unwrap();
            reset(stream);
        });
        for _ in 0..50 {
            let request = Request::post(&server.address("/")).body(b"{}".to_vec());
            let error = patient_client().send(request).await.unwrap_err();
            let ended = matches!(error.kind(), HttpErrorKind::Reset | HttpErrorKind::Closed);
            assert!(ended, "{error:?}");
            if seen.recv().unwrap() > 0 {
                assert_eq!(error.dispatch(), Dispatch::Lost);
            } else {
                assert_ne!(error.dispatch(), Dispatch::Answered);
            }
        }
    }
}

/// The clients of one server: one that is cut off does not disturb another.
#[tokio::test]
async fn a_request_that_is_dropped_closes_its_connection() {
    let (closed, was_closed) = std::sync::mpsc::channel();
    let server = Server::start(move |mut stream, n| {
        read_request(&mut stream);
        if n == 0 {
            crate::peers::hold(&mut stream);
            closed.send(()).unwrap();
        } else {
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let client = patient_client();
    let request = Request::get(&server.address("/"));
    let cut = tokio::time::timeout(crate::peers::SOON, client.send(request)).await;
    assert!(cut.is_err());
    let response = client.send(Request::get(&server.address("/"))).await.unwrap();
    assert_eq!(response.status(), 200);
    was_closed.recv().unwrap();
}
