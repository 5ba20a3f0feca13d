//! `backstop demo`: Backstop at work before your eyes, offline, in a folder of the demo's own.

use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_classify::Classifier;
use backstop_demo::{Scratch, Stage, Surroundings, play_command, play_faults, play_plan};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Watch Backstop at work, offline, in a folder of its own below the temporary folder. The last
/// three of these folders are kept, so that you can look at their runs.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What to watch
    #[arg(default_value = "plan")]
    pub(crate) what: DemoKind,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the demo shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoKind {
    /// A plan: phases side by side, a failed test, a retry that knows what failed, a commit for
    /// each phase
    Plan,
    /// A command that fails, is retried and recovers
    Command,
    /// Ten failures, each classified
    Faults,
}

pub(crate) fn run(args: &Demo) -> Result<u8, CliError> {
    let program = std::env::current_exe().map_err(|error| CliError::write(std::env::temp_dir(), error))?;
    let variables = std::env::vars_os().map(|(name, _)| name);
    let scratch = Scratch::make(&Surroundings {
        temp_dir: std::env::temp_dir(),
        program,
        git_variables: variables.filter(|name| name.to_string_lossy().starts_with("GIT_")).collect(),
        random: process::random,
    })?;
    let stage = Stage {
        scratch: &scratch,
        json: args.json,
        style: terminal::stdout_style(),
        print: &terminal::write,
    };
    match args.what {
        DemoKind::Plan => {
            survive_interrupts();
            let (code, warning) = play_plan(&stage)?;
            if let Some((what, hint)) = warning {
                terminal::warn(what, Some(&hint));
            }
            Ok(code)
        }
        DemoKind::Command => Ok(play_command(&stage).map(|()| DONE)?),
        DemoKind::Faults => {
            let classifier = Classifier::builtin().redacting(terminal::redactor().as_ref().clone());
            let played = play_faults(&stage, &classifier, &process::now);
            scratch.remove();
            Ok(played.map(|()| DONE)?)
        }
    }
}

/// The state folders of the demos that are kept: a demo prints the ids of its runs, and people type
/// them.
pub(crate) fn demo_states() -> Vec<PathBuf> {
    backstop_demo::demo_states(&std::env::temp_dir())
}

/// Ctrl-C reaches the run, too, which lets its phases end: the demo waits for it. A handler, not
/// ignoring: what we start gets the default back.
fn survive_interrupts() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing at all.
    unsafe {
        libc::signal(libc::SIGINT, nothing as extern "C" fn(libc::c_int) as libc::sighandler_t);
    }
}
