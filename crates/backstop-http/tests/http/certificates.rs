//! TLS: certificates that are right, and every way in which they are wrong.

use crate::peers::{Authority, OK, PATIENT, Server, Tls, address, read_request, tls_server};
use backstop_core::Dispatch;
use backstop_http::{
    CertificateProblem, Client, HttpError, HttpErrorKind, Request, Response, Roots, RootsError, Version,
};
use std::io::{Read, Write};

fn serve(mut stream: Tls, _: usize) {
    if !read_request(&mut stream).is_empty() {
        let _ = stream.write_all(OK.as_bytes());
        let _ = stream.flush();
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }
}

async fn get(client: &Client, host: &str, server: &Server) -> Result<Response, HttpError> {
    client.send(Request::get(&address(&format!("https://{host}:{}/secret", server.port)))).await
}

#[tokio::test]
async fn a_right_certificate() {
    let authority = Authority::new("ca");
    let config = authority.server(&["localhost", "127.0.0.1"], &[], |_| {});
    let server = tls_server(config, serve);
    let client = authority.client();
    for host in ["localhost", "127.0.0.1"] {
        let mut response = get(&client, host, &server).await.unwrap();
        // A server that says nothing about protocols speaks HTTP/1.1.
        assert_eq!((response.status(), response.version()), (200, Version::Http11));
        assert_eq!(response.bytes(10).await.unwrap(), b"ok");
    }
}

#[tokio::test]
async fn a_wrong_certificate() {
    let authority = Authority::new("ca");
    let other = Authority::new("another ca");
    let forger = Authority::new("ca");
    type Change = fn(&mut rcgen::CertificateParams);
    let same: Change = |_| {};
    let expired: Change = |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let early: Change = |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1);
    for (issuer, host, change, problem) in [
        (&authority, "example.com", same, CertificateProblem::WrongName),
        (&authority, "127.0.0.2", same, CertificateProblem::WrongName),
        (&other, "127.0.0.1", same, CertificateProblem::UnknownIssuer),
        (&forger, "127.0.0.1", same, CertificateProblem::BadSignature),
        (&authority, "127.0.0.1", expired, CertificateProblem::Expired),
        (&authority, "127.0.0.1", early, CertificateProblem::NotYetValid),
    ] {
        let server = tls_server(issuer.server(&[host], &[], change), serve);
        let error = get(&authority.client(), "127.0.0.1", &server).await.unwrap_err();
        assert_eq!(error.kind(), &HttpErrorKind::Certificate(problem));
        assert_eq!(error.dispatch(), Dispatch::NotDispatched);
        assert!(!error.to_string().contains("secret") && !error.hint().is_empty());
    }
}

#[tokio::test]
async fn the_platforms_roots_do_not_trust_a_stranger() {
    let authority = Authority::new("ca");
    let server = tls_server(authority.server(&["127.0.0.1"], &[], |_| {}), serve);
    let client = Client::builder().limits(PATIENT).build();
    let error = get(&client, "127.0.0.1", &server).await.unwrap_err();
    let rejected = matches!(
        error.kind(),
        HttpErrorKind::Certificate(CertificateProblem::UnknownIssuer) | HttpErrorKind::NoRoots { .. }
    );
    assert!(rejected, "{error:?}");
    assert_eq!(error.dispatch(), Dispatch::NotDispatched);
}

#[tokio::test]
async fn plain_http_where_tls_is_expected() {
    let authority = Authority::new("ca");
    let server = Server::start(|mut stream, _| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
    });
    let error = get(&authority.client(), "127.0.0.1", &server).await.unwrap_err();
    assert_eq!((error.kind(), error.dispatch()), (&HttpErrorKind::NotTls, Dispatch::NotDispatched));
    assert!(error.hint().contains("http://"), "{}", error.hint());
}

#[tokio::test]
async fn tls_where_plain_http_is_expected() {
    let authority = Authority::new("ca");
    let server = tls_server(authority.server(&["127.0.0.1"], &[], |_| {}), serve);
    let error = authority.client().send(Request::get(&server.address("/"))).await.unwrap_err();
    assert!(matches!(error.kind(), HttpErrorKind::NotHttp { .. }), "{error:?}");
    assert!(error.hint().contains("https"), "{}", error.hint());
}

#[tokio::test]
async fn hangs_up_in_the_handshake() {
    for reset in [false, true] {
        let server = Server::start(move |stream, _| {
            let _ = stream.peek(&mut [0; 1]);
            if reset {
                crate::peers::reset(stream);
            }
        });
        let error = get(&Authority::new("ca").client(), "127.0.0.1", &server).await.unwrap_err();
        let ended = matches!(error.kind(), HttpErrorKind::Reset | HttpErrorKind::Closed);
        assert!(ended, "{error:?}");
        assert_eq!(error.dispatch(), Dispatch::NotDispatched);
    }
}

/// Without the end of TLS nobody knows whether somebody cut the body short.
#[tokio::test]
async fn a_body_without_length_needs_the_end_of_tls() {
    let authority = Authority::new("ca");
    for politely in [true, false] {
        let config = authority.server(&["127.0.0.1"], &[], |_| {});
        let server = tls_server(config, move |mut stream: Tls, _| {
            read_request(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").unwrap();
            if politely {
                stream.conn.send_close_notify();
            }
            stream.flush().unwrap();
        });
        let mut response = get(&authority.client(), "127.0.0.1", &server).await.unwrap();
        let body = response.bytes(100).await;
        if politely {
            assert_eq!(body.unwrap(), b"half");
        } else {
            let error = body.unwrap_err();
            assert_eq!(error.kind(), &HttpErrorKind::BodyCut { received: 4 });
            assert_eq!(error.dispatch(), Dispatch::Lost);
        }
    }
}

#[test]
fn roots_that_are_none() {
    for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n"] {
        assert_eq!(Roots::only(pem.as_bytes()), Err(RootsError), "{pem}");
        assert_eq!(Roots::platform_and(pem.as_bytes()), Err(RootsError), "{pem}");
    }
}
