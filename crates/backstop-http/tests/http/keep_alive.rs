//! Connections that are used again, and those that were closed in the meantime.

use crate::peers::{Authority, OK, Server, address, patient_client, read_request, reset, tls_server};
use backstop_core::Dispatch;
use backstop_http::{Client, HttpErrorKind, Request};
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

async fn fetch(client: &Client, server: &Server) -> Vec<u8> {
    let mut response = client.send(Request::get(&server.address("/"))).await.unwrap();
    response.bytes(1000).await.unwrap()
}

/// Answers every request of a connection.
fn polite(mut stream: TcpStream, _: usize) {
    while !read_request(&mut stream).is_empty() && stream.write_all(OK.as_bytes()).is_ok() {}
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::start(polite);
    let client = patient_client();
    for _ in 0..5 {
        assert_eq!(fetch(&client, &server).await, b"ok");
    }
    // A clone shares it.
    assert_eq!(fetch(&client.clone(), &server).await, b"ok");
    assert_eq!(server.accepted(), 1);
    // Another client does not.
    assert_eq!(fetch(&patient_client(), &server).await, b"ok");
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_response_that_is_not_read_to_its_end_costs_its_connection() {
    let server = Server::start(polite);
    let client = patient_client();
    let response = client.send(Request::get(&server.address("/"))).await.unwrap();
    drop(response);
    assert_eq!(fetch(&client, &server).await, b"ok");
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_server_that_closes_is_not_asked_again_on_that_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\n\r\nok",
        "HTTP/1.1 200 OK\r\n\r\nok",
    ] {
        let server = Server::answers(answer);
        let client = patient_client();
        for n in 1..=3 {
            assert_eq!(fetch(&client, &server).await, b"ok", "{answer}");
            assert_eq!(server.accepted(), n);
        }
    }
}

/// How a server ends a connection that is kept: by closing it, by a reset, or with a goodbye.
#[tokio::test]
async fn a_kept_connection_that_died_never_gets_a_request() {
    for how in ["closes", "resets", "says 408 and closes"] {
        let (done, ended) = channel();
        let (go, gone_on) = channel::<()>();
        let gone_on = Mutex::new(gone_on);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        let server = Server::start(move |mut stream, n| {
            requests.lock().unwrap().push(read_request(&mut stream));
            stream.write_all(OK.as_bytes()).unwrap();
            if n == 0 {
                gone_on.lock().unwrap().recv().unwrap();
                match how {
                    "closes" => drop(stream),
                    "resets" => reset(stream),
                    _ => stream.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").unwrap(),
                }
                done.send(()).unwrap();
            }
        });
        let client = patient_client();
        assert_eq!(fetch(&client, &server).await, b"ok");
        // This thread drives the connection, and does not until the server has ended it: nobody on
        // this side can have noticed when the next request is sent.
        go.send(()).unwrap();
        ended.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let request = Request::post(&server.address("/")).body(b"{}".to_vec());
        match client.send(request).await {
            Ok(response) => assert_eq!((response.status(), server.accepted()), (200, 2), "{how}"),
            // Where it is noticed only while the request is handed over, nobody here tries again.
            Err(error) => {
                let closed = matches!(error.kind(), HttpErrorKind::Closed | HttpErrorKind::Reset);
                assert!(closed, "{how}: {error:?}");
                assert_eq!((error.dispatch(), server.accepted()), (Dispatch::NotDispatched, 1), "{how}");
            }
        }
        assert_eq!(seen.lock().unwrap().len(), server.accepted(), "{how}: one request a connection");
    }
}

#[tokio::test]
async fn a_kept_connection_that_is_known_to_be_closed_is_not_used() {
    let (done, ended) = channel();
    let server = Server::start(move |mut stream, _| {
        read_request(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        drop(stream);
        done.send(()).unwrap();
    });
    let client = patient_client();
    assert_eq!(fetch(&client, &server).await, b"ok");
    ended.recv().unwrap();
    // Time for this side to notice.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(fetch(&client, &server).await, b"ok");
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_kept_connection_that_dies_after_the_request_is_lost() {
    let server = Server::start(move |mut stream, _| {
        read_request(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        read_request(&mut stream);
    });
    let client = patient_client();
    assert_eq!(fetch(&client, &server).await, b"ok");
    let request = Request::post(&server.address("/")).body(b"{}".to_vec());
    let error = client.send(request).await.unwrap_err();
    assert_eq!((error.kind(), error.dispatch()), (&HttpErrorKind::Closed, Dispatch::Lost));
    assert_eq!(server.accepted(), 1);
}

/// Bytes after a response are nobody's: they must not become the response to the next request.
#[tokio::test]
async fn more_than_announced_is_not_the_next_response() {
    let server = Server::start(|mut stream, n| {
        read_request(&mut stream);
        let forged = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged";
        let answer = if n == 0 { format!("{OK}{forged}") } else { OK.to_owned() };
        stream.write_all(answer.as_bytes()).unwrap();
        read_request(&mut stream);
    });
    let client = patient_client();
    assert_eq!(fetch(&client, &server).await, b"ok");
    assert_eq!(fetch(&client, &server).await, b"ok");
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn many_requests_at_once_have_a_connection_each() {
    let server = Server::start(polite);
    let client = patient_client();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (client, to) = (client.clone(), server.address("/"));
        tasks.spawn(async move { client.send(Request::get(&to)).await.unwrap().bytes(10).await.unwrap() });
    }
    assert!(tasks.join_all().await.iter().all(|body| body == b"ok"));
    let used = server.accepted();
    assert!(used <= 20, "{used}");
    assert_eq!(fetch(&client, &server).await, b"ok");
    assert_eq!(server.accepted(), used);
}

#[tokio::test]
async fn a_connection_with_tls_is_used_again() {
    let authority = Authority::new("ca");
    let config = authority.server(&["127.0.0.1"], &["http/1.1"], |_| {});
    let server = tls_server(config, |mut stream, _| {
        while !read_request(&mut stream).is_empty() && stream.write_all(OK.as_bytes()).is_ok() {
            let _ = stream.flush();
        }
    });
    let client = authority.client();
    let to = address(&format!("https://127.0.0.1:{}/", server.port));
    for _ in 0..3 {
        let mut response = client.send(Request::get(&to)).await.unwrap();
        assert_eq!(response.bytes(10).await.unwrap(), b"ok");
    }
    assert_eq!(server.accepted(), 1);
}
