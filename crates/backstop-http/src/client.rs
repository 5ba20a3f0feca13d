//! The client: takes a connection or makes one, sends a request, waits for the head of its
//! response.

use crate::body::{Outgoing, Upload};
use crate::connect::connect;
use crate::connection::{Connection, SendFailed};
use crate::failure::{head_is_too_large, head_too_large, http_kind};
use crate::headers::remove_hop_by_hop;
use crate::limits::{Deadlines, Limit, Limits};
use crate::pool::{CONNECTIONS_MAX, PER_SERVER_MAX, Pool};
use crate::proxy::{Proxies, Proxy};
use crate::request::Request;
use crate::resolve::Resolver;
use crate::response::{Origin, Response};
use crate::tls::{Roots, Tls};
use crate::{Address, HeaderError, Headers, HttpError, HttpErrorKind};
use backstop_core::{Dispatch, SafeText};
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{HeaderMap, StatusCode};
use std::pin::pin;
use std::sync::Arc;

/// Sends requests. Clones share connections, limits and root certificates.
#[derive(Debug, Clone)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    user_agent: HeaderValue,
    resolver: Resolver,
    proxies: Proxies,
    tls: Arc<Tls>,
    pool: Pool,
}

/// Settings of a client that is still to be made.
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    limits: Limits,
    roots: Roots,
    http2: bool,
    proxies: Proxies,
    kept: (usize, usize),
    user_agent: HeaderValue,
}

impl ClientBuilder {
    /// With these time limits for requests that have none of their own.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With these root certificates instead of the platform's.
    pub fn roots(mut self, roots: Roots) -> Self {
        self.roots = roots;
        self
    }

    /// Whether to offer HTTP/2 to servers with TLS. It is offered if nothing is said.
    pub fn http2(mut self, offered: bool) -> Self {
        self.http2 = offered;
        self
    }

    /// Through these proxies. Without them, every server is connected to directly.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Keeps so many connections open for the next request, to one server and in all; 6 and 32 if
    /// nothing is said.
    pub fn keep_connections(mut self, to_one_server: usize, in_all: usize) -> Self {
        self.kept = (to_one_server, in_all);
        self
    }

    /// With this `user-agent` for requests that have none of their own; `backstop/VERSION` if
    /// nothing is said.
    pub fn user_agent(mut self, text: &str) -> Result<Self, HeaderError> {
        let name = || SafeText::new(USER_AGENT.as_str());
        self.user_agent = HeaderValue::from_str(text).map_err(|_| HeaderError::Value { name: name() })?;
        Ok(self)
    }

    /// The client. Nothing is read or connected to yet.
    pub fn build(self) -> Client {
        Client(Arc::new(Shared {
            limits: self.limits,
            user_agent: self.user_agent,
            resolver: Resolver::new(),
            proxies: self.proxies,
            tls: Arc::new(Tls::new(self.roots, self.http2)),
            pool: Pool::new(self.kept),
        }))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client with the platform's root certificates and the default limits.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Settings for a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            limits: Limits::default(),
            roots: Roots::platform(),
            http2: true,
            proxies: Proxies::none(),
            kept: (PER_SERVER_MAX, CONNECTIONS_MAX),
            user_agent: HeaderValue::from_static(concat!("backstop/", env!("CARGO_PKG_VERSION"))),
        }
    }

    /// The same client with connections of its own, for a thread of its own: a connection is served
    /// by the runtime that made it.
    pub fn with_own_connections(&self) -> Self {
        let shared = &*self.0;
        Self(Arc::new(Shared {
            limits: shared.limits,
            user_agent: shared.user_agent.clone(),
            resolver: shared.resolver.clone(),
            proxies: shared.proxies.clone(),
            tls: Arc::clone(&shared.tls),
            pool: shared.pool.another(),
        }))
    }

    /// Sends a request, once, and gives the response as soon as its head has arrived. Any status is
    /// a response; an error means that there is none.
    ///
    /// Dropping the future ends the request. Its body may then have been sent in part.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let shared = &*self.0;
        let deadlines = Deadlines::start(request.limits.unwrap_or(shared.limits));
        let place = request.address.place();
        let not_sent = |kind: HttpErrorKind| HttpError::new(place.clone(), kind, Dispatch::NotDispatched);
        let proxy = shared.proxies.proxy_of(&request.address).map_err(not_sent)?;
        let kept = self.kept_connection(&place).await;
        let reused = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let connecting = connect(&request.address, proxy, &shared.resolver, &shared.tls);
                let connected = deadlines.wait(Limit::Connect, connecting).await;
                connected.map_err(|expired| not_sent(expired.into()))?.map_err(not_sent)?
            }
        };
        // Others can send over an HTTP/2 connection while this request is under way.
        if let (false, Connection::Http2(shared_by_all)) = (reused, &connection) {
            shared.pool.put(&place, Connection::Http2(shared_by_all.clone()));
        }
        let (request, upload) = self.prepare(request, &connection, proxy).map_err(not_sent)?;
        deadlines.check().map_err(|expired| not_sent(expired.into()))?;
        match exchange(&mut connection, request, &upload, &deadlines).await {
            // Nobody asked for another protocol, and what follows is none that is known here.
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                let detail = SafeText::new("status 101 that was not asked for");
                Err(HttpError::new(place, HttpErrorKind::NotHttp { detail }, Dispatch::Answered))
            }
            Ok(response) if head_is_too_large(response.headers()) => {
                Err(HttpError::new(place, head_too_large(), Dispatch::Answered))
            }
            Ok(response) => {
                let pool = shared.pool.clone();
                Ok(Response::new(response, Origin { place, connection, upload, deadlines, pool }).await)
            }
            // A connection that was kept can end in any words: some servers say goodbye with a
            // whole response before they close.
            Err((HttpErrorKind::NotHttp { .. }, Dispatch::NotDispatched)) if reused => {
                Err(not_sent(HttpErrorKind::Closed))
            }
            Err((kind, dispatch)) => Err(HttpError::new(place, kind, dispatch)),
        }
    }

    /// A connection that is kept for this server and that the server has not closed.
    async fn kept_connection(&self, place: &str) -> Option<Connection> {
        loop {
            let kept = self.0.pool.take(place)?;
            // Whoever did not let the runtime work since the last request has not noticed yet what
            // has happened to the connection: the runtime looks after its sockets before it comes
            // back here.
            tokio::task::yield_now().await;
            if kept.is_open() {
                return Some(kept);
            }
        }
    }

    /// The request as this connection takes it.
    fn prepare(
        &self,
        request: Request,
        connection: &Connection,
        proxy: Option<&Proxy>,
    ) -> Result<(hyper::Request<Outgoing>, Arc<Upload>), HttpErrorKind> {
        let Request { method, address, headers: Headers(mut given), body, .. } = request;
        // Headers of a response may have been taken over as they were.
        remove_hop_by_hop(&mut given);
        let mut headers = HeaderMap::with_capacity(given.len() + 3);
        // HTTP/2 makes its own header of the host in the address.
        let target = if connection.is_http2() {
            format!("{}{}", address.place(), address.path_and_query())
        } else {
            headers.insert(HOST, host_header(&address)?);
            match proxy.filter(|_| !address.is_https()) {
                // The proxy has to be told where the request goes.
                Some(proxy) => {
                    if let Some(credential) = &proxy.credential {
                        headers.insert(PROXY_AUTHORIZATION, credential.clone());
                    }
                    format!("{}{}", address.place(), address.path_and_query())
                }
                None => address.path_and_query().to_owned(),
            }
        };
        headers.extend(given);
        if !headers.contains_key(USER_AGENT) {
            headers.insert(USER_AGENT, self.0.user_agent.clone());
        }
        let (body, upload) = body.into_outgoing();
        // Some servers ask for a length where a body is usual, even if there is none.
        if body.is_end_stream()
            && [hyper::Method::POST, hyper::Method::PUT, hyper::Method::PATCH].contains(&method.0)
        {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut request = hyper::Request::new(body);
        *request.method_mut() = method.0;
        *request.uri_mut() = target.parse().map_err(|_| unsendable("path"))?;
        *request.headers_mut() = headers;
        Ok((request, upload))
    }
}

fn host_header(address: &Address) -> Result<HeaderValue, HttpErrorKind> {
    HeaderValue::from_str(&address.authority()).map_err(|_| unsendable("host"))
}

/// An address was parsed, so that this does not happen; it is no reason to panic.
fn unsendable(part: &str) -> HttpErrorKind {
    HeaderError::Value { name: SafeText::new(part) }.into()
}

/// Sends a request over a connection and waits for the head of the response, or says what happened
/// and how far it got.
async fn exchange(
    connection: &mut Connection,
    request: hyper::Request<Outgoing>,
    upload: &Upload,
    deadlines: &Deadlines,
) -> Result<hyper::Response<hyper::body::Incoming>, (HttpErrorKind, Dispatch)> {
    let mut sending = pin!(connection.send(request));
    let result = loop {
        let pieces = upload.pieces();
        match deadlines.wait(Limit::Idle, &mut sending).await {
            Ok(result) => break result,
            // The server takes the request, or it is not the server's turn.
            Err(expired)
                if expired.limit == Limit::Idle
                    && (upload.pieces() != pieces || upload.waits_for_sender()) => {}
            // The connection may be writing at this moment, so that nobody can say that nothing was
            // sent.
            Err(expired) => return Err((expired.into(), Dispatch::Lost)),
        }
    };
    result.map_err(|SendFailed { error, unsent }| {
        let kind = if upload.failed() { HttpErrorKind::RequestBody } else { http_kind(&error) };
        let dispatch = match &kind {
            HttpErrorKind::StreamRefused => Dispatch::NotDispatched,
            _ if unsent => Dispatch::NotDispatched,
            HttpErrorKind::NotHttp { .. } | HttpErrorKind::HeadTooLarge { .. } => Dispatch::Answered,
            _ => Dispatch::Lost,
        };
        (kind, dispatch)
    })
}
