//! Anything that can be attempted.

use crate::Cancel;
use backstop_core::{Dispatch, Experience, Fault, SafeText, Signal, Surface};
use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

/// One try of an operation.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its number, counted from 1.
    pub number: u32,
    /// How much time is left for all attempts together.
    pub left: Option<Duration>,
    /// Asks for the end of it.
    pub cancel: Cancel,
    /// How much of the request should remain, in percent, where it was too large.
    pub keep_percent: Option<u8>,
}

/// Something that can be attempted: a command, a tool call, a request. An async closure that takes an [`Attempt`] and gives
/// a `Result` is one, if its error can be made into a [`Failed`].
pub trait Operation: Send {
    /// What it gives when it succeeds.
    type Output: Send;

    /// Try it once.
    fn attempt(&mut self, attempt: Attempt) -> impl Future<Output = Result<Self::Output, Failed>> + Send;

    /// Whether an attempt ends by itself soon after it was cancelled or its time is up. Where it does not, it is dropped.
    fn ends_itself(&self) -> bool {
        false
    }
}

impl<F, Fut, T, E> Operation for F
where
    F: FnMut(Attempt) -> Fut + Send,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Send,
    E: Into<Failed>,
{
    type Output = T;

    async fn attempt(&mut self, attempt: Attempt) -> Result<T, Failed> {
        self(attempt).await.map_err(Into::into)
    }
}

/// What was seen of a failed attempt: raw, or classified by somebody who saw more.
#[derive(Debug, Clone)]
pub(crate) enum SignalOrFault {
    Signal(Box<Signal>),
    Fault(Box<Fault>),
}

/// An attempt that failed.
#[derive(Debug, Clone)]
pub struct Failed {
    pub(crate) evidence: SignalOrFault,
    /// How far it got.
    pub dispatch: Dispatch,
    /// The exit code, where there is one.
    pub exit: Option<i64>,
    /// The signal that ended it, by name.
    pub signal: Option<String>,
    /// The end of what it wrote.
    pub output: Option<SafeText>,
    /// Why it cannot be repeated as it was, where it cannot.
    pub unrepeatable: Option<Box<str>>,
    /// How often a layer below has tried already, where one did.
    pub retried_below: Option<u32>,
    /// What is known of this trouble.
    pub experience: Option<Experience>,
}

impl Failed {
    /// A failure that is classified already.
    pub fn classified(fault: Fault, dispatch: Dispatch) -> Self {
        Self::of(SignalOrFault::Fault(Box::new(fault)), dispatch)
    }

    fn of(evidence: SignalOrFault, dispatch: Dispatch) -> Self {
        Self {
            evidence,
            dispatch,
            exit: None,
            signal: None,
            output: None,
            unrepeatable: None,
            retried_below: None,
            experience: None,
        }
    }
}

impl From<Signal> for Failed {
    fn from(signal: Signal) -> Self {
        let dispatch = signal.dispatch;
        Self { exit: signal.exit, ..Self::of(SignalOrFault::Signal(Box::new(signal)), dispatch) }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::classified(fault, Dispatch::Answered)
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        let (errno, dispatch) = match error.kind() {
            ErrorKind::ConnectionReset => (Some("ECONNRESET"), Dispatch::Lost),
            ErrorKind::ConnectionAborted => (Some("ECONNABORTED"), Dispatch::Lost),
            ErrorKind::BrokenPipe => (Some("EPIPE"), Dispatch::Lost),
            ErrorKind::TimedOut => (Some("ETIMEDOUT"), Dispatch::Lost),
            ErrorKind::UnexpectedEof => (Some("ECONNRESET"), Dispatch::Lost),
            ErrorKind::ConnectionRefused => (Some("ECONNREFUSED"), Dispatch::NotDispatched),
            ErrorKind::HostUnreachable => (Some("EHOSTUNREACH"), Dispatch::NotDispatched),
            ErrorKind::NetworkUnreachable => (Some("ENETUNREACH"), Dispatch::NotDispatched),
            ErrorKind::PermissionDenied => (Some("EACCES"), Dispatch::NotDispatched),
            ErrorKind::StorageFull => (Some("ENOSPC"), Dispatch::Answered),
            _ => (None, Dispatch::Answered),
        };
        Self::from(Signal {
            surface: Surface::Response,
            dispatch,
            errno: errno.map(str::to_owned),
            stderr: error.to_string().into_bytes(),
            ..Signal::default()
        })
    }
}
