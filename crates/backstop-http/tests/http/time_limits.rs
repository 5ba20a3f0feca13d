//! Servers that hang or drip, at every stage.

use crate::peers::{Authority, OK, PATIENT, SOON, Server, hold, patient_client, read_request, tls_server};
use backstop_core::Dispatch;
use backstop_http::{Client, HttpError, Limit, Limits, Request, RequestBody};
use std::io::{Read, Write};
use std::time::Duration;

const IDLE: Limits = Limits { idle: SOON, ..PATIENT };
const CONNECT: Limits = Limits { connect: SOON, ..PATIENT };
const TOTAL: Limits = Limits { total: Some(SOON), ..PATIENT };

/// Sends a request and reads its whole response.
async fn fetch(client: &Client, request: Request) -> Result<Vec<u8>, HttpError> {
    client.send(request).await?.bytes(1 << 20).await
}

async fn times_out(server: &Server, limits: Limits) -> HttpError {
    let request = Request::get(&server.address("/")).limits(limits);
    fetch(&patient_client(), request).await.unwrap_err()
}

/// Answers with a beginning, and then says nothing more.
fn stops_after(beginning: &'static str) -> Server {
    Server::start(move |mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(beginning.as_bytes());
        hold(stream);
    })
}

/// Answers with a beginning, and then with one byte after the other.
fn drips_after(beginning: &'static str, byte: u8) -> Server {
    Server::start(move |mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(beginning.as_bytes());
        // The pause is what is tested: a byte comes well within the limit, and so does the next.
        while stream.write_all(&[byte]).is_ok() {
            std::thread::sleep(SOON / 20);
        }
    })
}

#[tokio::test]
async fn hangs_before_anything() {
    let server = stops_after("");
    let error = times_out(&server, IDLE).await;
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost));
    assert!(error.to_string().ends_with("the server did nothing for 200 ms"), "{error}");
    assert_eq!(times_out(&server, TOTAL).await.timeout(), Some(Limit::Total));
}

#[tokio::test]
async fn hangs_in_the_status_line_a_header_or_after_an_interim_response() {
    for beginning in
        ["HTT", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nx: y\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n"]
    {
        let error = times_out(&stops_after(beginning), IDLE).await;
        assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost), "{beginning}");
    }
}

#[tokio::test]
async fn hangs_in_the_body() {
    for beginning in [
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nha",
        "HTTP/1.1 200 OK\r\n\r\nno length",
    ] {
        let error = times_out(&stops_after(beginning), IDLE).await;
        assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost), "{beginning}");
        let error = times_out(&stops_after(beginning), TOTAL).await;
        assert_eq!(error.timeout(), Some(Limit::Total), "{beginning}");
    }
}

#[tokio::test]
async fn hangs_in_the_tls_handshake() {
    let server = Server::start(|stream, _| hold(stream));
    let to = crate::peers::address(&format!("https://127.0.0.1:{}/", server.port));
    let client = Authority::new("ca").client();
    let error = client.send(Request::get(&to).limits(CONNECT)).await.unwrap_err();
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Connect), Dispatch::NotDispatched));
    let error = client.send(Request::get(&to).limits(TOTAL)).await.unwrap_err();
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Total), Dispatch::NotDispatched));
    // No time at all: nothing is sent.
    let server = Server::answers(OK);
    let error = times_out(&server, Limits { total: Some(Duration::ZERO), ..PATIENT }).await;
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Total), Dispatch::NotDispatched));
}

#[tokio::test]
async fn hangs_after_the_tls_handshake() {
    let authority = Authority::new("ca");
    let config = authority.server(&["127.0.0.1"], &["http/1.1"], |_| {});
    let server = tls_server(config, |mut stream, _| {
        read_request(&mut stream);
        hold(stream);
    });
    let to = crate::peers::address(&format!("https://127.0.0.1:{}/", server.port));
    let error = authority.client().send(Request::get(&to).limits(IDLE)).await.unwrap_err();
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost));
}

#[tokio::test]
async fn does_not_read_the_request() {
    let server = Server::start(|stream, _| {
        // Nothing is read until the client gives up.
        let mut byte = [0; 1];
        while stream.peek(&mut byte).is_ok_and(|n| n > 0) {
            std::thread::sleep(SOON / 4);
            if stream.take_error().is_ok_and(|error| error.is_some()) {
                return;
            }
        }
    });
    let request = Request::post(&server.address("/")).body(vec![0; 32 << 20]).limits(IDLE);
    let error = fetch(&patient_client(), request).await.unwrap_err();
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost));
}

#[tokio::test]
async fn reads_the_request_slowly() {
    // In all it takes longer than a server may be idle, but it never is.
    let server = Server::start(|mut stream, _| {
        let mut read = 0;
        let mut piece = vec![0; 1 << 20];
        while read < 16 << 20 {
            read += stream.read(&mut piece).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        hold_until_request_ends(&mut stream, read);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let request = Request::post(&server.address("/")).body(vec![0; 16 << 20]);
    let request = request.limits(Limits { idle: Duration::from_secs(2), ..PATIENT });
    assert_eq!(fetch(&patient_client(), request).await.unwrap(), b"ok");
}

/// Reads the rest of a request whose body has 16 MiB: its head.
fn hold_until_request_ends(stream: &mut std::net::TcpStream, read: usize) {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut rest = Vec::new();
    let _ = (&*stream).take(4096).read_to_end(&mut rest);
    assert!(read + rest.len() > 16 << 20, "{read}");
}

#[tokio::test]
async fn drips_the_head() {
    // No total: the head has to be there within the idle limit all the same.
    let server = drips_after("HTTP/1.1 200 OK\r\nx-slow: ", b'a');
    let error = times_out(&server, Limits { total: None, ..IDLE }).await;
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost));
}

#[tokio::test]
async fn drips_the_body() {
    for beginning in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"] {
        let error = times_out(&drips_after(beginning, b'a'), TOTAL).await;
        assert_eq!(error.timeout(), Some(Limit::Total), "{beginning}");
    }
}

#[tokio::test]
async fn sends_interim_responses_for_ever() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        while stream.write_all(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n").is_ok() {}
    });
    assert_eq!(times_out(&server, IDLE).await.timeout(), Some(Limit::Idle));
    assert_eq!(times_out(&server, TOTAL).await.timeout(), Some(Limit::Total));
}

#[tokio::test]
async fn always_has_more() {
    // Each piece is read at once, so that only the total can end it.
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
    let total = Some(Duration::from_secs(2));
    let request = Request::get(&server.address("/")).limits(Limits { total, ..PATIENT });
    let mut response = patient_client().send(request).await.unwrap();
    let error = loop {
        match response.chunk().await {
            Ok(Some(piece)) => assert!(piece.len() <= 64 << 10),
            Ok(None) => panic!("it ended"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Total), Dispatch::Lost));
    assert_eq!(response.chunk().await, Ok(None), "after an error there is no more");
}

#[tokio::test]
async fn a_slow_sender_of_a_body_is_not_an_idle_server() {
    let server = Server::answers(OK);
    let (mut sender, body) = RequestBody::stream(None);
    let writing = tokio::spawn(async move {
        sender.send(b"a".to_vec()).await.unwrap();
        tokio::time::sleep(SOON * 3).await;
        sender.send(b"b".to_vec()).await.unwrap();
        sender.finish().await.unwrap();
    });
    let request = Request::post(&server.address("/")).body(body).limits(IDLE);
    assert_eq!(fetch(&patient_client(), request).await.unwrap(), b"ok");
    writing.await.unwrap();
    // The total ends that, too.
    let (_sender, body) = RequestBody::stream(None);
    let request = Request::post(&server.address("/")).body(body).limits(TOTAL);
    let error = fetch(&patient_client(), request).await.unwrap_err();
    assert_eq!(error.timeout(), Some(Limit::Total));
}

#[test]
fn a_runtime_ends_at_once_after_a_timeout() {
    // A current-thread runtime that is dropped with a request half done, as a short program does.
    let server = stops_after("HTTP/1.1 200 OK\r\n\r\nhalf");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = patient_client();
    let error = runtime.block_on(fetch(&client, Request::get(&server.address("/")).limits(IDLE)));
    assert_eq!(error.unwrap_err().timeout(), Some(Limit::Idle));
    drop(runtime);
    // And the same client works in the next one.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = Server::answers(OK);
    assert_eq!(runtime.block_on(fetch(&client, Request::get(&server.address("/")))).unwrap(), b"ok");
}
