//! Work that blocks without a limit (looking a name up, reading root certificates), on threads of
//! our own.
//!
//! A runtime waits for its own blocking threads before it ends, so that one hanging lookup would
//! hold up the whole program; these threads are never waited for. How many there are at once is
//! bounded.

use crate::HttpErrorKind;
use backstop_core::SafeText;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::{Semaphore, oneshot};

/// How many names are looked up at once. More wait, within their time limit to connect.
const LOOKUPS_MAX: usize = 16;
/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 8;

/// Looks names up.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    slots: Arc<Semaphore>,
}

impl Resolver {
    pub(crate) fn new() -> Self {
        Self { slots: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }

    /// The addresses of a host, the preferred one first. A literal address is not looked up.
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, HttpErrorKind> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let host = host.to_owned();
        let looked_up = on_a_thread("http-lookup", move || {
            // Held until the lookup has really ended, not until nobody waits for it any more.
            let _slot = slot;
            (host.as_str(), port).to_socket_addrs().map(Vec::from_iter)
        })
        .await?;
        match looked_up {
            Ok(addresses) if addresses.is_empty() => {
                Err(HttpErrorKind::NameNotFound { detail: SafeText::new("it has no address") })
            }
            Ok(addresses) => Ok(interleaved(addresses)),
            Err(error) => Err(lookup_failed(&error)),
        }
    }
}

/// Runs `work` on a thread of its own and waits for its result. A caller that stops waiting leaves
/// the thread to end by itself.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HttpErrorKind> {
    let local = |detail: String| HttpErrorKind::Local { detail: SafeText::new(detail), errno: None };
    let (done, result) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _ = done.send(work());
    });
    thread.map_err(|error| local(format!("no thread could be started: {error}")))?;
    result.await.map_err(|_| local("a thread ended unexpectedly".to_owned()))
}

/// The standard library gives the resolver's message and no code.
fn lookup_failed(error: &std::io::Error) -> HttpErrorKind {
    let text = error.to_string();
    let detail = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    let lower = detail.to_ascii_lowercase();
    // EAI_AGAIN in the words of glibc and macOS, and of musl.
    let temporary = lower.contains("temporary failure") || lower.contains("try again");
    let detail = SafeText::new(detail);
    if temporary { HttpErrorKind::NameServer { detail } } else { HttpErrorKind::NameNotFound { detail } }
}

/// Alternates between the two families, beginning with the one that the system prefers, so that a
/// broken one delays the other only once.
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut out = Vec::new();
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    loop {
        let before = out.len();
        out.extend(preferred.next());
        out.extend(other.next());
        if out.len() == before || out.len() >= ADDRESSES_MAX {
            out.truncate(ADDRESSES_MAX);
            return out;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let v4 = |n: u8| SocketAddr::from(([127, 0, 0, n], 1));
        let v6 = |n: u16| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, n], 1));
        assert_eq!(interleaved(vec![v6(1), v6(2), v6(3), v4(1)]), [v6(1), v4(1), v6(2), v6(3)]);
        assert_eq!(interleaved(vec![v4(1), v6(1)]), [v4(1), v6(1)]);
        assert_eq!(interleaved((0..20).map(v4).collect()).len(), ADDRESSES_MAX);
        assert!(interleaved(Vec::new()).is_empty());
    }

    #[test]
    fn a_name_server_that_is_down_is_not_a_wrong_name() {
        for (text, temporary) in [
            ("failed to lookup address information: Temporary failure in name resolution", true),
            ("failed to lookup address information: Try again", true),
            ("failed to lookup address information: Name or service not known", false),
            ("failed to lookup address information: nodename nor servname provided, or not known", false),
        ] {
            let kind = lookup_failed(&std::io::Error::other(text));
            assert_eq!(matches!(kind, HttpErrorKind::NameServer { .. }), temporary, "{text}");
            assert!(!kind.to_string().contains("lookup address"), "{kind}");
        }
    }

    #[tokio::test]
    async fn literals_need_no_lookup() {
        let resolver = Resolver { slots: Arc::new(Semaphore::new(0)) };
        for host in ["127.0.0.1", "::1"] {
            assert_eq!(resolver.resolve(host, 80).await.unwrap().len(), 1);
        }
    }
}
