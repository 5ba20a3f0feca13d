//! Waits: how long a server, a program or an agent asks to wait, in whatever words it does.
//!
//! One reader for headers ([`Hints`]), bodies, what agents print and the output of commands
//! ([`in_output`]). Pure: the time and the local zone are arguments ([`Clock`]). Values from
//! outside are held within bounds, and a value that cannot be read is no wait at all. What is
//! structured (a header, a field) beats prose. What to do with a wait is the guard's and the
//! policy's business.

mod body;
mod clock;
mod fields;
mod hints;
mod moment;
mod output;
mod prose;
mod scanner;
mod span;
mod window;

pub use clock::{Clock, Zone};
pub use hints::{Hints, Window};
pub use output::{OutputLine, in_lines, in_output};
pub use window::LimitWindow;

use crate::Timestamp;
use scanner::Scanner;
use std::time::Duration;

/// The longest wait that is believed: a year. What asks for more is no wait but an ending.
const WAIT_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// A wait that was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// How long from now. Zero where the time has come already.
    pub after: Duration,
    /// Whether it was a header or a field, and not a sentence.
    pub is_structured: bool,
}

impl Wait {
    /// The time at which it ends.
    pub fn until(&self, now: Timestamp) -> Timestamp {
        now.after(self.after)
    }
}

/// The point in time that a whole text names: `22:30`, `tomorrow 7am`, `2026-11-20T08:00`. A time
/// of day without a date is the next one; what passed a few minutes ago means now.
pub fn moment(text: &str, clock: &Clock) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(at) = Timestamp::parse_rfc3339(text) {
        return Some(at);
    }
    let mut scan = Scanner::new(text);
    let found = moment::read(&mut scan, clock)?;
    let rest = scan.rest().trim();
    (rest.is_empty() || Zone::named(rest.trim_matches(['(', ')'])).is_some()).then_some(found)
}

/// A wait in seconds, if it is a number and not negative; longer than a year is a year.
fn bounded(seconds: f64) -> Option<Duration> {
    (seconds.is_finite() && seconds >= 0.0)
        .then(|| Duration::from_secs_f64(seconds.min(WAIT_MAX.as_secs_f64())))
}

/// How long from now until a point in time.
fn until(at: Timestamp, clock: &Clock) -> Option<Duration> {
    Some(at.since(clock.now?).min(WAIT_MAX))
}

fn longer(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.max(b)
}
