//! `backstop proxy`, and the proxy beside a command or a plan (`--proxy`).

use super::listen;
use crate::error::{CliError, DONE, failed, usage};
use crate::{process, terminal};
use backstop_config::{Given, LogFormat};
use backstop_core::{SafeText, shell};
use backstop_engine::Cancel;
use backstop_llm::proxy::{ClientVariables, Proxy, ProxySettings, Upstream, upstream_origins};
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_runtime::Project;
use clap::Args;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

/// How many threads serve clients at most.
const THREADS_MAX: usize = 4;

/// Pass model requests on, with recovery and limits that all agents on this machine share.
///
/// Rate limits are waited for, cut connections are not noticed, conversations that are too long are
/// trimmed, and what cannot be cured is said at once in the provider's own error format. Clients
/// find it by their base URL: `backstop proxy --env` prints the variables.
#[derive(Debug, Args)]
#[command(
    name = "proxy",
    after_help = "Examples:\n  backstop proxy\n  eval \"$(backstop proxy --env)\" && claude\n  \
    backstop proxy --upstream local=http://127.0.0.1:8000      its base URL: http://127.0.0.1:4141/local/v1\n  \
    backstop exec --proxy -- claude -p 'fix the tests'         a proxy for one command"
)]
pub(crate) struct ProxyArgs {
    /// Where to take requests [default: 127.0.0.1:4141]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// A provider by name and origin; anthropic, openai and gemini are known. May be given several
    /// times
    #[arg(long = "upstream", value_name = "NAME=URL")]
    pub(crate) upstreams: Vec<String>,
    /// Time limit for a request until its answer begins, with all attempts and waits [default: 9m]
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
    /// Use the answer to an identical request with temperature 0 again
    #[arg(long)]
    pub(crate) cache: bool,
    /// The environment variable with the token that clients have to give in the header
    /// x-backstop-token; needed beyond loopback
    #[arg(long, value_name = "NAME")]
    pub(crate) token_env: Option<String>,
    /// Print the variables by which clients find the proxy, for a shell, and exit
    #[arg(long)]
    pub(crate) env: bool,
    /// With --env: print JSON
    #[arg(long, requires = "env")]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &ProxyArgs, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let project = Arc::new(process::open(&flags(args), log_format)?);
    let address = address(&project)?;
    if args.env {
        let upstreams = upstream_origins(&project.config, &named(args)?)?;
        return print_variables(address, &upstreams, args.json).map(|()| DONE);
    }
    terminal::warn_inert(&project.config);
    let mut settings = ProxySettings::read(&project.config, &named(args)?, &project.process.variable)?;
    settings.token = super::token_for(address, args.token_env.as_deref())?;
    let cannot = |error: std::io::Error| failed(format!("cannot serve at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(|error| {
        cannot(error).hint("another proxy may run there: --listen 127.0.0.1:0 takes a free port")
    })?;
    let at = listener.local_addr().map_err(cannot)?;
    process::raise_file_limit();
    let proxy = Proxy::new(Arc::clone(&project), settings)?;
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS_MAX));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let served = runtime.block_on(async {
        let cancel = Cancel::new();
        listen(&cancel)?;
        terminal::say(&format!("serving at http://{at}\n"));
        proxy.serve(listener, threads, cancel.cancelled()).await.map_err(cannot)
    });
    runtime.shutdown_background();
    served.map(|()| DONE)
}

/// The flags that are also keys of the configuration.
fn flags(args: &ProxyArgs) -> Vec<Given> {
    Given::those([
        ("--listen", "llm.listen", args.listen.clone()),
        ("--deadline", "llm.deadline", args.deadline.clone()),
        ("--cache", "llm.cache", args.cache.then(|| "true".to_owned())),
    ])
}

fn address(project: &Project) -> Result<SocketAddr, CliError> {
    let text = project.config.llm().listen;
    text.parse().map_err(|_| {
        usage(format!("`{}` is no address and port", SafeText::new(text.as_str()).line(80)))
            .hint("write an IP address and a port: 127.0.0.1:4141")
    })
}

/// The upstreams that were typed.
fn named(args: &ProxyArgs) -> Result<Vec<(String, String)>, CliError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, url)) => Ok((name.to_owned(), url.to_owned())),
        None => Err(usage(format!("`{}` is no upstream", SafeText::new(text.as_str()).line(80)))
            .hint("write a name and an origin: --upstream local=http://127.0.0.1:8000")),
    };
    args.upstreams.iter().map(pair).collect()
}

fn print_variables(address: SocketAddr, upstreams: &[Upstream], as_json: bool) -> Result<(), CliError> {
    let variables = ClientVariables::of_running(address, upstreams, &|name| std::env::var(name).ok());
    warn_left_alone(&variables, true);
    if as_json {
        let set: serde_json::Map<_, _> =
            variables.set.into_iter().map(|(name, value)| (name, value.into())).collect();
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({ "schema": JSON_SCHEMA, "variables": set }))
        ));
    }
    let line = |(name, value): &(String, String)| {
        format!("export {name}={}\n", shell::line(std::slice::from_ref(value)))
    };
    terminal::print(&variables.set.iter().map(line).collect::<String>())
}

/// Says that the clients of some variables are not served.
fn warn_left_alone(variables: &ClientVariables, is_running: bool) {
    for left in &variables.left_alone {
        let (what, hint) = left.warning(is_running);
        terminal::warn(&what, Some(&hint));
    }
}

/// A proxy in a thread of this process, for the commands that it runs. It ends with it.
pub(super) struct ProxyBeside {
    stop: Cancel,
    thread: Option<JoinHandle<()>>,
}

impl ProxyBeside {
    /// Starts a proxy on a free port of loopback, and points the environment of all commands to it.
    /// Called before there is any other thread.
    pub(super) fn start() -> Result<Self, CliError> {
        let cannot = |error: std::io::Error| failed(format!("cannot start a proxy: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(cannot)?;
        let at = listener.local_addr().map_err(cannot)?;
        let variables = ClientVariables::at(at, &|name| std::env::var(name).ok());
        warn_left_alone(&variables, false);
        let project = Arc::new(process::open_quietly(&[], None)?);
        let settings = ProxySettings::read(&project.config, &variables.upstreams, &project.process.variable)?;
        for (name, value) in &variables.set {
            // SAFETY: there is no other thread yet that could read the environment.
            unsafe { std::env::set_var(name, value) };
        }
        let proxy = Proxy::new(project, settings)?;
        let stop = Cancel::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            if let Err(error) = runtime.block_on(proxy.serve(listener, 1, stopped.cancelled())) {
                terminal::warn(&format!("the proxy has ended: {error}"), None);
            }
            runtime.shutdown_background();
        });
        Ok(Self { stop, thread: Some(thread.map_err(cannot)?) })
    }
}

impl Drop for ProxyBeside {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
