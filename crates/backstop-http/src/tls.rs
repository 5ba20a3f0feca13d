//! TLS: which certificates are trusted, the handshake, and what its failures mean.

use crate::HttpErrorKind;
use crate::error::CertificateProblem;
use crate::failure::io_kind;
use crate::resolve::on_a_thread;
use backstop_core::SafeText;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore};

/// What a server may choose to speak, best first.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The root certificates that a server's certificate is checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct Roots {
    platform: bool,
    given: Vec<CertificateDer<'static>>,
}

impl std::fmt::Debug for Roots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Roots(platform: {}, given: {})", self.platform, self.given.len())
    }
}

/// Root certificates that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no certificate in PEM form was found")]
pub struct RootsError;

impl Roots {
    /// The platform's.
    pub fn platform() -> Self {
        Self { platform: true, given: Vec::new() }
    }

    /// Only those of a PEM file.
    pub fn only(pem: &[u8]) -> Result<Self, RootsError> {
        Ok(Self { platform: false, given: read_pem(pem)? })
    }

    /// The platform's, and those of a PEM file.
    pub fn platform_and(pem: &[u8]) -> Result<Self, RootsError> {
        Ok(Self { platform: true, given: read_pem(pem)? })
    }

    fn load(&self) -> Result<RootCertStore, HttpErrorKind> {
        let mut store = RootCertStore::empty();
        let mut detail = String::new();
        if self.platform {
            let found = rustls_native_certs::load_native_certs();
            detail = found.errors.first().map(ToString::to_string).unwrap_or_default();
            store.add_parsable_certificates(found.certs);
        }
        store.add_parsable_certificates(self.given.iter().cloned());
        if store.is_empty() {
            return Err(HttpErrorKind::NoRoots { detail: SafeText::new(detail) });
        }
        Ok(store)
    }
}

fn read_pem(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, RootsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    certificates.ok().filter(|all| !all.is_empty()).ok_or(RootsError)
}

/// Makes TLS connections. Roots are read when the first one is made.
#[derive(Debug)]
pub(crate) struct Tls {
    roots: Roots,
    http2: bool,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    pub(crate) fn new(roots: Roots, http2: bool) -> Self {
        Self { roots, http2, config: OnceCell::new() }
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, HttpErrorKind> {
        let load = || async {
            let roots = self.roots.clone();
            // Some hundred files, or a system service: too long for the thread that drives
            // connections.
            let store = on_a_thread("http-roots", move || roots.load()).await??;
            let provider = Arc::new(ring::default_provider());
            let versions =
                ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let versions = versions.map_err(|error| tls_kind(&error))?;
            let mut config = versions.with_root_certificates(store).with_no_client_auth();
            let protocols: &[&[u8]] = if self.http2 { &[HTTP2, HTTP1] } else { &[HTTP1] };
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Ok(Arc::new(config))
        };
        self.config.get_or_try_init(load).await.cloned()
    }

    /// The handshake. Also says whether the server chose HTTP/2.
    pub(crate) async fn handshake(
        &self,
        host: &str,
        tcp: TcpStream,
    ) -> Result<(TlsStream<TcpStream>, bool), HttpErrorKind> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| HttpErrorKind::Tls {
            detail: SafeText::new("no certificate can be for this host"),
        })?;
        let connector = tokio_rustls::TlsConnector::from(self.config().await?);
        let stream = connector.connect(name, tcp).await.map_err(|error| handshake_failed(&error))?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        Ok((stream, http2))
    }
}

fn handshake_failed(error: &std::io::Error) -> HttpErrorKind {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => tls_kind(error),
        None => io_kind(error),
    }
}

/// What an error of TLS is.
pub(crate) fn tls_kind(error: &Error) -> HttpErrorKind {
    let problem = match error {
        Error::InvalidCertificate(problem) => problem,
        Error::InvalidMessage(_) => return HttpErrorKind::NotTls,
        other => return HttpErrorKind::Tls { detail: SafeText::new(other.to_string()) },
    };
    HttpErrorKind::Certificate(match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => CertificateProblem::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateProblem::NotYetValid
        }
        CertificateError::UnknownIssuer => CertificateProblem::UnknownIssuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateProblem::WrongName
        }
        CertificateError::BadSignature => CertificateProblem::BadSignature,
        CertificateError::Revoked => CertificateProblem::Revoked,
        other => CertificateProblem::Other(SafeText::new(other.to_string())),
    })
}
