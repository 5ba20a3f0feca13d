//! Gates: the checks that a phase must pass.
//!
//! [`detect`] reads a folder and says which gates it has; it runs nothing. [`run`] runs gates in
//! order and says of each what came of it ([`Checked`]), as a fault where it failed. [`judge`] lays
//! that beside what an agent claims.
//!
//! A test that failed may be run again unchanged, where the gate says so (`flaky`): only the failed
//! tests, and only where their names can be given to the runner without a shell. What passes then
//! has passed, and the tests are named as flaky. A narrowed run counts only if its output shows
//! that the tests did run.
//!
//! It must not decide whether a phase is tried again, touch git, or change the work: a gate's fix
//! is named, never run. The types that matter are [`Gate`], [`GateRun`], [`Checked`] and
//! [`Judgement`].

mod again;
mod checked;
mod definition;
mod detect;
mod error;
mod failures;
mod fault;
mod judge;
mod missing;
mod narrow;
mod once;
mod run;

pub use crate::{Claim, CommandLine, Log};
pub use checked::Checked;
pub use definition::{Gate, GateKind, Origin, Passes};
pub use detect::{Detected, FILE_BYTES_MAX, Stack, detect, package_scripts};
pub use error::GateError;
pub use failures::{Compared, compare};
pub use judge::{Judgement, judge};
pub use once::StartedGate;
pub use run::{GateRun, IDLE_MAX, WALL_MAX, run};
