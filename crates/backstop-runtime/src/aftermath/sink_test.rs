//! A test message through a sink, now, and what came of it.

use super::sender::{runtime, with_secret};
use crate::project::{Project, ProjectError};
use backstop_core::{ErrorKind, HintedError, SafeText, Severity};
use backstop_engine::Engine;
use backstop_notify::{
    About, DeliveryOutcome, Message, Resolved, Sink, SinkError, SinkKind, Times, deliver, sinks,
};
use backstop_report::{SinkTest, notify_test};

/// Why nothing can be tested.
#[derive(Debug, thiserror::Error)]
pub enum SinkTestError {
    /// No sink is configured.
    #[error("no sink is configured here")]
    None,
    /// There is no sink of this name.
    #[error("there is no sink `{given}`")]
    Unknown {
        /// The name.
        given: String,
        /// Those that are configured.
        known: Vec<String>,
    },
    /// The project cannot be used.
    #[error("{0}")]
    Project(#[from] ProjectError),
}

impl HintedError for SinkTestError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::None | Self::Unknown { .. } => ErrorKind::Usage,
            Self::Project(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unknown { known, .. } if !known.is_empty() => {
                vec![format!("sinks are {}", known.join(", "))]
            }
            Self::None | Self::Unknown { .. } => vec![
                "for example: `[notify.here]` with `type = \"terminal\"` in the configuration; `backstop \
                 config keys` lists what a sink has"
                    .to_owned(),
            ],
            Self::Project(error) => error.hints(),
        }
    }

    fn is_multiline(&self) -> bool {
        matches!(self, Self::Project(error) if error.is_multiline())
    }
}

/// Sends a test message to one sink, or to all. `on_terminal` is given the message of a sink that
/// is the terminal; `on_result` what came of each, as soon as it is known.
pub fn test_sinks(
    project: &Project,
    only: Option<&str>,
    on_terminal: &dyn Fn(&str),
    on_result: &mut dyn FnMut(&SinkTest),
) -> Result<Vec<SinkTest>, SinkTestError> {
    let all = sinks(&project.config);
    let known: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let chosen: Vec<_> = all.into_iter().filter(|(name, _)| only.is_none_or(|only| only == name)).collect();
    if chosen.is_empty() {
        return Err(only.map_or(SinkTestError::None, |name| SinkTestError::Unknown {
            given: SafeText::new(name).line(60),
            known,
        }));
    }
    let engine = Engine::new(project.config.policy("request").map_err(ProjectError::from)?);
    let runtime = runtime(project)?;
    let mut tests = Vec::new();
    for (name, sink) in chosen {
        let test = match sink {
            Ok(sink) => runtime.block_on(test(&engine, project, name, sink, on_terminal)),
            Err(error) => misconfigured(project, name, &error),
        };
        on_result(&test);
        tests.push(test);
    }
    Ok(tests)
}

fn misconfigured(project: &Project, name: String, error: &SinkError) -> SinkTest {
    let response = project.redactor.redact(&error.to_string()).into_owned();
    SinkTest { name, sink: None, sent: false, response, hint: Some(error.hint()), attempts: 0 }
}

async fn test(
    engine: &Engine,
    project: &Project,
    name: String,
    sink: Sink,
    on_terminal: &dyn Fn(&str),
) -> SinkTest {
    let masked = |text: &str| project.redactor.redact(text).into_owned();
    let row = Some((sink.kind.name(), sink.place()));
    let mut test =
        SinkTest { name, sink: row, sent: false, response: String::new(), hint: None, attempts: 0 };
    let (sink, credential) = match with_secret(project, sink) {
        Resolved::Sink(sink, credential) => (*sink, credential),
        Resolved::NoSecret { variable } => {
            test.response = masked(&format!("the variable {variable} is not set"));
            let hint = format!("`export {variable}=…`, where the commands run that are to tell somebody");
            return SinkTest { hint: Some(hint), ..test };
        }
        Resolved::Gone(why) => return SinkTest { response: masked(why.raw()), ..test },
    };
    let now = project.process.now();
    let about = About {
        outcome: "test".to_owned(),
        severity: Severity::Low,
        reason: None,
        operation: "backstop notify test".into(),
        project: SafeText::new(project.root.to_string_lossy()),
        run: None,
        at: now,
    };
    let message = Message::new(&notify_test(&SafeText::new(sink.name.as_str()), now), about);
    if sink.kind == SinkKind::Terminal {
        on_terminal(&message.plain);
    }
    let times = Times { count: 1, first: now, last: now, mixed: false, names: Vec::new() };
    let response;
    (test.sent, response, test.attempts) =
        match deliver(engine, &project.process.http_client(), &sink, credential.as_ref(), &message, &times)
            .await
        {
            DeliveryOutcome::Sent { response, attempts } => (true, response, attempts),
            DeliveryOutcome::Later { why, attempts, .. } | DeliveryOutcome::Refused { why, attempts } => {
                (false, why, attempts)
            }
        };
    test.response = masked(response.raw());
    test
}
