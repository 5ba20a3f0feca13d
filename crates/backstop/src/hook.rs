//! `backstop hook`: what others call when something fails.

mod agent;
mod denial;
mod on_error;
mod stop;
mod tasks;
mod tool;
mod transcript;
mod turn;

use crate::cli::{Hook, HookAction, LogFormat};
use crate::context::{self, Context};
use crate::error::{CliError, DONE};
use crate::terminal;
use backstop_core::nearest::nearest;
use backstop_core::{EventKind, RunId, SafeText};
use backstop_hook::INPUT_BYTES_MAX;
use backstop_store::{HookStore, Journal, ProjectKey, RunHeader, RunJournal, StateFolder, StoreError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How much more is read than is used, so that whoever writes is not cut off.
const DRAINED_BYTES_MAX: u64 = 256 << 20;
/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;

pub(crate) fn run(args: &Hook, format: Option<LogFormat>) -> Result<u8, CliError> {
    match &args.action {
        HookAction::OnError => on_error::run(format).map(|()| DONE),
        HookAction::Agent { provider } => Ok(agent::run(provider.as_deref())),
        HookAction::Status { task, json } => tasks::status(task.as_deref(), *json).map(|()| DONE),
        HookAction::Resolved { task, json } => tasks::resolved(task, *json).map(|()| DONE),
    }
}

/// Whether a mistake in these arguments may be one in what an agent calls: then it must not block the agent.
pub(crate) fn is_agents(args: &[String]) -> bool {
    // The one global flag that takes a value may stand before the command.
    let valued = |at: usize| at > 0 && args[at - 1] == "--log-format";
    let words = args.iter().enumerate().filter(|(at, arg)| !arg.starts_with('-') && !valued(*at));
    let mut words = words.map(|(_, arg)| arg.as_str());
    const ACTIONS: [&str; 4] = ["agent", "on-error", "status", "resolved"];
    // What is near another action is a mistake of somebody else's.
    let may_be_agent = |word: &str| nearest(word, ACTIONS).is_none_or(|near| near == "agent");
    words.next() == Some("hook") && words.next().is_some_and(may_be_agent)
}

/// Answers an agent whose settings call us wrongly: it goes on as if there were no hook, and the mistake is in the log.
pub(crate) fn answer_nothing(mistake: &str) {
    agent::log(&SafeText::new(mistake).line(300));
    agent::say(None);
}

/// Reads standard input: as much as is used and one byte more, and then to its end. Whoever keeps it open must not hold us:
/// after so long, what has come by then is all there is. Somebody who types is waited for.
fn read_input(within: Duration) -> std::io::Result<Vec<u8>> {
    let wanted = INPUT_BYTES_MAX + 1;
    let until = (!std::io::stdin().is_terminal()).then(|| Instant::now() + within);
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (mut bytes, mut piece, mut drained) = (Vec::new(), vec![0; PIECE_BYTES], 0);
    while drained < DRAINED_BYTES_MAX && until.is_none_or(|until| comes(&input, until)) {
        let read = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let used = read.min(wanted - bytes.len());
        bytes.extend_from_slice(&piece[..used]);
        drained += (read - used) as u64;
    }
    Ok(bytes)
}

/// Whether something is there to be read, or its end is, before that time.
fn comes(input: &File, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    let mut asked = [PollFd::new(input, PollFlags::IN)];
    // A signal is no answer, and is as rare as it is harmless here.
    matches!(poll(&mut asked, Some(&timeout)), Ok(1..))
}

/// What hooks remember. A damaged file is set aside: what it counted is lost.
fn open_store(folder: &StateFolder) -> Result<HookStore, StoreError> {
    match HookStore::open(folder) {
        Err(StoreError::Corrupt { .. }) => {
            folder.quarantine_hooks()?;
            HookStore::open(folder)
        }
        other => other,
    }
}

/// Asks what hooks remember. A file of which only a part is damaged is found out by asking, and is set aside as well.
fn ask_store<T>(
    folder: &StateFolder,
    mut ask: impl FnMut(&HookStore) -> Result<T, StoreError>,
) -> Result<(HookStore, T), StoreError> {
    let store = open_store(folder)?;
    let answer = match ask(&store) {
        Err(StoreError::Corrupt { .. }) => {
            drop(store);
            // Somebody else may have set it aside meanwhile.
            if let Err(StoreError::Corrupt { .. }) = open_store(folder)?.check() {
                folder.quarantine_hooks()?;
            }
            let store = HookStore::open(folder)?;
            let answer = ask(&store)?;
            return Ok((store, answer));
        }
        other => other?,
    };
    Ok((store, answer))
}

/// The key of this project, under which its tasks are known.
fn project_key(context: &Context) -> ProjectKey {
    ProjectKey::of(&context.project.canonicalize().unwrap_or_else(|_| context.project.clone()))
}

/// The run that recorded the last error of a task.
pub(crate) fn run_of_task(context: &Context, task: &str) -> Result<RunId, CliError> {
    tasks::find(context, task)?
        .record
        .run
        .ok_or_else(|| CliError::NoTask { given: task.to_owned(), nearest: None })
}

/// Records events as a run of their own, whose id is made of a random number, and appends to the file that others tail.
fn record(
    context: &Context,
    journal: &Journal,
    session: Option<SafeText>,
    caller: &str,
    random: u64,
    events: Vec<EventKind>,
) -> Result<RunJournal, CliError> {
    let (by, named) = context::caller_and_session();
    // What happens inside a run is a part of it.
    let parent = context::outer().0;
    let mut events = events;
    if let Some(EventKind::RunStarted { parent: of, .. }) = events.first_mut() {
        *of = parent;
    }
    let header = RunHeader {
        parent,
        session: session.filter(|text| !text.is_empty()).or(named.map(SafeText::new)),
        caller: Some(SafeText::new(by.unwrap_or_else(|| caller.to_owned()))),
        ..RunHeader::new("hook", context::host(), random)
    };
    let run = journal.begin(header, events)?;
    let _ = journal.clean_if_due(&context.retention(), &context::is_alive);
    if let Some(file) = context.config.tail_to() {
        let lines: String = run
            .journal()
            .load(run.id())?
            .iter()
            .filter_map(backstop_report::event_gdd)
            .map(|value| format!("{}\n", backstop_report::to_json(&value)))
            .collect();
        terminal::append(&file, &lines).map_err(|error| CliError::Write { file, error })?;
    }
    Ok(run)
}
