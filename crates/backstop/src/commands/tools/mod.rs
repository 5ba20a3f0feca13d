//! `backstop tools`: the tools of MCP servers. Also what `call`, `batch`, `chain` and `mcp` have in
//! common.

mod list;

use super::{init, listen};
use crate::error::{CliError, failed};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::Name;
use backstop_engine::Cancel;
use backstop_runtime::Project;
use backstop_tools::{ImportPlaces, Toolbox};
use clap::{Args, Subcommand};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// List, search and check the tools of MCP servers.
///
/// Servers are set up in `backstop.toml` as `[mcp.NAME]`. Tools are called `NAME__TOOL`. Lists are
/// kept, and asked for again when they are old or missing.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop tools list\n  backstop tools search issue\n  backstop tools show github__create_issue\n  backstop tools doctor"
)]
pub(crate) struct Tools {
    #[command(subcommand)]
    pub(crate) action: ToolsAction,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsAction {
    /// List all tools
    List {
        /// Only those of this server
        #[arg(long, value_name = "SERVER")]
        server: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find tools by words in their names and descriptions
    Search {
        /// The words; a tool has to have all of them
        #[arg(required = true)]
        words: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one tool: its parameters, and whether it may be repeated
    Show {
        /// The tool, such as `github__create_issue`
        tool: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask servers for their tools now
    Refresh {
        /// Only these servers
        servers: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start servers and check them: whether they answer, and what is odd about their tools
    Doctor {
        /// Only these servers
        servers: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Tools, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    match &args.action {
        ToolsAction::List { server, json } => list::list(server.as_deref(), *json, log_format),
        ToolsAction::Search { words, json } => list::search(&words.join(" "), *json, log_format),
        ToolsAction::Show { tool, json } => list::show(tool, *json, log_format),
        ToolsAction::Refresh { servers, json } => list::refresh(servers, *json, log_format),
        ToolsAction::Doctor { servers, json } => list::doctor(servers, *json, log_format),
    }
}

/// Where other programs keep their MCP servers.
pub(super) fn places() -> Result<ImportPlaces, CliError> {
    let folders = init::folders()?;
    Ok(ImportPlaces {
        project: folders.project,
        home: folders.home,
        config: folders.config,
        claude: folders.claude,
        codex: folders.codex,
    })
}

/// Opens the project and its servers, works with them, and ends them. `cancel` fires when a signal
/// asks for the end.
pub(super) fn with_toolbox<T, F, W>(log_format: Option<LogFormat>, work: W) -> Result<T, CliError>
where
    F: Future<Output = Result<T, CliError>>,
    W: FnOnce(Arc<Toolbox>, Cancel) -> F,
{
    let project = Arc::new(process::open(&[], log_format)?);
    with_project(&project, work)
}

/// The same for a project that is open.
pub(super) fn with_project<T, F, W>(project: &Arc<Project>, work: W) -> Result<T, CliError>
where
    F: Future<Output = Result<T, CliError>>,
    W: FnOnce(Arc<Toolbox>, Cancel) -> F,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(format!("cannot begin: {error}")))?;
    let done = runtime.block_on(async {
        let toolbox = Arc::new(Toolbox::open(Arc::clone(project), &places()?)?);
        let cancel = Cancel::new();
        listen(&cancel)?;
        let done = work(Arc::clone(&toolbox), cancel).await;
        toolbox.close().await;
        done
    });
    runtime.shutdown_background();
    done
}

/// Asks the servers whose tools are not known, and says in words what could not be used.
pub(super) async fn make_known(toolbox: &Arc<Toolbox>, operation: &str) {
    say_cache(toolbox, operation, &toolbox.stale());
    warn(toolbox.ask_unknown().await);
}

/// The same for calls of these tools: only their servers count. One that was never asked is asked
/// by the call itself, within its time limit; all are asked where a name is of no server.
pub(super) async fn make_known_for<'n>(
    toolbox: &Arc<Toolbox>,
    operation: &str,
    tools: impl IntoIterator<Item = &'n str>,
    limit: Option<Duration>,
) {
    let (stale, unlisted) = toolbox.servers_to_ask(tools);
    say_cache(toolbox, operation, &stale);
    warn(toolbox.ask_before_calls(unlisted, stale, limit).await);
}

/// Says where the lists of tools could not be read, or are old.
pub(super) fn say_cache(toolbox: &Toolbox, operation: &str, stale: &[Name]) {
    if let Some(notice) = toolbox.cache_notice(operation, stale).filter(|_| !terminal::is_quiet()) {
        terminal::say(&notice.terminal(terminal::stderr_style()));
    }
}

fn warn(warnings: Vec<(String, Option<String>)>) {
    for (what, hint) in warnings {
        terminal::warn(&what, hint.as_deref());
    }
}
