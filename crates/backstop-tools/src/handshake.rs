//! The first words with a server: which era it speaks, and what it can do.
//!
//! `initialize` is asked first: every server of the old era answers it at once, while an old server
//! may stay silent at a question of the new era. A server of the new era refuses it in words.

use crate::connection::{Connection, Link, RequestFailure, RequestLimits, request};
use crate::jsonrpc::{self, METHOD_NOT_FOUND, RpcError};
use crate::protocol::{
    Era, LEGACY_VERSION, LEGACY_VERSIONS, META_GATEWAYS, MODERN_VERSION, UNSUPPORTED_VERSION, our_name,
};
use crate::transport::{Inbox, Outgoing, Transport};
use backstop_engine::Cancel;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A connection before its handshake.
struct Fresh<'f> {
    transport: &'f Transport,
    inbox: &'f Arc<Inbox>,
    modern: Option<&'f Value>,
}

impl Link for Fresh<'_> {
    fn transport(&self) -> &Transport {
        self.transport
    }
    fn inbox(&self) -> &Arc<Inbox> {
        self.inbox
    }
    fn modern(&self) -> Option<&Value> {
        self.modern
    }
}

/// What a server is told of us.
#[derive(Debug, Clone)]
pub(crate) struct OurSide {
    /// What our client can do.
    pub(crate) capabilities: Value,
    /// The gateways that our calls come through.
    pub(crate) gateways: Vec<String>,
}

/// Greets a server. `era` is the one that it spoke the last time. A server that is not greeted is
/// ended, with all that it started.
pub(crate) async fn greet(
    transport: Transport,
    inbox: Arc<Inbox>,
    us: OurSide,
    era: Option<Era>,
    limit: Option<Duration>,
    cancel: &Cancel,
) -> Result<Connection, RequestFailure> {
    let limits = RequestLimits { idle: None, total: limit };
    let (era, hello) = match agree(&transport, &inbox, &us, era, limits, cancel).await {
        Ok(agreed) => agreed,
        Err(failure) => {
            transport.stop().await;
            return Err(failure);
        }
    };
    let version = match era {
        Era::Modern => MODERN_VERSION.to_owned(),
        Era::Legacy => text(&hello, "protocolVersion").unwrap_or_else(|| LEGACY_VERSION.to_owned()),
    };
    if let Transport::Http(http) = &transport {
        http.agreed(era, &version);
    }
    if era == Era::Legacy {
        let bytes = jsonrpc::notification("notifications/initialized", None);
        let method = "notifications/initialized".to_owned();
        transport.send(Outgoing { bytes, id: None, method, about: None }).await;
        if let Transport::Http(http) = &transport {
            http.listen();
        }
    }
    Ok(Connection { transport, inbox, era, hello, capabilities: us.capabilities })
}

/// Finds out which era a server speaks, and what it says of itself.
async fn agree(
    transport: &Transport,
    inbox: &Arc<Inbox>,
    us: &OurSide,
    era: Option<Era>,
    limits: RequestLimits,
    cancel: &Cancel,
) -> Result<(Era, Value), RequestFailure> {
    let modern = Fresh { transport, inbox, modern: Some(&us.capabilities) };
    let legacy = Fresh { modern: None, ..modern };
    if era == Some(Era::Modern) {
        return match discover(&modern, limits, cancel).await {
            Ok(hello) => Ok((Era::Modern, hello)),
            Err(RequestFailure::Rpc(_)) => Ok((Era::Legacy, initialize(&legacy, us, limits, cancel).await?)),
            Err(failure) => Err(failure),
        };
    }
    match initialize(&legacy, us, limits, cancel).await {
        Ok(hello) => Ok((Era::Legacy, hello)),
        Err(RequestFailure::Rpc(error)) if is_newer(&error) => {
            Ok((Era::Modern, discover(&modern, limits, cancel).await?))
        }
        Err(failure) => Err(failure),
    }
}

/// Whether a refusal of `initialize` says that the server is of the new era.
fn is_newer(error: &RpcError) -> bool {
    error.code == UNSUPPORTED_VERSION || error.code == METHOD_NOT_FOUND
}

async fn initialize(
    link: &Fresh<'_>,
    us: &OurSide,
    limits: RequestLimits,
    cancel: &Cancel,
) -> Result<Value, RequestFailure> {
    let mut params = json!({
        "protocolVersion": LEGACY_VERSION, "capabilities": us.capabilities, "clientInfo": our_name(),
    });
    if !us.gateways.is_empty() {
        params["_meta"] = json!({ META_GATEWAYS: us.gateways });
    }
    let hello = request(link, "initialize", Some(&jsonrpc::raw(&params)), limits, cancel).await?;
    let hello = jsonrpc::value(&hello);
    match text(&hello, "protocolVersion") {
        Some(version) if LEGACY_VERSIONS.contains(&version.as_str()) => Ok(hello),
        version => {
            let version = version.unwrap_or_else(|| "none".to_owned());
            let words = format!("it speaks version {version} of MCP, which is not known here");
            Err(RequestFailure::Rpc(RpcError::new(UNSUPPORTED_VERSION, words)))
        }
    }
}

async fn discover(link: &Fresh<'_>, limits: RequestLimits, cancel: &Cancel) -> Result<Value, RequestFailure> {
    let hello = request(link, "server/discover", None, limits, cancel).await?;
    let hello = jsonrpc::value(&hello);
    let versions = hello.get("supportedVersions").and_then(Value::as_array);
    match versions.is_some_and(|all| all.iter().any(|version| version == MODERN_VERSION)) {
        true => Ok(hello),
        false => {
            let words = format!("it does not speak version {MODERN_VERSION} of MCP");
            Err(RequestFailure::Rpc(RpcError::new(UNSUPPORTED_VERSION, words)))
        }
    }
}

fn text(object: &Value, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}
