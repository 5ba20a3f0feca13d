//! Servers that do exactly what a test tells them, each on threads of its own.

use backstop_http::{Address, Client, Limits, Roots};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A response that is complete.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Long enough for whatever a busy machine does, so that only the limit under test can end a
/// request.
pub(crate) const PATIENT: Limits = Limits {
    connect: Duration::from_secs(60),
    idle: Duration::from_secs(60),
    total: Some(Duration::from_secs(60)),
};

/// A limit that is meant to be reached.
pub(crate) const SOON: Duration = Duration::from_millis(200);

pub(crate) fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

/// A client that trusts nobody and waits long.
pub(crate) fn patient_client() -> Client {
    Client::builder().limits(PATIENT).build()
}

/// A server that listens on loopback and hands each connection, with its number, to a thread.
pub(crate) struct Server {
    pub(crate) port: u16,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        Self::on("127.0.0.1:0", serve)
    }

    pub(crate) fn on(place: &str, serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(place).unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (count, serve) = (Arc::clone(&accepted), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let n = count.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream, n));
            }
        });
        Self { port, accepted }
    }

    /// Reads one request of each connection and answers with these bytes, then closes.
    pub(crate) fn answers(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut stream, _| {
            read_request(&mut stream);
            let _ = stream.write_all(&bytes);
        })
    }

    pub(crate) fn address(&self, path: &str) -> Address {
        address(&format!("http://127.0.0.1:{}{path}", self.port))
    }

    /// How many connections there were.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A request, head and body as they came; empty where the client hung up.
pub(crate) fn read_request(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
            };
            let complete = match header("content-length") {
                Some(length) => body.len() >= length.parse::<usize>().unwrap(),
                None if header("transfer-encoding").is_some() => body.ends_with("0\r\n\r\n"),
                None => true,
            };
            if complete {
                return text;
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&piece[..n]),
            _ => return text,
        }
    }
}

/// Closes a connection with a reset.
pub(crate) fn reset(stream: TcpStream) {
    let socket = socket2::SockRef::from(&stream);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// Holds a connection open until the client closes it.
pub(crate) fn hold(mut stream: impl Read) {
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return,
            Err(error) if error.kind() != ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}

/// An authority that issues certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for these hosts, changed by `change`, as a server uses it.
    pub(crate) fn server(
        &self,
        hosts: &[&str],
        alpn: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// A patient client that trusts this authority alone.
    pub(crate) fn client(&self) -> Client {
        Client::builder().limits(PATIENT).roots(self.roots()).build()
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::only(self.pem.as_bytes()).unwrap()
    }
}

/// The server's side of TLS, over a connection that was accepted.
pub(crate) type Tls = StreamOwned<ServerConnection, TcpStream>;

/// A server with TLS.
pub(crate) fn tls_server(
    config: Arc<ServerConfig>,
    serve: impl Fn(Tls, usize) + Send + Sync + 'static,
) -> Server {
    Server::start(move |stream, n| {
        let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        serve(StreamOwned::new(tls, stream), n);
    })
}

/// A port on which nothing listens.
pub(crate) fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A port that takes no further connection: its queue is full and nobody accepts.
#[cfg(target_os = "linux")]
pub(crate) fn full_queue() -> (socket2::Socket, Vec<TcpStream>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let place = socket.local_addr().unwrap().as_socket().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&place, SOON) {
        waiting.push(stream);
    }
    (socket, waiting)
}
