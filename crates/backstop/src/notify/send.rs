//! The sender: one detached process a user, which leaves when nothing is left to wait for.
//!
//! Two locks say who is there. Who holds `notify-sender` delivers. Who finds it held takes `notify-next` and waits a moment,
//! because it may have a secret in its environment that the other has not; who finds that held, too, is not needed.

use crate::context::{self, Context};
use crate::error::{CliError, DONE};
use backstop_core::{Name, Policy, SafeText};
use backstop_notify::{Credential, Resolved, Sender, Sink};
use backstop_store::{Held, Hold, Note, Outbox, StateFolder, StoreError};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SENDER: &str = "notify-sender";
const NEXT: &str = "notify-next";
/// How long the next one waits for its turn: longer than messages are gathered.
const TURN_MAX: Duration = Duration::from_secs(20);
/// Somebody may look whether a lock is held, and holds it for this moment.
const GLANCE: Duration = Duration::from_millis(20);
const GLANCES: u32 = 5;

/// Starts a sender, where there is none, or where this process has a secret that another may not have. It is not waited for.
pub(super) fn start(context: &Context, needs_environment: bool) {
    let there = || -> Option<bool> {
        let held = context.folder().ok()?.hold_user(&SENDER.parse().ok()?, context::host()).ok()?;
        Some(matches!(held, Held::By(_)))
    };
    if !needs_environment && there() == Some(true) {
        return;
    }
    if let Some(mut command) = detached(&["notify", "send"]) {
        let _ = command.stdin(Stdio::null()).spawn();
    }
}

/// Ourselves, as a process that is no part of the run which starts it and has none of its streams.
pub(super) fn detached(args: &[&str]) -> Option<Command> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(args).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
    command.env_remove("BACKSTOP_RUN_ID").env_remove("BACKSTOP_RUN_MARK").env_remove("BACKSTOP_DEADLINE");
    Some(command)
}

/// Delivers what waits.
pub(super) fn run() -> Result<u8, CliError> {
    // A session of its own: what is typed at the terminal is not for it. That it has one already is no error.
    let _ = rustix::process::setsid();
    let context = Context::new(&[], None)?;
    let folder = context.folder()?;
    let Some(outbox) = Outbox::open_existing(&folder)? else { return Ok(DONE) };
    let policy = context.config.policy("request")?;
    let Some(mut seat) = take_seat(&folder)? else { return Ok(DONE) };
    loop {
        let without_secret = deliver(&outbox, &folder, &policy)?;
        drop(seat);
        // Who queued something while the lock was held has started nobody: it is ours.
        let left = outbox.file().exists() && outbox.queued()?.len() > without_secret;
        seat = match left.then(|| hold(&folder, SENDER)).transpose()? {
            Some(Held::Ours(seat)) => seat,
            Some(Held::By(_)) | None => return Ok(DONE),
        };
    }
}

fn deliver(outbox: &Outbox, folder: &StateFolder, policy: &Policy) -> Result<usize, CliError> {
    let relieved = || matches!(hold(folder, NEXT), Ok(Held::By(_)));
    let sender = Sender { outbox, resolve: &resolve, relieved: &relieved, policy: policy.clone() };
    let end = runtime()?.block_on(sender.run())?;
    Ok(usize::try_from(end.without_secret).unwrap_or(usize::MAX))
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| CliError::Run { command: "backstop notify".to_owned(), error })
}

/// The sink as its project has it now. What is no longer trusted is gone.
fn resolve(note: &Note) -> Resolved {
    let name = &note.note.sink;
    let gone = |why: String| Resolved::Gone(SafeText::new(why));
    let context = match Context::at(Path::new(&note.note.project)) {
        Ok(context) => context,
        Err(error) => return gone(error.to_string()),
    };
    let found = backstop_notify::sinks(&context.config).into_iter().find(|(known, _)| known == name.as_str());
    match found {
        Some((_, Ok(sink))) => with_secret(sink),
        Some((_, Err(error))) => gone(error.to_string()),
        None => gone(format!("there is no sink `{name}` there any more, or it is not trusted")),
    }
}

/// A sink with what the environment holds for it.
pub(super) fn with_secret(sink: Sink) -> Resolved {
    let secret = match sink.secret_env() {
        Some(variable) => match std::env::var(variable).ok().filter(|value| !value.trim().is_empty()) {
            Some(value) => Some(Credential::new(value.trim())),
            None => return Resolved::NoSecret { variable: variable.to_owned() },
        },
        None => None,
    };
    Resolved::Sink(Box::new(sink), secret)
}

fn hold(folder: &StateFolder, name: &str) -> Result<Held, StoreError> {
    let name: Name = name.parse().map_err(|error: backstop_core::IdError| StoreError::Unrecordable {
        what: "a lock".to_owned(),
        file: folder.root().to_owned(),
        why: error.to_string(),
    })?;
    folder.hold_user(&name, context::host())
}

/// The lock of the sender: at once, or after the one who has it. Nothing, where somebody waits for that already.
fn take_seat(folder: &StateFolder) -> Result<Option<Hold>, StoreError> {
    for _ in 0..GLANCES {
        if let Held::Ours(seat) = hold(folder, SENDER)? {
            return Ok(Some(seat));
        }
        std::thread::sleep(GLANCE);
    }
    let Held::Ours(_next) = hold(folder, NEXT)? else { return Ok(None) };
    let from = Instant::now();
    while from.elapsed() < TURN_MAX {
        if let Held::Ours(seat) = hold(folder, SENDER)? {
            return Ok(Some(seat));
        }
        std::thread::sleep(GLANCE);
    }
    Ok(None)
}
