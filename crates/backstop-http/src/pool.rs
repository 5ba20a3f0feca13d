//! Connections that are kept open for the next request to the same server.
//!
//! No task of its own: what is closed or too old is removed whenever somebody asks.

use crate::connection::{Connection, Http2};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a connection is kept without being used. Many servers and middleboxes drop theirs after
/// a minute.
const IDLE_MAX: Duration = Duration::from_secs(50);
/// How many connections are kept in all, if nothing else is said; the oldest go first.
pub(crate) const CONNECTIONS_MAX: usize = 32;
/// How many HTTP/1 connections are kept to one server, if nothing else is said.
pub(crate) const PER_SERVER_MAX: usize = 6;

/// The connections that are kept. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    kept: Arc<Mutex<Vec<Kept>>>,
    per_server_max: usize,
    connections_max: usize,
}

#[derive(Debug)]
struct Kept {
    place: String,
    since: Instant,
    connection: Connection,
}

impl Pool {
    /// A pool of so many connections to one server, and in all.
    pub(crate) fn new((per_server_max, connections_max): (usize, usize)) -> Self {
        Self { kept: Arc::default(), per_server_max, connections_max }
    }

    /// An empty pool of the same size.
    pub(crate) fn another(&self) -> Self {
        Self::new((self.per_server_max, self.connections_max))
    }

    /// A connection to this server that can be used at once.
    pub(crate) fn take(&self, place: &str) -> Option<Connection> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        prune(&mut kept);
        // The one that was used last is the least likely to be closed by the server.
        let at = kept.iter().rposition(|kept| kept.place == place)?;
        match &mut kept[at] {
            Kept { connection: Connection::Http2(shared), since, .. } => {
                *since = Instant::now();
                Some(Connection::Http2(Http2::clone(shared)))
            }
            Kept { .. } => Some(kept.remove(at).connection),
        }
    }

    /// Keeps a connection for the next request to this server.
    pub(crate) fn put(&self, place: &str, connection: Connection) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        prune(&mut kept);
        let same = |kept: &Kept| kept.place == place && kept.connection.is_http2() == connection.is_http2();
        // Clones of one HTTP/2 connection come back again and again: one is enough.
        let same_max = if connection.is_http2() { 1 } else { self.per_server_max };
        if kept.iter().filter(|kept| same(kept)).count() >= same_max {
            return;
        }
        if kept.len() >= self.connections_max {
            kept.remove(0);
        }
        kept.push(Kept { place: place.to_owned(), since: Instant::now(), connection });
    }
}

fn prune(kept: &mut Vec<Kept>) {
    kept.retain(|kept| kept.connection.is_open() && kept.since.elapsed() < IDLE_MAX);
}
