//! Drives one attempt machine: attempts, classifies, records, decides, waits, and attempts again.
//!
//! Retry an async fn, in five lines:
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
//! The three types that matter: [`Engine`], [`Operation`] (anything that can be attempted; an async closure is one) and
//! [`Finished`] (how it came out). An ending is a result: whatever happened, it says what was done and why no more.
//!
//! It must not know what an operation does, choose a policy or print. Every failure is recorded before anything is done
//! about it, and every wait ends when it is [`Cancel`]led. Time is tokio's, so a test can hold or turn it.

mod admission;
mod batch;
mod cancel;
mod engine;
mod operation;
mod random;
mod recent;

pub use admission::{Admission, AdmissionFuture};
pub use cancel::Cancel;
pub use engine::{Ending, Engine, Finished};
pub use operation::{Attempt, Failed, Operation};
