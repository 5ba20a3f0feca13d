//! The interface of an operation: anything that can be attempted, and how an attempt fails.

use crate::Cancel;
use backstop_core::{Dispatch, Experience, FallbackChoice, Fault, SafeText, Signal, Surface};
use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

/// One try of an operation.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The number of the attempt, counted from 1.
    pub number: u32,
    /// The time left until the deadline of all attempts together.
    pub left: Option<Duration>,
    /// Fires when the attempt is to be stopped.
    pub cancel: Cancel,
    /// After a request that was too large: the share of it to send now, in percent.
    pub keep_percent: Option<u8>,
    /// What to use instead of what was asked for, once that was decided: another model.
    pub fallback: Option<String>,
}

/// Anything that can be attempted: a command, a tool call, a request. An async closure that takes
/// an [`Attempt`] and returns a `Result` is an operation if its error converts into [`Failed`].
pub trait Operation: Send {
    /// The output of a successful attempt.
    type Output: Send;

    /// Attempts the operation once.
    fn attempt(&mut self, attempt: Attempt) -> impl Future<Output = Result<Self::Output, Failed>> + Send;

    /// Whether an attempt ends by itself soon after a cancellation or the deadline. If not, its
    /// future is dropped then.
    fn ends_itself(&self) -> bool {
        false
    }

    /// The exit code of the attempt that has just succeeded: not 0 where the code is an answer, as
    /// that of `grep` without a match.
    fn success_exit(&self) -> i64 {
        0
    }

    /// Why it is repeated only after a confirmation, if so: an attempt may have changed something.
    fn needs_confirmation(&self) -> Option<String> {
        None
    }

    /// Whether an attempt can be made with a smaller request ([`Attempt::keep_percent`]).
    fn is_compressible(&self) -> bool {
        true
    }

    /// How the last attempt differed from the first one, for the record of a recovery.
    fn recovery_detail(&self) -> Option<SafeText> {
        None
    }

    /// What can be used instead where nothing else helps, in this order.
    fn fallbacks(&self) -> Vec<FallbackChoice> {
        Vec::new()
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

/// The evidence of a failed attempt: a raw signal, or a fault where the operation classified it
/// itself.
#[derive(Debug, Clone)]
pub(crate) enum SignalOrFault {
    Signal(Box<Signal>),
    Fault(Box<Fault>),
}

/// A failed attempt.
#[derive(Debug, Clone)]
pub struct Failed {
    pub(crate) evidence: SignalOrFault,
    /// Whether the request was sent, and whether an answer came.
    pub dispatch: Dispatch,
    /// The exit code, if there was one.
    pub exit: Option<i64>,
    /// The name of the signal that ended the process, e.g. `SIGKILL`.
    pub signal: Option<String>,
    /// The end of the output.
    pub output: Option<SafeText>,
    /// Why the attempt cannot be repeated with the same input, if it cannot.
    pub unrepeatable: Option<Box<str>>,
    /// Whether the failure shows that the attempt changed nothing.
    pub nothing_done: bool,
    /// How often a layer below has retried already, if one did.
    pub retried_below: Option<u32>,
    /// What earlier runs learned about failures like this one.
    pub experience: Option<Experience>,
}

impl Failed {
    /// A failure that the operation classified itself.
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
            nothing_done: false,
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
