//! The command line of Backstop: arguments, prompts, the live view, exit codes. No logic of its
//! own.
#![allow(clippy::disallowed_methods)] // This crate is the one that touches the process and its environment.

mod cli;
mod commands;
mod error;
mod inherited;
mod process;
mod prompt;
mod terminal;

use cli::{Cli, Command};
use commands::{
    agents, batch, budget, call, campaign, chain, classify, clean, config, deferred, demo, diagnose, doctor,
    drift, events, exec, explain, guard, hook, init, machine, mcp, notify, plan, proxy, reference, rules,
    run, runs, stats, tools, trim, trust, unfreeze,
};
use error::{CliError, DONE, USAGE};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

/// A file that may not grow any further is an error like any other, not our end. A handler, not
/// ignoring: what we start gets the default back.
fn survive_file_size_limits() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing at all.
    unsafe {
        libc::signal(libc::SIGXFSZ, nothing as extern "C" fn(libc::c_int) as libc::sighandler_t);
    }
}

/// The exit code of a process that is aborted, as it is without memory.
static ABORTED: AtomicU8 = AtomicU8::new(exec::NOT_STARTED);

/// Where no memory is left, the standard library says so and aborts: that ends with an exit code of
/// ours, not with a signal that a caller would take for the command's.
fn exit_where_memory_ends() {
    extern "C" fn exit(_: libc::c_int) {
        let words = b"error: Backstop cannot go on: it has no memory left\nhint: look at `ulimit -a`\n";
        // SAFETY: write(2) and _exit(2) may be called by a handler; the words are static.
        unsafe {
            libc::write(2, words.as_ptr().cast(), words.len());
            libc::_exit(ABORTED.load(Ordering::Relaxed).into());
        }
    }
    // SAFETY: the handler makes only calls that a handler may make.
    unsafe {
        libc::signal(libc::SIGABRT, exit as extern "C" fn(libc::c_int) as libc::sighandler_t);
    }
}

/// What cannot go on says so in words. What it was doing is unwound, and [`main`] gives the exit
/// code.
fn say_what_failed() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            return usual(panic);
        }
        let message = panic.payload_as_str().unwrap_or("something unexpected");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        terminal::tell(
            &error::failed(format!("Backstop cannot go on: {message}"))
                .hint("it may be short of open files, threads or memory: `ulimit -a`".to_owned())
                .hint(format!("otherwise it is a defect of Backstop at {place}; please report it")),
        );
    }));
}

fn main() -> ExitCode {
    survive_file_size_limits();
    exit_where_memory_ends();
    say_what_failed();
    backstop_report::set_zone_source(process::zone);
    let cli = match Cli::usual_hook().map_or_else(Cli::read, Ok) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() && hook::is_agents(&arguments()) {
                hook::answer_nothing(&error.to_string());
            }
            return terminal::tell_usage(&error, usage_code());
        }
    };
    let is_exec = matches!(cli.command, Some(Command::Exec(_)));
    let offers = offers(&cli);
    let broken = match () {
        () if is_exec => exec::NOT_STARTED,
        () if hook::is_agents(&arguments()) => DONE,
        () => error::FAILED,
    };
    ABORTED.store(broken, Ordering::Relaxed);
    let carried_out = std::panic::catch_unwind(|| carry_out(cli));
    let Ok(carried_out) = carried_out else { return ExitCode::from(broken) };
    match carried_out {
        Ok(code) => {
            if offers {
                deferred::offer_from_store();
            }
            ExitCode::from(code)
        }
        Err(error) => {
            terminal::tell(&error);
            ExitCode::from(if is_exec { exec::NOT_STARTED } else { error.code() })
        }
    }
}

/// Whether a format of events means something to a command, or to what it runs.
fn takes_log_format(command: &Command) -> bool {
    use Command::{Campaign, Classify, Deferred, Events, Exec, Hook, Plan, Run};
    matches!(
        command,
        Run(_) | Plan(_) | Campaign(_) | Exec(_) | Hook(_) | Events(_) | Classify(_) | Deferred(_)
    )
}

fn carry_out(cli: Cli) -> Result<u8, CliError> {
    let format = cli.log_format;
    if format.is_some() && cli.command.as_ref().is_some_and(|command| !takes_log_format(command)) {
        let what = "this command prints no events: --log-format changes nothing";
        terminal::warn(what, Some("`--json` prints JSON, where a command has it"));
    }
    let done = |()| DONE;
    match cli.command {
        None => terminal::print(THREE_THINGS_TO_TRY).map(done),
        Some(Command::Run(args)) => run::run(&args, format),
        Some(Command::Plan(args)) => plan::run(&args, format),
        Some(Command::Campaign(args)) => campaign::run(&args, format),
        Some(Command::Exec(args)) => exec::run(&args, format),
        Some(Command::Hook(args)) => hook::run(&args, format),
        Some(Command::Tools(args)) => tools::run(&args, format),
        Some(Command::Call(args)) => call::run(&args, format),
        Some(Command::Batch(args)) => batch::run(&args, format),
        Some(Command::Chain(args)) => chain::run(&args, format),
        Some(Command::Mcp(args)) => mcp::run(&args, format),
        Some(Command::Proxy(args)) => proxy::run(&args, format),
        Some(Command::Trim(args)) => trim::run(&args).map(done),
        Some(Command::Classify(args)) => classify::run(&args, format),
        Some(Command::Reasons(args)) => reference::reasons(&args).map(done),
        Some(Command::Explain(args)) => explain::run(&args, format).map(done),
        Some(Command::Runs(args)) => runs::run(&args, format).map(done),
        Some(Command::Events(args)) => events::run(&args, format).map(done),
        Some(Command::Stats(args)) => stats::run(&args, format).map(done),
        Some(Command::Drift(args)) => drift::run(&args, format),
        Some(Command::Machine(args)) => machine::run(&args),
        Some(Command::Deferred(args)) => deferred::run(&args, format),
        Some(Command::Guard(args)) => guard::run(&args),
        Some(Command::Budget(args)) => budget::run(&args).map(done),
        Some(Command::Diagnose(args)) => diagnose::run(&args, format).map(done),
        Some(Command::Unfreeze(args)) => unfreeze::run(&args).map(done),
        Some(Command::Agents(args)) => agents::run(&args).map(done),
        Some(Command::Init(args)) => init::run(&args).map(done),
        Some(Command::Notify(args)) => notify::run(&args),
        Some(Command::Config(args)) => config::run(&args),
        Some(Command::Trust(args)) => trust::run(&args).map(done),
        Some(Command::Clean(args)) => clean::run(&args).map(done),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Rules(args)) => rules::run(&args).map(done),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Completions(args)) => reference::completions(&args).map(done),
        Some(Command::Man(args)) => reference::man(&args).map(done),
    }
}

/// Whether a person has typed this who may be told what else there is to do. Runs offer it
/// themselves.
fn offers(cli: &Cli) -> bool {
    use Command::{
        Budget, Clean, Config, Diagnose, Doctor, Drift, Events, Explain, Guard, Notify, Plan, Runs, Stats,
        Trust, Unfreeze,
    };
    match &cli.command {
        // The detached sender has nobody to tell.
        Some(Notify(args)) => !args.is_sender(),
        Some(
            Budget(_) | Clean(_) | Config(_) | Diagnose(_) | Doctor(_) | Drift(_) | Events(_) | Explain(_),
        ) => true,
        Some(Guard(_) | Plan(_) | Runs(_) | Stats(_) | Trust(_) | Unfreeze(_)) => true,
        _ => false,
    }
}

fn arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect()
}

/// What a mistake in the arguments exits with: `exec` keeps 1 to 124 for the command, and 2 would
/// block an agent.
fn usage_code() -> u8 {
    let args = arguments();
    if hook::is_agents(&args) {
        return DONE;
    }
    let first = args.iter().find(|arg| !arg.starts_with('-'));
    if first.is_some_and(|first| first == "exec") { exec::NOT_STARTED } else { USAGE }
}

const THREE_THINGS_TO_TRY: &str = "\
Backstop stands behind everything an AI agent does that can fail.

Three things to try:
  backstop demo                                                  watch a plan fail and recover
  backstop exec --timeout 10m -- npm ci                          any command, made dependable
  npm test > out.log 2>&1; backstop classify --exit $? out.log   what failed, why, and what to do

`backstop --help` lists all commands.
";
