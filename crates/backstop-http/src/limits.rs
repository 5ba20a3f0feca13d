//! How long a request may take, and the one way to wait for something within that.

use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// How long a request may take. All times are real time, measured by tokio's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time until a new connection can be used: looking the name up, connecting, the
    /// TLS handshake.
    pub connect: Duration,
    /// The longest wait for the server to take more of the request, to send the head of its
    /// response, or to send the next piece of the body. The head has to arrive as a whole within
    /// this time once the request is sent.
    pub idle: Duration,
    /// The longest time for all of it, to the end of the response's body. `None` for streams that
    /// have no natural end.
    pub total: Option<Duration>,
}

impl Default for Limits {
    /// 10 s to connect, 30 s idle, 60 s in total.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Some(Duration::from_secs(60)),
        }
    }
}

/// Which of the [`Limits`] ended a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// [`Limits::connect`].
    Connect,
    /// [`Limits::idle`].
    Idle,
    /// [`Limits::total`].
    Total,
}

/// A wait that was ended by a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expired {
    pub(crate) limit: Limit,
    pub(crate) after: Duration,
}

/// The limits of one request, and when its total is used up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    limits: Limits,
    end: Option<Instant>,
}

impl Deadlines {
    /// Begins to count.
    pub(crate) fn start(limits: Limits) -> Self {
        // A limit that cannot be represented is further away than any clock goes.
        let end = limits.total.and_then(|total| Instant::now().checked_add(total));
        Self { limits, end }
    }

    /// Whether there is any time left.
    pub(crate) fn check(&self) -> Result<(), Expired> {
        let over = self.end.is_some_and(|end| end <= Instant::now());
        if over { Err(self.expired(Limit::Total)) } else { Ok(()) }
    }

    /// Waits for `future`, but no longer than `limit` and the total allow.
    pub(crate) async fn wait<F: Future>(&self, limit: Limit, future: F) -> Result<F::Output, Expired> {
        // A timeout asks the future first: a server that always has something ready would never be
        // stopped by it.
        self.check()?;
        let own = match limit {
            Limit::Connect => Some(self.limits.connect),
            Limit::Idle => Some(self.limits.idle),
            Limit::Total => None,
        };
        let own_end = own.and_then(|own| Instant::now().checked_add(own));
        let (end, expired) = match (own_end, self.end) {
            (Some(own_end), Some(end)) if own_end < end => (own_end, self.expired(limit)),
            (_, Some(end)) => (end, self.expired(Limit::Total)),
            (Some(own_end), None) => (own_end, self.expired(limit)),
            (None, None) => return Ok(future.await),
        };
        tokio::time::timeout_at(end, future).await.map_err(|_| expired)
    }

    fn expired(&self, limit: Limit) -> Expired {
        let after = match limit {
            Limit::Connect => self.limits.connect,
            Limit::Idle => self.limits.idle,
            Limit::Total => self.limits.total.unwrap_or_default(),
        };
        Expired { limit, after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(idle: u64, total: Option<u64>) -> Limits {
        Limits {
            connect: Duration::from_secs(1),
            idle: Duration::from_secs(idle),
            total: total.map(Duration::from_secs),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_shorter_limit_ends_a_wait() {
        for (limits, want) in [
            (limits(2, Some(5)), Limit::Idle),
            (limits(5, Some(2)), Limit::Total),
            (limits(2, None), Limit::Idle),
            (limits(u64::MAX, Some(2)), Limit::Total),
        ] {
            let deadlines = Deadlines::start(limits);
            let expired = deadlines.wait(Limit::Idle, std::future::pending::<()>()).await.unwrap_err();
            assert_eq!((expired.limit, expired.after), (want, Duration::from_secs(2)));
        }
        let deadlines = Deadlines::start(limits(u64::MAX, None));
        assert_eq!(deadlines.wait(Limit::Idle, async { 7 }).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_ends_a_server_that_always_has_more() {
        let deadlines = Deadlines::start(limits(60, Some(3)));
        let mut pieces = 0;
        let expired = loop {
            match deadlines.wait(Limit::Idle, std::future::ready(())).await {
                Ok(()) => pieces += 1,
                Err(expired) => break expired,
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        };
        assert_eq!((pieces, expired.limit), (3, Limit::Total));
    }
}
