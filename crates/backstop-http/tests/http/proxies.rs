//! Servers that are reached through a proxy, which is on this machine as they are. Their names do
//! not exist: only the proxy knows where they are.

use crate::peers::{Authority, OK, PATIENT, Server, address, closed_port, hold, read_request, tls_server};
use backstop_core::Dispatch;
use backstop_http::{Client, HttpError, HttpErrorKind, Proxies, ProxyProblem, Request, Roots};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// A client that goes through the proxy on this port.
fn client(proxy: u16, user: &str, roots: Option<Roots>) -> Client {
    let at = if user.is_empty() { "" } else { "@" };
    let value = format!("http://{user}{at}127.0.0.1:{proxy}");
    let proxies = Proxies::from_variables(|name| match name {
        "HTTPS_PROXY" | "HTTP_PROXY" => Some(value.clone()),
        "NO_PROXY" => Some("direct.test".to_owned()),
        _ => None,
    });
    let builder = Client::builder().limits(PATIENT).proxies(proxies);
    roots.into_iter().fold(builder, backstop_http::ClientBuilder::roots).build()
}

/// The head of a request, read byte by byte: what follows it belongs to the tunnel.
fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// A proxy that makes tunnels to one port, whatever host it is asked for.
fn tunnels_to(port: u16, heads: &Arc<Mutex<Vec<String>>>) -> Server {
    let heads = Arc::clone(heads);
    Server::start(move |mut stream, _| {
        heads.lock().unwrap().push(read_head(&mut stream));
        let mut upstream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n").unwrap();
        let (mut from, mut to) = (stream.try_clone().unwrap(), upstream.try_clone().unwrap());
        let there = std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut upstream, &mut stream);
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let _ = there.join();
    })
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_sees_the_host_alone() {
    let authority = Authority::new("ca");
    let server = tls_server(authority.server(&["server.test"], &[], |_| {}), |mut stream, _| {
        while !read_request(&mut stream).is_empty() {
            let _ = stream.write_all(OK.as_bytes()).and_then(|()| stream.flush());
        }
    });
    let heads = Arc::default();
    let proxy = tunnels_to(server.port, &heads);
    let client = client(proxy.port, "me:p%40ss", Some(authority.roots()));
    for _ in 0..2 {
        let request = Request::get(&address("https://server.test/secret"));
        let mut response = client.send(request).await.unwrap();
        assert_eq!(response.bytes(10).await.unwrap(), b"ok");
    }
    // The second request used the same tunnel.
    let heads = heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 1);
    assert!(
        heads[0].starts_with("CONNECT server.test:443 HTTP/1.1\r\nhost: server.test:443\r\n"),
        "{heads:?}"
    );
    assert!(heads[0].contains("\r\nproxy-authorization: Basic bWU6cEBzcw==\r\n"), "{heads:?}");
    assert!(!heads[0].contains("secret"));
}

#[tokio::test]
async fn plain_http_is_sent_to_the_proxy_with_the_whole_address() {
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&requests);
    let proxy = Server::start(move |mut stream, _| {
        seen.lock().unwrap().push(read_request(&mut stream));
        let _ = stream.write_all(OK.as_bytes());
    });
    let client = client(proxy.port, "me:pw", None);
    let mut response = client.send(Request::get(&address("http://server.test:8080/a?b"))).await.unwrap();
    assert_eq!(response.bytes(10).await.unwrap(), b"ok");
    let request = requests.lock().unwrap()[0].clone();
    assert!(request.starts_with("GET http://server.test:8080/a?b HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("host: server.test:8080\r\n") && request.contains("proxy-authorization: Basic ")
    );

    // This machine is reached without the proxy, and is not shown the proxy's credential.
    let server = Server::start(|mut stream, _| {
        let request = read_request(&mut stream);
        let status = if request.contains("proxy") { 500 } else { 204 };
        let _ = write!(stream, "HTTP/1.1 {status} x\r\n\r\n");
    });
    assert_eq!(client.send(Request::get(&server.address("/"))).await.unwrap().status(), 204);
    assert_eq!(proxy.accepted(), 1);
}

async fn fails(proxy: u16) -> HttpError {
    let request = Request::post(&address("https://server.test/secret")).body(b"secret".to_vec());
    let error = client(proxy, "me:canary", None).send(request).await.unwrap_err();
    assert_eq!(error.dispatch(), Dispatch::NotDispatched, "{error}");
    assert!(!error.hint().is_empty() && !format!("{error} {error:?}").contains("canary"));
    error
}

#[tokio::test]
async fn a_proxy_that_does_not_do_its_part_is_named() {
    for (answer, problem) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 2\r\n\r\nno",
            ProxyProblem::Credential,
        ),
        ("HTTP/1.0 403 Forbidden\r\n\r\n<html>", ProxyProblem::Refused { status: 403 }),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", ProxyProblem::Refused { status: 502 }),
        ("SSH-2.0-OpenSSH_9.6\r\n", ProxyProblem::NotHttp),
        ("HTTP/1.1 200 OK\r\n\r\nsurprise", ProxyProblem::NotHttp),
        ("HTTP/1.1 200", ProxyProblem::HungUp),
        ("", ProxyProblem::HungUp),
    ] {
        let proxy = Server::start(move |mut stream, _| {
            read_head(&mut stream);
            let _ = stream.write_all(answer.as_bytes());
        });
        let error = fails(proxy.port).await;
        let HttpErrorKind::Proxy { proxy: named, problem: found } = error.kind() else { panic!("{error}") };
        assert_eq!(found, &problem, "{answer}");
        assert_eq!(named.raw(), format!("http://127.0.0.1:{}", proxy.port));
    }
    let refused = fails(closed_port()).await;
    let connect = ProxyProblem::Connect(Box::new(HttpErrorKind::Refused));
    assert!(
        matches!(refused.kind(), HttpErrorKind::Proxy { problem, .. } if *problem == connect),
        "{refused}"
    );
}

#[tokio::test]
async fn a_proxy_that_never_answers_is_left_at_the_limit() {
    let proxy = Server::start(|stream, _| hold(stream));
    let limits = backstop_http::Limits { connect: crate::peers::SOON, ..PATIENT };
    let request = Request::get(&address("https://server.test/")).limits(limits);
    let error = client(proxy.port, "", None).send(request).await.unwrap_err();
    assert_eq!(error.timeout(), Some(backstop_http::Limit::Connect), "{error}");
}
