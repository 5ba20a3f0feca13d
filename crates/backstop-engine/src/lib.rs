//! Drives one attempt machine: attempt, classify, record, decide, wait, and attempt again.
//!
//! An async function with retries, in five lines:
//!
//! ```
//! use backstop_core::{Signal, profile};
//! use backstop_engine::Engine;
//!
//! # async fn fetch(_url: &str) -> Result<String, std::io::Error> { Ok("hello".to_owned()) }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # runtime.block_on(async {
//! let engine = Engine::new(profile("request").expect("a built-in profile"));
//! let finished = engine.run("GET /v1/items", |_| fetch("http://localhost/v1/items")).await;
//! match finished.result {
//!     Ok(answer) => println!("{answer}, on attempt {}", finished.attempts),
//!     Err(ending) => println!("{}: {}", ending.fault.reason, ending.decision.why),
//! }
//! # });
//! ```
//!
//! The main types are [`Engine`], [`Operation`] (anything that can be attempted, e.g. an async
//! closure) and [`Finished`] (its result). An operation that ends without success is a result too:
//! it says what was done, and why there was no further attempt.
//!
//! This crate must not know what an operation does, choose a policy or print. Every failure is
//! recorded before anything is done about it, and every wait ends when a [`Cancel`] fires. Time is
//! tokio's, so that tests can pause and advance it.

mod admission;
mod batch;
mod cancel;
mod engine;
mod operation;
mod random;
mod recent;

pub use admission::{Admission, AdmissionFuture, GuardFuture};
pub use cancel::Cancel;
pub use engine::{Ending, Engine, Finished};
pub use operation::{Attempt, Failed, Operation};
