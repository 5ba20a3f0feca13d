//! `backstop mcp`: the gateway, and the MCP servers of other programs.

use super::tools::{places, say_cache, with_toolbox};
use crate::error::{CliError, DONE, failed};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_report::{ImportedFile, NO_SERVERS, imported_json, imported_table, to_json};
use backstop_tools::{Found, Gateway, GatewaySettings, HttpAccess, Toolbox, imports, is_path};
use clap::{Args, Subcommand};
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
    /// The environment variable with the token that HTTP clients have to give; needed beyond
    /// loopback
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
        say_if_empty(&toolbox);
        say_cache(&toolbox, "mcp", &toolbox.stale());
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
    let token = super::token_for(address, args.token_env.as_deref())?;
    let cannot = |error: std::io::Error| failed(format!("cannot serve at {address}: {error}"));
    let listener = std::net::TcpListener::bind(address).map_err(cannot)?;
    let at = listener.local_addr().map_err(cannot)?;
    with_toolbox(log_format, async |toolbox, cancel| {
        terminal::say(&format!("serving at http://{at}/mcp\n"));
        say_if_empty(&toolbox);
        say_cache(&toolbox, "mcp", &toolbox.stale());
        let gateway = Gateway::new(toolbox, GatewaySettings { own_tools: !args.no_own_tools });
        let watching = watch(Arc::clone(&gateway));
        let served = gateway.serve_http(listener, HttpAccess { token }, &cancel).await;
        watching.abort();
        served.map(|()| DONE).map_err(cannot)
    })
}

/// Says how to add a server where there is none. The gateway serves all the same: settings that
/// change are taken up.
fn say_if_empty(toolbox: &Toolbox) {
    if toolbox.upstreams().is_empty() && toolbox.problems().is_empty() && !terminal::is_quiet() {
        terminal::say(NO_SERVERS);
    }
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
        files.extend(project.config.mcp().from.iter().filter(|from| is_path(from)).map(PathBuf::from));
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
    let found: Vec<ImportedFile> = imports(&places()?).iter().map(Found::row).collect();
    let text = if json { format!("{}\n", to_json(&imported_json(&found))) } else { imported_table(&found) };
    terminal::print(&text).map(|()| DONE)
}
