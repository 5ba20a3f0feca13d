//! HTTP/2, chosen in the TLS handshake.

use crate::peers::{Authority, PATIENT, SOON, address};
use backstop_core::Dispatch;
use backstop_http::{Address, Client, HttpErrorKind, Limit, Limits, Request, RequestBody, Version};
use h2::server::{Connection, SendResponse};
use hyper::body::Bytes;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

type Wire = Connection<TlsStream<TcpStream>, Bytes>;
type Exchange = (hyper::Request<h2::RecvStream>, SendResponse<Bytes>);

/// A server that hands each HTTP/2 connection to `serve`.
struct Server {
    to: Address,
    client: Client,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    async fn start<F>(serve: impl Fn(Wire) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let authority = Authority::new("ca");
        let config = authority.server(&["127.0.0.1"], &["h2", "http/1.1"], |_| {});
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            let acceptor = tokio_rustls::TlsAcceptor::from(config);
            while let Ok((tcp, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tcp.set_nodelay(true).unwrap();
                let tls = acceptor.accept(tcp).await.unwrap();
                assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                let wire =
                    h2::server::Builder::new().max_concurrent_streams(100).handshake(tls).await.unwrap();
                tokio::spawn(serve(wire));
            }
        });
        let to = address(&format!("https://127.0.0.1:{port}/v1/x?y=z"));
        Self { to, client: authority.client(), accepted }
    }

    /// Hands each request to `answer`.
    async fn each<F>(answer: impl Fn(Exchange) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start(move |mut wire| {
            let answer = answer.clone();
            async move {
                while let Some(Ok(exchange)) = wire.accept().await {
                    tokio::spawn(answer(exchange));
                }
            }
        })
        .await
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

fn head(status: u16) -> hyper::Response<()> {
    hyper::Response::builder().status(status).body(()).unwrap()
}

async fn body_of(mut stream: h2::RecvStream) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream.data().await {
        let _ = stream.flow_control().release_capacity(piece.len());
        body.extend_from_slice(&piece);
    }
    body
}

/// Answers with what it was sent.
async fn echo((request, mut answer): Exchange) {
    let line = format!("{} {} {:?} ", request.method(), request.uri(), request.headers().get("x-a"));
    let length = request.headers().get("content-length").cloned();
    let body = body_of(request.into_body()).await;
    let mut stream = answer.send_response(head(200), false).unwrap();
    stream.send_data(format!("{line}{length:?} {}", body.len()).into(), true).unwrap();
}

#[tokio::test]
async fn requests_share_one_connection() {
    let server = Server::each(echo).await;
    let post = || {
        let request = Request::post(&server.to).header("x-a", "b").unwrap();
        server.client.send(request.body(vec![b'x'; 200_000]))
    };
    let mut response = post().await.unwrap();
    assert_eq!((response.status(), response.version()), (200, Version::Http2));
    let want = format!("POST {} Some(\"b\") Some(\"200000\") 200000", server.to.whole());
    assert_eq!(String::from_utf8(response.bytes(1000).await.unwrap()).unwrap(), want);
    // At the same time, and while nothing of the first was read.
    let (first, second) = tokio::join!(post(), post());
    for response in [first, second] {
        assert_eq!(response.unwrap().bytes(1000).await.unwrap(), want.as_bytes());
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_connection_is_shared_while_a_response_is_still_streaming() {
    let server = Server::each(|(_, mut answer): Exchange| async move {
        let mut stream = answer.send_response(head(200), false).unwrap();
        stream.send_data("begin".into(), false).unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let mut first = server.client.send(Request::get(&server.to)).await.unwrap();
    assert_eq!(&*first.chunk().await.unwrap().unwrap(), b"begin");
    let mut second = server.client.send(Request::get(&server.to)).await.unwrap();
    assert_eq!(&*second.chunk().await.unwrap().unwrap(), b"begin");
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn it_can_be_left_out() {
    let authority = Authority::new("ca");
    let config = authority.server(&["127.0.0.1"], &["h2", "http/1.1"], |_| {});
    let server = crate::peers::tls_server(config, |mut stream, _| {
        use std::io::Write;
        crate::peers::read_request(&mut stream);
        stream.write_all(crate::peers::OK.as_bytes()).unwrap();
        stream.flush().unwrap();
    });
    let client = Client::builder().limits(PATIENT).roots(authority.roots()).http2(false).build();
    let to = address(&format!("https://127.0.0.1:{}/", server.port));
    assert_eq!(client.send(Request::get(&to)).await.unwrap().version(), Version::Http11);
}

#[tokio::test]
async fn a_stream_goes_up_and_comes_back() {
    let server = Server::each(echo).await;
    let (mut sender, body) = RequestBody::stream(None);
    let request = Request::post(&server.to).body(body);
    let (response, ()) = tokio::join!(server.client.send(request), async {
        for _ in 0..100 {
            sender.send(vec![0; 10_000]).await.unwrap();
        }
        sender.finish().await.unwrap();
    });
    let body = response.unwrap().bytes(1000).await.unwrap();
    assert!(body.ends_with(b"None 1000000"), "{}", String::from_utf8_lossy(&body));
}

#[tokio::test]
async fn a_stream_that_is_given_up_is_never_complete() {
    let (saw, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::each(move |(request, answer): Exchange| {
        let saw = saw.clone();
        async move {
            let mut body = request.into_body();
            let error = loop {
                match body.data().await {
                    Some(Ok(_)) => {}
                    Some(Err(_)) => break true,
                    None => break false,
                }
            };
            saw.send(error).unwrap();
            drop(answer);
        }
    })
    .await;
    let (mut sender, body) = RequestBody::stream(None);
    let request = Request::post(&server.to).body(body);
    let (response, ()) = tokio::join!(server.client.send(request), async {
        sender.send(b"abc".to_vec()).await.unwrap();
        drop(sender);
    });
    let error = response.unwrap_err();
    assert_eq!((error.kind(), error.dispatch()), (&HttpErrorKind::RequestBody, Dispatch::Lost));
    assert!(seen.recv().await.unwrap(), "the server took it for complete");
}

#[tokio::test]
async fn hangs_before_the_response_and_in_it() {
    let server = Server::each(|(request, mut answer): Exchange| async move {
        let mut stream = None;
        if request.method() == hyper::Method::POST {
            stream = Some(answer.send_response(head(200), false).unwrap());
        }
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let limits = Limits { idle: SOON, ..PATIENT };
    let error = server.client.send(Request::get(&server.to).limits(limits)).await.unwrap_err();
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost));
    let mut response = server.client.send(Request::post(&server.to).limits(limits)).await.unwrap();
    let error = response.bytes(10).await.unwrap_err();
    assert_eq!((error.timeout(), error.dispatch()), (Some(Limit::Idle), Dispatch::Lost));
    assert_eq!(server.accepted(), 1, "a request that timed out costs the others nothing");
}

#[tokio::test]
async fn floods_the_head() {
    let server = Server::each(|(request, mut answer): Exchange| async move {
        let mut response = head(200);
        let headers = if request.method() == hyper::Method::GET { 600 } else { 20_000 };
        for n in 0..headers {
            let name = hyper::header::HeaderName::from_bytes(format!("x-{n}").as_bytes()).unwrap();
            response.headers_mut().insert(name, "y".repeat(100).parse().unwrap());
        }
        let _ = answer.send_response(response, true);
    })
    .await;
    let error = server.client.send(Request::get(&server.to)).await.unwrap_err();
    assert!(matches!(error.kind(), HttpErrorKind::HeadTooLarge { .. }), "{error:?}");
    assert_eq!(error.dispatch(), Dispatch::Answered);
    // So much is not even read: the whole connection is ended.
    let error = server.client.send(Request::post(&server.to)).await.unwrap_err();
    assert!(matches!(error.kind(), HttpErrorKind::NotHttp { .. }), "{error:?}");
    assert_eq!(error.dispatch(), Dispatch::Answered);
}

#[tokio::test]
async fn floods_the_body() {
    let server = Server::each(|(_, mut answer): Exchange| async move {
        let mut stream = answer.send_response(head(200), false).unwrap();
        stream.reserve_capacity(1 << 20);
        while let Some(Ok(n)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
            stream.send_data(vec![b'x'; n].into(), false).unwrap();
            stream.reserve_capacity(1 << 20);
        }
    })
    .await;
    let mut response = server.client.send(Request::get(&server.to)).await.unwrap();
    let error = response.bytes(3 << 20).await.unwrap_err();
    assert_eq!(error.kind(), &HttpErrorKind::BodyTooLarge { bytes_max: 3 << 20 });
    assert_eq!(error.dispatch(), Dispatch::Answered);
}

#[tokio::test]
async fn a_body_that_is_cut_off_or_shorter_than_announced() {
    for cut in [true, false] {
        let server = Server::each(move |(_, mut answer): Exchange| async move {
            let mut response = head(200);
            response.headers_mut().insert("content-length", "9".parse().unwrap());
            let mut stream = answer.send_response(response, false).unwrap();
            stream.send_data("half".into(), !cut).unwrap();
            if cut {
                tokio::time::sleep(SOON).await;
                stream.send_reset(h2::Reason::INTERNAL_ERROR);
            }
        })
        .await;
        let mut response = server.client.send(Request::get(&server.to)).await.unwrap();
        let error = response.bytes(100).await.unwrap_err();
        let ended = matches!(error.kind(), HttpErrorKind::StreamEnded { .. } | HttpErrorKind::NotHttp { .. });
        assert!(ended, "{error:?}");
        assert_eq!(error.dispatch(), Dispatch::Lost);
    }
}

#[tokio::test]
async fn what_a_server_says_when_it_ends_a_request() {
    for (reason, dispatch) in [
        (h2::Reason::REFUSED_STREAM, Dispatch::NotDispatched),
        (h2::Reason::INTERNAL_ERROR, Dispatch::Lost),
        (h2::Reason::CANCEL, Dispatch::Lost),
    ] {
        let server = Server::each(move |(_, mut answer): Exchange| async move {
            answer.send_reset(reason);
        })
        .await;
        let error = server.client.send(Request::get(&server.to)).await.unwrap_err();
        let refused = error.kind() == &HttpErrorKind::StreamRefused;
        assert_eq!(refused, dispatch == Dispatch::NotDispatched, "{error:?}");
        assert_eq!(error.dispatch(), dispatch, "{error:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_takes_its_requests_with_it() {
    for abruptly in [true, false] {
        let server = Server::start(move |mut wire| async move {
            let exchange = wire.accept().await;
            if !abruptly {
                wire.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM);
                let _ = std::future::poll_fn(|cx| wire.poll_closed(cx)).await;
            }
            drop((wire, exchange));
        })
        .await;
        let error = server.client.send(Request::get(&server.to)).await.unwrap_err();
        assert_eq!(error.dispatch(), Dispatch::Lost, "{error:?}");
        assert!(!matches!(error.kind(), HttpErrorKind::NotHttp { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closes_is_replaced() {
    let server = Server::start(|mut wire| async move {
        if let Some(Ok(exchange)) = wire.accept().await {
            tokio::spawn(echo(exchange));
        }
        wire.graceful_shutdown();
        while wire.accept().await.is_some() {}
    })
    .await;
    for n in 1..=3 {
        let mut response = server.client.send(Request::get(&server.to)).await.unwrap();
        response.bytes(1000).await.unwrap();
        assert_eq!(server.accepted(), n);
        // Time for this side to notice that the server has said goodbye.
        tokio::time::sleep(SOON).await;
    }
}

/// What is said of requests on a connection that is going away is never "not sent" if a server saw
/// them.
#[tokio::test]
async fn a_request_that_meets_a_goodbye_is_not_said_to_be_unsent_if_it_was_seen() {
    let (saw, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(move |mut wire| {
        let saw = saw.clone();
        async move {
            if let Some(Ok(exchange)) = wire.accept().await {
                saw.send(()).unwrap();
                tokio::spawn(echo(exchange));
            }
            wire.graceful_shutdown();
            while let Some(Ok(exchange)) = wire.accept().await {
                saw.send(()).unwrap();
                tokio::spawn(echo(exchange));
            }
        }
    })
    .await;
    let mut unsent = 0;
    let mut total = 0;
    for _ in 0..30 {
        total += 1;
        match server.client.send(Request::get(&server.to)).await {
            Ok(mut response) => drop(response.bytes(1000).await),
            Err(error) if error.dispatch() == Dispatch::NotDispatched => unsent += 1,
            Err(_) => {}
        }
    }
    let mut served = 0;
    while seen.try_recv().is_ok() {
        served += 1;
    }
    assert!(served + unsent <= total, "{served} were served, {unsent} of {total} were called unsent");
}
