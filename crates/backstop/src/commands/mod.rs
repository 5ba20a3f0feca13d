//! The commands, one file or folder each: what may be typed, beside the code that carries it out.

pub(crate) mod agents;
pub(crate) mod batch;
pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod campaign;
pub(crate) mod chain;
pub(crate) mod classify;
pub(crate) mod clean;
pub(crate) mod config;
pub(crate) mod deferred;
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod guard;
pub(crate) mod hook;
pub(crate) mod init;
mod init_mcp;
mod init_service;
pub(crate) mod machine;
pub(crate) mod mcp;
pub(crate) mod notify;
pub(crate) mod plan;
pub(crate) mod proxy;
pub(crate) mod reference;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod stats;
pub(crate) mod tools;
pub(crate) mod trim;
pub(crate) mod trust;
pub(crate) mod unfreeze;

use crate::error::{CliError, usage};
use backstop_core::SafeText;
use backstop_engine::Cancel;
use tokio::signal::unix::{SignalKind, signal};

/// Cancels at the first signal that asks for the end; the second one ends the process as usual.
fn listen(cancel: &Cancel) -> Result<(), CliError> {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let mut signals = signal(kind).map_err(CliError::signals)?;
        let cancel = cancel.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if cancel.is_cancelled() {
                    std::process::exit(128 + kind.as_raw_value());
                }
                cancel.cancel();
            }
        });
    }
    Ok(())
}

/// The word that was typed for a value of a flag.
fn word<T: clap::ValueEnum>(value: Option<T>) -> Option<String> {
    value.and_then(|value| value.to_possible_value()).map(|value| value.get_name().to_owned())
}

/// The token that a server at this address asks for. Beyond this machine it needs one.
fn token_for(address: std::net::SocketAddr, variable: Option<&str>) -> Result<Option<String>, CliError> {
    let token = variable.map(token_from).transpose()?;
    if !address.ip().is_loopback() && token.is_none() {
        return Err(usage(format!("{address} can be reached from other machines"))
            .hint("serve on 127.0.0.1, or name the variable that holds a token: --token-env NAME"));
    }
    Ok(token)
}

/// The token in the environment variable of this name.
fn token_from(name: &str) -> Result<String, CliError> {
    std::env::var(name).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
        usage(format!("the variable {} is not set", SafeText::new(name).line(80)))
            .hint("set it to a long random text, and give the same to the clients")
    })
}
