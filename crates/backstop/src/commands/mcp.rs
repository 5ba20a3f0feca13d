//! `backstop mcp`: the gateway, and the MCP servers of other programs.

use super::tools::{places, with_toolbox};
use crate::error::{CliError, DONE, failed, usage};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, table, to_json};
use backstop_tools::{Found, Gateway, GatewaySettings, HttpAccess, Toolbox, imports};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::task::JoinHandle;

/// Serve the tools of all MCP servers as one MCP server, on standard input and output.
///
/// Every call is checked before it is sent, retried where that is safe, bounded in time, and
/// explained when it fails. In an agent's settings: {"command": "backstop", "args": ["mcp"]}.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  backstop mcp\n  backstop mcp --http 127.0.0.1:8765\n  backstop mcp import"
)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) action: Option<McpAction>,
    /// Offer only the servers' tools, not backstop_batch and the like
    #[arg(long)]
    pub(crate) no_own_tools: bool,
    /// Serve over HTTP at this address, at the path /mcp
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// The environment variable with the token that HTTP clients have to give; needed beyond loopback
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) token_env: Option<String>,
}

/// What else to do.
#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// Show the MCP servers in other programs' settings
    Import {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Mcp, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    match &args.action {
        Some(McpAction::Import { json }) => import(*json),
        None => serve(args, log_format),
    }
}

fn serve(args: &Mcp, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    if let Some(address) = args.http {
        return serve_http(args, address, log_format);
    }
    // Standard output carries messages alone; words for people go to standard error.
    with_toolbox(log_format, async |toolbox, cancel| {
        let gateway = Gateway::new(toolbox, GatewaySettings { own_tools: !args.no_own_tools });
        let cannot = |error: std::io::Error| failed(format!("cannot serve: {error}"));
        let own = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from).map_err(cannot);
        let (input, output) = (own(std::io::stdin().as_fd())?, own(std::io::stdout().as_fd())?);
        let watching = watch(Arc::clone(&gateway));
        let served = gateway.serve_stdio(input, output, &cancel).await;
        watching.abort();
        served.map(|()| DONE).map_err(cannot)
    })
}

fn serve_http(args: &Mcp, address: SocketAddr, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let token = match &args.token_env {
        Some(name) => Some(std::env::var(name).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
            usage(format!("the variable {} is not set", SafeText::new(name.as_str()).line(80)))
                .hint("set it to a long random text, and give the same to the clients")
        })?),
        None => None,
    };
    if !address.ip().is_loopback() && token.is_none() {
        return Err(usage(format!("{address} can be reached from other machines"))
            .hint("serve on 127.0.0.1, or name the variable that holds a token: --token-env NAME"));
    }
    let cannot = |error: std::io::Error| failed(format!("cannot serve at {address}: {error}"));
    let listener = std::net::TcpListener::bind(address).map_err(cannot)?;
    let at = listener.local_addr().map_err(cannot)?;
    with_toolbox(log_format, async |toolbox, cancel| {
        terminal::say(&format!("serving at http://{at}/mcp\n"));
        let gateway = Gateway::new(toolbox, GatewaySettings { own_tools: !args.no_own_tools });
        let watching = watch(Arc::clone(&gateway));
        let served = gateway.serve_http(listener, HttpAccess { token }, &cancel).await;
        watching.abort();
        served.map(|()| DONE).map_err(cannot)
    })
}

/// How often it is looked whether the settings have changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Takes up changes of the settings, and of what is trusted, while the gateway serves.
fn watch(gateway: Arc<Gateway>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut last = stamps();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = stamps();
            if now == last {
                continue;
            }
            last = now;
            let opened = || -> Result<Toolbox, CliError> {
                let project = process::open_quietly(&[], None)?;
                Ok(Toolbox::open(Arc::new(project), &places()?)?)
            };
            match opened() {
                Ok(toolbox) => gateway.replace(Arc::new(toolbox)).await,
                Err(error) => terminal::tell(&error),
            }
        }
    })
}

/// The files that say which servers there are, and whether they are trusted: when each was changed.
fn stamps() -> Vec<(PathBuf, Option<SystemTime>, u64)> {
    let mut files: Vec<PathBuf> = Vec::new();
    if let Ok(project) = process::open_quietly(&[], None) {
        files.extend(project.config.files().iter().map(|file| file.file.path.clone()));
        files.push(project.root.join("backstop.toml"));
        if let Ok(folder) = project.folder() {
            files.extend(["user.db", "user.db-wal"].map(|name| folder.root().join(name)));
        }
    }
    if let Ok(places) = places() {
        files.extend(imports(&places).into_iter().map(|found| found.file));
    }
    let stamp = |file: PathBuf| {
        let found = file.metadata().ok();
        let changed = found.as_ref().and_then(|found| found.modified().ok());
        (file, changed, found.map_or(0, |found| found.len()))
    };
    files.into_iter().map(stamp).collect()
}

fn import(json: bool) -> Result<u8, CliError> {
    let found = imports(&places()?);
    if json {
        let row = |one: &Found| match &one.servers {
            Ok(imported) => json!({
                "program": one.client.name(), "file": one.file, "error": null,
                "servers": imported.servers.keys().map(ToString::to_string).collect::<Vec<_>>(),
                "left_out": imported.left_out.iter().map(|(name, why)| json!({ "name": name, "why": why })).collect::<Vec<_>>(),
            }),
            Err(error) => json!({
                "program": one.client.name(), "file": one.file, "error": error.to_string(), "servers": [], "left_out": [],
            }),
        };
        let rows: Vec<Value> = found.iter().map(row).collect();
        let all = json!({ "schema": JSON_SCHEMA, "found": rows });
        return terminal::print(&format!("{}\n", to_json(&all))).map(|()| DONE);
    }
    if found.is_empty() {
        return terminal::print("no other program's MCP servers were found here\n").map(|()| DONE);
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for one in &found {
        let file = SafeText::new(one.file.display().to_string()).line(120);
        let program = one.client.name().to_owned();
        match &one.servers {
            Ok(imported) => {
                for name in imported.servers.keys() {
                    rows.push(vec![
                        program.clone(),
                        name.to_string(),
                        "can be used".to_owned(),
                        file.clone(),
                    ]);
                }
                for (name, why) in &imported.left_out {
                    let (name, why) =
                        (SafeText::new(name.as_str()).line(40), SafeText::new(why.as_str()).line(60));
                    rows.push(vec![program.clone(), name, why, file.clone()]);
                }
            }
            Err(error) => {
                rows.push(vec![program, "-".to_owned(), SafeText::new(error.to_string()).line(80), file]);
            }
        }
    }
    let hint = "\nTo use them, name the program in backstop.toml:\n\n[mcp]\nfrom = [\"PROGRAM\"]\n";
    terminal::print(&format!("{}{hint}", table(&["PROGRAM", "SERVER", "STATE", "FILE"], &rows)))
        .map(|()| DONE)
}
