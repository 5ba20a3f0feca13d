//! The sender: one detached process a user, which leaves when nothing is left to wait for.
//!
//! Two locks say who is there. Who holds `notify-sender` delivers. Who finds it held takes
//! `notify-next` and waits a moment, because it may have a secret in its environment that the other
//! has not; who finds that held, too, is not needed.

use crate::project::{Project, ProjectError};
use backstop_core::{IdError, Name, Policy, SafeText};
use backstop_engine::Engine;
use backstop_notify::{Credential, Message, Resolved, Sender, Sink, SinkKind, Times, deliver};
use backstop_store::{Held, Hold, Note, Outbox, StateFolder, StoreError};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SENDER: &str = "notify-sender";
const NEXT: &str = "notify-next";
/// Somebody may look whether a lock is held, and holds it for this moment.
const GLANCE: Duration = Duration::from_millis(20);
const GLANCES: u32 = 5;
/// How many glances the next one waits for its turn, about 20 s: longer than messages are gathered.
const TURN_GLANCES_MAX: u32 = 1000;

/// Opens the project around a folder as it is now.
pub type OpenProject<'o> = &'o dyn Fn(&Path) -> Result<Project, ProjectError>;

/// A message that is handed to a process of its own: on a full disk there is no room for an outbox.
#[derive(Debug, Serialize, Deserialize)]
struct Handed {
    /// The folder whose configuration has the sinks.
    folder: PathBuf,
    message: Message,
}

/// Starts a sender, where there is none, or where this process has a secret that another may not
/// have. It is not waited for.
pub(super) fn start(project: &Project, needs_environment: bool) {
    let there = || -> Option<bool> {
        let held = project.folder().ok()?.hold_user(&SENDER.parse().ok()?, project.process.id).ok()?;
        Some(matches!(held, Held::By(_)))
    };
    if !needs_environment && there() == Some(true) {
        return;
    }
    if let Some(mut command) = detached(project, &["notify", "send"]) {
        let _ = command.stdin(Stdio::null()).spawn();
    }
}

/// Ourselves, as a process that is no part of the run which starts it and has none of its streams.
fn detached(project: &Project, args: &[&str]) -> Option<Command> {
    let mut command = Command::new(project.process.program.as_ref()?);
    command.args(args).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
    command.env_remove("BACKSTOP_RUN_ID").env_remove("BACKSTOP_RUN_MARK").env_remove("BACKSTOP_DEADLINE");
    Some(command)
}

/// Hands a message to a process of its own. It is not waited for, unless a pipe has no room for it.
pub(super) fn hand_over(project: &Project, message: &Message) {
    let handed = Handed { folder: project.process.cwd.clone(), message: message.clone() };
    let (Ok(text), Some(mut command)) =
        (serde_json::to_vec(&handed), detached(project, &["notify", "send", "--direct"]))
    else {
        return;
    };
    if let Ok(mut child) = command.stdin(Stdio::piped()).spawn()
        && let Some(mut input) = child.stdin.take()
    {
        let _ = input.write_all(&text);
    }
}

/// Delivers what waits in the outbox. `open` opens the projects whose messages they are.
pub fn run(project: &Project, open: OpenProject<'_>) -> Result<(), ProjectError> {
    let folder = project.folder()?;
    let Some(outbox) = Outbox::open_existing(folder)? else { return Ok(()) };
    let policy = project.config.policy("request")?;
    let Some(mut seat) = take_seat(project, folder)? else { return Ok(()) };
    loop {
        let without_secret = deliver_all(project, &outbox, &policy, open)?;
        drop(seat);
        // Who queued something while the lock was held has started nobody: it is ours.
        let left = outbox.file().exists() && outbox.queued()?.len() > without_secret;
        seat = match left.then(|| hold(project, folder, SENDER)).transpose()? {
            Some(Held::Ours(seat)) => seat,
            Some(Held::By(_)) | None => return Ok(()),
        };
    }
}

fn deliver_all(
    project: &Project,
    outbox: &Outbox,
    policy: &Policy,
    open: OpenProject<'_>,
) -> Result<usize, ProjectError> {
    let folder = project.folder()?;
    let relieved = || matches!(hold(project, folder, NEXT), Ok(Held::By(_)));
    let resolve = |note: &Note| resolve(note, open);
    let client = project.process.http_client();
    let sender = Sender { outbox, resolve: &resolve, relieved: &relieved, policy: policy.clone(), client };
    let end = runtime(project)?.block_on(sender.run())?;
    Ok(usize::try_from(end.without_secret).unwrap_or(usize::MAX))
}

/// Delivers one message, as `hand_over` wrote it, to every sink that takes it.
pub fn deliver_directly(text: &[u8], open: OpenProject<'_>) -> Result<(), ProjectError> {
    let Ok(Handed { folder, message }) = serde_json::from_slice(text) else { return Ok(()) };
    let project = open(&folder)?;
    let engine = Engine::new(project.config.policy("request")?);
    let now = project.process.now();
    let times = Times { count: 1, first: now, last: now, mixed: false, names: Vec::new() };
    let sinks = backstop_notify::sinks(&project.config).into_iter().filter_map(|(_, sink)| sink.ok());
    let taking = sinks.filter(|sink| sink.kind != SinkKind::Terminal && sink.route.takes(&message.about));
    let (runtime, client) = (runtime(&project)?, project.process.http_client());
    for sink in taking {
        if let Resolved::Sink(sink, credential) = with_secret(&project, sink) {
            runtime.block_on(deliver(&engine, &client, &sink, credential.as_ref(), &message, &times));
        }
    }
    Ok(())
}

/// A small runtime for deliveries.
pub fn runtime(project: &Project) -> Result<tokio::runtime::Runtime, ProjectError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let program = project.process.program.clone().unwrap_or_default();
    built.map_err(|error| ProjectError::Read { file: program, error })
}

/// The sink as its project has it now. What is no longer trusted is gone.
fn resolve(note: &Note, open: OpenProject<'_>) -> Resolved {
    let name = &note.note.sink;
    let gone = |why: String| Resolved::Gone(SafeText::new(why));
    let project = match open(Path::new(&note.note.project)) {
        Ok(project) => project,
        Err(error) => return gone(error.to_string()),
    };
    let found = backstop_notify::sinks(&project.config).into_iter().find(|(known, _)| known == name.as_str());
    match found {
        Some((_, Ok(sink))) => with_secret(&project, sink),
        Some((_, Err(error))) => gone(error.to_string()),
        None => gone(format!("there is no sink `{name}` there any more, or it is not trusted")),
    }
}

/// A sink with what the environment holds for it.
pub fn with_secret(project: &Project, sink: Sink) -> Resolved {
    let secret = match sink.secret_env() {
        Some(variable) => {
            let value = (project.process.variable)(variable).filter(|value| !value.trim().is_empty());
            match value {
                Some(value) => Some(Credential::new(value.trim())),
                None => return Resolved::NoSecret { variable: variable.to_owned() },
            }
        }
        None => None,
    };
    Resolved::Sink(Box::new(sink), secret)
}

fn hold(project: &Project, folder: &StateFolder, name: &str) -> Result<Held, StoreError> {
    let name: Name = name.parse().map_err(|error: IdError| StoreError::Unrecordable {
        what: "a lock".to_owned(),
        file: folder.root().to_owned(),
        why: error.to_string(),
    })?;
    folder.hold_user(&name, project.process.id)
}

/// The lock of the sender: at once, or after the one who has it. Nothing, where somebody waits for
/// that already.
fn take_seat(project: &Project, folder: &StateFolder) -> Result<Option<Hold>, StoreError> {
    let glance = |times: u32| -> Result<Option<Hold>, StoreError> {
        for _ in 0..times {
            if let Held::Ours(seat) = hold(project, folder, SENDER)? {
                return Ok(Some(seat));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(None)
    };
    if let Some(seat) = glance(GLANCES)? {
        return Ok(Some(seat));
    }
    let Held::Ours(_next) = hold(project, folder, NEXT)? else { return Ok(None) };
    glance(TURN_GLANCES_MAX)
}
