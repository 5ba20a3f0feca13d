//! MCP tools that do not fail silently: the catalogue of what servers offer, a call with its checks
//! and retries, many calls (batch, chain), and the gateway that puts all servers behind one.
//!
//! Settings enter, results and failures with their next step leave. The three types that matter:
//!
//! - [`Upstream`]: one MCP server. It is started when it is first needed, restarted after a crash,
//!   stopped when nobody uses it, and ended with all that it started.
//! - [`Catalogue`]: the tools of all upstreams under the names that callers use, kept on disk so
//!   that they can be listed before a server has started.
//! - [`Toolbox`]: makes calls. A call is checked before it is sent, attempted under the profile
//!   `tool` by the runtime, and ends as a [`CallOutcome`]: the server's own result, unchanged, or a
//!   [`CallFailure`] that says what failed, with which parameters, and what to do.
//!
//! Messages are kept as the JSON text that arrived wherever they only pass through, so that fields
//! which nobody here knows reach the other side. That is why this crate has its own small JSON-RPC
//! layer: typed models of MCP drop unknown fields and replace progress tokens.
//!
//! It must not print, read the environment or a clock on the wall, retry by itself, or keep limits
//! of its own: attempts, guards, budgets and the journal are the runtime's. It must not start a
//! program or contact an address that the settings do not name and trust. It must not believe a
//! server: names, descriptions, schemas and sizes come from outside.

mod arguments;
mod batch;
mod call;
mod catalogue;
mod chain;
mod connection;
mod fault;
mod gateway;
#[cfg(test)]
mod growth;
mod handshake;
mod import;
mod jsonrpc;
mod known;
mod leftovers;
mod log_level;
mod moving;
mod names;
mod present;
mod protocol;
mod result;
mod result_cache;
mod suggest;
mod toolbox;
mod transport;
mod trust;
mod upstream;

pub use batch::{BatchError, BatchItem, BatchReport, ITEMS_MAX, ItemResult, run_batch};
pub use call::{CALL_FLAG, CallFailure, CallOutcome, CallRequest, CallSuccess, CallWordsError, ConfirmError};
pub use catalogue::{CacheState, Catalogue, ServerListing, Tool, ToolChange};
pub use chain::{Chain, ChainError, ChainReport, FailedStep, StepResult, run_chain};
pub use gateway::{Gateway, GatewaySettings, HttpAccess};
pub use import::{Client, Found, ImportError, ImportPlaces, Imported, imports, is_path};
pub use known::fault_warning;
pub use moving::{MoveError, ServerMove};
pub use present::UnknownServer;
pub use toolbox::{SetupProblem, Toolbox, ToolboxError};
pub use trust::{TrustError, give_trust, revoke_trust, show_trust};
pub use upstream::{Upstream, UpstreamState};
