//! Hosts: names, literals, and those that are not there.

use crate::peers::{OK, PATIENT, Server, address, closed_port, patient_client, read_request};
use backstop_core::Dispatch;
use backstop_http::{Client, HttpErrorKind, Limit, Request};
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn ipv6_literal() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("this machine has no IPv6");
        return;
    }
    let heard = Arc::new(Mutex::new(String::new()));
    let hearing = Arc::clone(&heard);
    let server = Server::on("[::1]:0", move |mut stream, _| {
        *hearing.lock().unwrap() = read_request(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let to = address(&format!("http://[::1]:{}/x", server.port));
    let response = patient_client().send(Request::get(&to)).await.unwrap();
    assert_eq!(response.status(), 200);
    let request = heard.lock().unwrap().clone();
    assert!(request.contains(&format!("host: [::1]:{}\r\n", server.port)), "{request}");
}

#[tokio::test]
async fn a_name_with_an_address_that_does_not_listen() {
    // `localhost` is ::1 as well as 127.0.0.1 on many machines; the server has one of them only.
    let server = Server::answers(OK);
    let to = address(&format!("http://localhost:{}/", server.port));
    let response = patient_client().send(Request::get(&to)).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn nothing_listens() {
    let to = address(&format!("http://127.0.0.1:{}/secret", closed_port()));
    let error = patient_client().send(Request::get(&to)).await.unwrap_err();
    assert_eq!(error.kind(), &HttpErrorKind::Refused);
    assert_eq!(error.dispatch(), Dispatch::NotDispatched);
    assert_eq!(error.to_string(), format!("{}: connection refused", to.place()));
    assert!(error.hint().contains(&to.place()) && !error.hint().contains("secret"), "{}", error.hint());
}

#[tokio::test]
async fn a_name_that_does_not_exist() {
    let to = address("http://no-such-host.invalid/");
    let error = patient_client().send(Request::get(&to)).await.unwrap_err();
    // Which of the two depends on whether this machine has a name server.
    let named = matches!(error.kind(), HttpErrorKind::NameNotFound { .. } | HttpErrorKind::NameServer { .. });
    assert!(named, "{error:?}");
    assert_eq!(error.dispatch(), Dispatch::NotDispatched);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nobody_accepts() {
    use crate::peers::{SOON, full_queue};
    let (socket, _waiting) = full_queue();
    let port = socket.local_addr().unwrap().as_socket().unwrap().port();
    let to = address(&format!("http://127.0.0.1:{port}/"));
    let client = Client::builder().limits(backstop_http::Limits { connect: SOON, ..PATIENT }).build();
    let error = client.send(Request::get(&to)).await.unwrap_err();
    assert_eq!(error.timeout(), Some(Limit::Connect), "{error:?}");
    assert_eq!(error.dispatch(), Dispatch::NotDispatched);
}
