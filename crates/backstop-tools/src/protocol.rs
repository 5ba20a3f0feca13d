//! The words of MCP, in both of its eras: with `initialize` (up to 2025-11-25) and with everything
//! in each request (2026-07-28).

use crate::jsonrpc;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The newest version that begins with `initialize`.
pub(crate) const LEGACY_VERSION: &str = "2025-11-25";
/// The version in which each request says everything.
pub(crate) const MODERN_VERSION: &str = "2026-07-28";
/// The versions that begin with `initialize`, newest first.
pub(crate) const LEGACY_VERSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A version that the server does not have.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// What the names of MCP itself in `_meta` begin with.
pub(crate) const META_PREFIX: &str = "io.modelcontextprotocol/";
pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Where a gateway names itself and those that its calls come through.
pub(crate) const META_GATEWAYS: &str = "backstop/gateways";
/// What is said where a list of tools changed.
pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The request that a notification of a change belongs to.
pub(crate) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The first that is said to a client that listens for changes.
pub(crate) const SUBSCRIPTION_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
pub(crate) const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// Which of the two ways of speaking is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Era {
    /// With `initialize`, sessions and requests from the server.
    Legacy,
    /// With everything in each request.
    Modern,
}

/// Who we are.
pub(crate) fn our_name() -> Value {
    json!({ "name": "backstop", "version": env!("CARGO_PKG_VERSION") })
}

/// The `_meta` of a request to a server of the modern era.
pub(crate) fn modern_meta(capabilities: &Value) -> Value {
    json!({ META_VERSION: MODERN_VERSION, META_CLIENT: our_name(), META_CAPABILITIES: capabilities })
}

/// The `_meta` of what is said to a client that listens for changes with the request of this id.
pub(crate) fn meta_of_subscription(id: &RawValue) -> Value {
    json!({ META_SUBSCRIPTION: jsonrpc::value(id) })
}
