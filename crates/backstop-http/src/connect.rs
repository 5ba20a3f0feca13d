//! Making a connection: look the name up (the server's, or the proxy's on the way to it), connect
//! to the first of its addresses that answers, TLS.

use crate::connection::Connection;
use crate::error::ProxyProblem;
use crate::failure::{http_kind, io_kind};
use crate::proxy::Proxy;
use crate::resolve::Resolver;
use crate::tls::Tls;
use crate::{Address, HttpErrorKind};
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// How long an address has before the next one is tried beside it (RFC 8305 recommends 250 ms).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// Makes a connection to the server of an address, or to the proxy that requests to it are sent to.
pub(crate) async fn connect(
    address: &Address,
    proxy: Option<&Proxy>,
    resolver: &Resolver,
    tls: &Tls,
) -> Result<Connection, HttpErrorKind> {
    let mut tcp = match proxy {
        None => connect_tcp(address, resolver).await?,
        Some(proxy) => {
            let connected = connect_tcp(&proxy.address, resolver).await;
            connected.map_err(|kind| proxy.problem(ProxyProblem::Connect(Box::new(kind))))?
        }
    };
    if let Some(proxy) = proxy.filter(|_| address.is_https()) {
        proxy.tunnel(&mut tcp, address).await?;
    }
    let connection = if address.is_https() {
        match tls.handshake(address.host(), tcp).await? {
            (stream, true) => Connection::http2(stream).await,
            (stream, false) => Connection::http1(stream).await,
        }
    } else {
        Connection::http1(tcp).await
    };
    connection.map_err(|error| http_kind(&error))
}

async fn connect_tcp(address: &Address, resolver: &Resolver) -> Result<TcpStream, HttpErrorKind> {
    let addresses = resolver.resolve(address.host(), address.port()).await?;
    let tcp = first_to_connect(addresses).await.map_err(|error| io_kind(&error))?;
    // A request is written at once; waiting for more to send with it only delays it.
    let _ = tcp.set_nodelay(true);
    Ok(tcp)
}

/// Tries the addresses in order, each a moment after the one before it or as soon as that has
/// failed. All other tries end with the first that succeeds. If none does, the error of the first
/// one is given: the system's preference.
async fn first_to_connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, Error> {
    let mut tries = JoinSet::new();
    let mut first_error: Option<(usize, Error)> = None;
    let mut waiting = addresses.into_iter().enumerate();
    loop {
        if let Some((n, address)) = waiting.next() {
            tries.spawn(async move { (n, TcpStream::connect(address).await) });
        }
        let ended = if waiting.len() > 0 {
            tokio::time::timeout(NEXT_ADDRESS_AFTER, tries.join_next()).await.unwrap_or(None)
        } else {
            match tries.join_next().await {
                Some(ended) => Some(ended),
                None => {
                    let none = || Error::new(ErrorKind::HostUnreachable, "there is no address to try");
                    return Err(first_error.map_or_else(none, |(_, error)| error));
                }
            }
        };
        match ended {
            Some(Ok((_, Ok(stream)))) => return Ok(stream),
            Some(Ok((n, Err(error)))) => {
                if first_error.as_ref().is_none_or(|(first, _)| n < *first) {
                    first_error = Some((n, error));
                }
            }
            Some(Err(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A port on which nothing listens.
    fn closed_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn an_address_that_refuses_does_not_hide_one_that_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        let bad = SocketAddr::from(([127, 0, 0, 1], closed_port()));
        let stream = first_to_connect(vec![bad, good]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
    }

    #[tokio::test]
    async fn where_none_answers_the_first_error_counts() {
        let bad = SocketAddr::from(([127, 0, 0, 1], closed_port()));
        let error = first_to_connect(vec![bad, bad]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(first_to_connect(Vec::new()).await.unwrap_err().kind(), ErrorKind::HostUnreachable);
    }
}
