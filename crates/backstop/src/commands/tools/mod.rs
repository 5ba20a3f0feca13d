//! `backstop tools`: the tools of MCP servers. Also what `call`, `batch`, `chain` and `mcp` have in
//! common.

mod list;

use super::{init, listen};
use crate::error::{CliError, failed};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Name, SafeText};
use backstop_engine::Cancel;
use backstop_report::{CacheMissing, cache_missing};
use backstop_runtime::Project;
use backstop_tools::{CacheState, ImportPlaces, Toolbox, ToolboxError};
use clap::{Args, Subcommand};
use std::collections::BTreeSet;
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

impl From<ToolboxError> for CliError {
    fn from(error: ToolboxError) -> Self {
        match error {
            ToolboxError::Project(error) => error.into(),
            ToolboxError::Config(error) => error.into(),
        }
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

/// How long servers whose lists are old have to give new ones.
const STALE_WAIT: Duration = Duration::from_secs(3);

/// How long servers that were never asked have for their lists, where others are known.
const UNLISTED_WAIT: Duration = Duration::from_secs(3);

/// Asks the servers whose tools are not known, and says in words what could not be used.
pub(super) async fn make_known(toolbox: &Arc<Toolbox>, operation: &str) {
    let (unlisted, stale) = (toolbox.unlisted(), toolbox.stale());
    let wait = (!toolbox.catalogue().is_empty()).then_some(UNLISTED_WAIT);
    say_cache(toolbox, operation, &stale);
    ask(toolbox, unlisted, stale, wait).await;
}

/// The same for calls of these tools: only their servers count. One that was never asked is asked
/// by the call itself, within its time limit; all are asked where a name is of no server.
pub(super) async fn make_known_for<'n>(
    toolbox: &Arc<Toolbox>,
    operation: &str,
    tools: impl IntoIterator<Item = &'n str>,
    limit: Option<Duration>,
) {
    let (mut servers, mut is_unknown) = (BTreeSet::new(), false);
    for tool in tools {
        match toolbox.server_of_tool(tool) {
            Some(server) => drop(servers.insert(server.clone())),
            None => is_unknown = true,
        }
    }
    let unlisted = toolbox.unlisted();
    let stale: Vec<Name> = toolbox.stale().into_iter().filter(|name| servers.contains(name)).collect();
    say_cache(toolbox, operation, &stale);
    let unlisted = if is_unknown { unlisted } else { Vec::new() };
    ask(toolbox, unlisted, stale, Some(limit.map_or(UNLISTED_WAIT, |limit| limit.min(UNLISTED_WAIT)))).await;
}

/// Says where the lists of tools could not be read, or are old.
pub(super) fn say_cache(toolbox: &Toolbox, operation: &str, stale: &[Name]) {
    let problem = match toolbox.cache_state() {
        CacheState::Read if !stale.is_empty() => {
            let names: Vec<&str> = stale.iter().map(Name::as_str).collect();
            Some(Some(SafeText::new(format!("the lists of these servers are old: {}", names.join(", ")))))
        }
        CacheState::Read => None,
        CacheState::Missing if toolbox.unlisted().is_empty() => None,
        CacheState::Missing => Some(None),
        CacheState::Invalid(why) => Some(Some(SafeText::new(why.as_str()))),
    };
    if let (Some(problem), Some(path)) = (problem, toolbox.cache_file()) {
        let notice = cache_missing(&CacheMissing {
            path: SafeText::new(path.display().to_string()),
            operation: SafeText::new(operation),
            problem,
            live: !toolbox.upstreams().is_empty(),
        });
        if !terminal::is_quiet() {
            terminal::say(&notice.terminal(terminal::stderr_style()));
        }
    }
}

/// Asks servers for their tools, and says in words what could not be used.
async fn ask(toolbox: &Arc<Toolbox>, unlisted: Vec<Name>, stale: Vec<Name>, wait: Option<Duration>) {
    // Old lists are good enough where a server takes its time.
    let renewed = toolbox.refresh_all(stale.clone(), Some(STALE_WAIT));
    let (asked, renewed) = tokio::join!(toolbox.refresh_all(unlisted.clone(), wait), renewed);
    for server in unlisted.iter().filter(|server| !asked.contains_key(*server)) {
        terminal::warn(
            &format!("the tools of {server} are missing: it has not answered yet"),
            Some(&format!("`backstop tools refresh {server}` waits for it")),
        );
    }
    for server in stale.iter().filter(|server| !matches!(renewed.get(*server), Some(Ok(_)))) {
        terminal::warn(&format!("{server} does not answer: its old list of tools is used"), None);
    }
    for (server, answer) in asked {
        if let Err(fault) = answer {
            let cause = fault.cause.as_ref().map(|cause| cause.line(300)).unwrap_or_default();
            terminal::warn(
                &format!("the tools of {server} are missing ({}): {cause}", fault.reason),
                Some(&fault.suggested_action.line(300)),
            );
        }
    }
    warn_problems(toolbox);
}

/// Says which servers cannot be used as they are set up.
pub(super) fn warn_problems(toolbox: &Toolbox) {
    for problem in toolbox.problems() {
        terminal::warn(
            &format!(
                "the tools of {} are missing: {}",
                SafeText::new(problem.server.as_str()).line(80),
                problem.what.line(300)
            ),
            Some(&problem.hint),
        );
    }
}
