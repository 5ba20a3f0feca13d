//! The HTTP client of Backstop, and its small server ([`server`]). The client: HTTP/1.1 and HTTP/2,
//! plain or with TLS, bounded in time and in size.
//!
//! A request enters, a response leaves: its head as soon as it has arrived, its body as bytes up to
//! a limit or piece by piece. Request bodies are bytes or a stream. Every wait has a time limit
//! ([`Limits`]), everything that a server sends has a size limit.
//!
//! The three types that matter:
//!
//! - [`Address`]: a checked `http` or `https` address. Its path may be a secret, so it is shown
//!   only where a method says so.
//! - [`Client`]: sends requests and keeps connections open for the next one. Cheap to clone.
//! - [`HttpError`]: what went wrong, typed to the leaf, and how far the request got. Its
//!   [`dispatch`](HttpError::dispatch) says `NotDispatched` only if no byte of the request can have
//!   reached the server, so that whoever retries knows what a retry can harm.
//!
//! ```
//! use backstop_http::{Address, Client, Request};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new();
//! let address = Address::parse("https://hooks.example.com/alerts")?;
//! let request = Request::post(&address)
//!     .header("content-type", "application/json")?
//!     .secret_header("authorization", "Bearer …")?
//!     .body(br#"{"text":"hello"}"#.to_vec());
//! let mut response = client.send(request).await?;
//! if !response.is_success() {
//!     let start = response.body_start(4096).await;
//!     println!("{}: {}", response.status(), String::from_utf8_lossy(&start));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! It must not retry, follow a redirect (a 3xx is a response like any other), decompress, keep
//! cookies, choose a proxy by itself ([`Proxies`] are given to it), choose what is sent, or print.
//! It needs a tokio runtime with I/O and time; a current-thread runtime will do. Names are looked
//! up on threads of the crate's own, so that a lookup that hangs never delays the end of a runtime
//! or of the process.
//!
//! Certificates are checked against the platform's roots, which are read when the first `https`
//! request is sent (`SSL_CERT_FILE` and `SSL_CERT_DIR` replace them, as with other programs), or
//! against roots given to the [`ClientBuilder`].

mod address;
mod body;
mod client;
mod connect;
mod connection;
mod error;
mod failure;
mod headers;
mod limits;
mod pool;
mod proxy;
mod request;
mod resolve;
mod response;
pub mod server;
mod tls;

pub use address::{Address, AddressError};
pub use body::{BodyClosed, BodySender, Chunk, RequestBody};
pub use client::{Client, ClientBuilder};
pub use error::{CertificateProblem, HttpError, HttpErrorKind, ProxyProblem};
pub use headers::{HeaderError, Headers};
pub use limits::{Limit, Limits};
pub use proxy::Proxies;
pub use request::{Method, MethodError, Request};
pub use response::{Response, Version};
pub use tls::{Roots, RootsError};
