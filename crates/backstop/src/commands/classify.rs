//! `backstop classify`.

use crate::error::{CliError, DONE, ErrorKind, FAILED, failed, usage};
use crate::process::now;
use crate::{process, terminal};
use backstop_classify::{BatchRows, Classifier};
use backstop_config::LogFormat;
use backstop_core::{Condition, Signal, Surface, signal_number};
use backstop_runtime::project::classifier_with_packs;
use clap::Args;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Say what a failure is.
///
/// Reads the output of a failed command, or the body of a failed response, from files or standard
/// input. Several files are parts of one failure, in order. Exits 0 whatever the fault is; with
/// `--is`, the exit code is the answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  npm test > out.log 2>&1; backstop classify --exit $? out.log\n  \
    curl -sS URL | backstop classify --status 429 --header 'retry-after: 30'\n  \
    make > out.log 2>&1 || { backstop classify --exit $? --is retryable out.log && make; }\n  \
    backstop classify --batch < failures.jsonl")]
pub(crate) struct Classify {
    /// Files to read (default: standard input, as is `-`)
    pub(crate) files: Vec<PathBuf>,
    /// The exit code of the command; 0 is success, whatever the output says
    #[arg(long, value_name = "CODE", allow_hyphen_values = true, conflicts_with_all = ["signal", "status", "headers", "errno"])]
    pub(crate) exit: Option<i64>,
    /// The signal that ended the command, by number or name
    #[arg(long, value_name = "SIGNAL", hide_short_help = true)]
    pub(crate) signal: Option<String>,
    /// A timeout ended the command
    #[arg(long, hide_short_help = true)]
    pub(crate) timed_out: bool,
    /// The command line; it tells which program failed
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// The HTTP status of the response; the input is its body
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..600))]
    pub(crate) status: Option<u16>,
    /// A header of the response, as `name: value`; may be given several times
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// The errno or error code of the client, such as ECONNRESET
    #[arg(long, value_name = "ERRNO", hide_short_help = true)]
    pub(crate) errno: Option<String>,
    /// The provider that answered, such as `openai`
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) provider: Option<String>,
    /// A rule pack of your own; may be given several times
    #[arg(long = "rules", value_name = "FILE", hide_short_help = true)]
    pub(crate) packs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing, and exit 0 if the failure is `retryable`, of this class (transient,
    /// permanent, user, system) or of this reason, else 1; may be given several times
    #[arg(long = "is", value_name = "WHAT", conflicts_with = "batch")]
    pub(crate) is: Vec<String>,
    /// Do not ask the learned back-off where no rule is sure
    #[arg(long)]
    pub(crate) rules_only: bool,
    /// Read one JSON object per line, print one per line
    #[arg(long, conflicts_with_all = ["exit", "signal", "timed_out", "command", "status", "headers", "errno", "provider"])]
    pub(crate) batch: bool,
}

pub(crate) fn run(args: &Classify, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let json = match log_format {
        Some(LogFormat::Json) => true,
        Some(LogFormat::Emit) => {
            return Err(usage("`classify` records no events, so it has no format `emit`")
                .hint("`backstop classify --json` prints JSON"));
        }
        Some(LogFormat::Human) | None => args.json,
    };
    let conditions = args.is.iter().map(|word| word.parse()).collect::<Result<Vec<Condition>, _>>();
    let conditions = conditions.map_err(|error| {
        CliError::from(error).hint("or `retryable`, or a class: transient, permanent, user, system")
    })?;
    match classify(args, json, &conditions) {
        Ok(code) => Ok(code),
        // 1 is an answer: what could not be read must not look like it.
        Err(mut error) if !conditions.is_empty() => {
            error.kind = ErrorKind::Usage;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

fn classify(args: &Classify, json: bool, conditions: &[Condition]) -> Result<u8, CliError> {
    let classifier = classifier(&args.packs)?.learning(!args.rules_only);
    if args.batch {
        return batch(&classifier, open(&args.files)?).map(|()| DONE);
    }
    let mut signal = signal(args)?;
    let reader = open(&args.files)?;
    let fault = if signal.surface == Surface::Response {
        // An answer is read whole: it is small, and what is beyond this limit says nothing about
        // why it failed.
        read_bounded(reader, &mut signal.stdout).map_err(|error| read_error(&args.files, error))?;
        classifier.classify(&signal)
    } else {
        classifier.classify_reader(&signal, reader).map_err(|error| read_error(&args.files, error))?
    };
    if json {
        terminal::print_json(&backstop_report::fault_json(fault.as_ref()))?;
    } else if conditions.is_empty() {
        let style = terminal::stdout_style();
        terminal::print(&match &fault {
            Some(fault) => backstop_report::fault(fault, style),
            None => backstop_report::success(style),
        })?;
    }
    if conditions.is_empty() {
        return Ok(DONE);
    }
    let holds = fault.is_some_and(|fault| conditions.iter().any(|condition| condition.holds(&fault)));
    Ok(if holds { DONE } else { FAILED })
}

/// One JSON object a line in, one a line out.
fn batch(classifier: &Classifier, input: impl Read) -> Result<(), CliError> {
    let mut bad = 0;
    for row in BatchRows::new(input, now) {
        let row = row.map_err(|error| CliError::read("standard input", error))?;
        terminal::print_json(&match row.signal {
            Ok((id, signal)) => {
                let mut answer = backstop_report::fault_json(classifier.classify(&signal).as_ref());
                answer["id"] = id;
                answer
            }
            Err(error) => {
                bad += 1;
                json!({ "line": row.line, "error": terminal::redactor().redact(&error) })
            }
        })?;
    }
    if bad == 0 {
        return Ok(());
    }
    Err(failed(format!("{bad} of the batch's lines could not be read; each is answered with an error"))
        .hint("look for answers with an `error` field"))
}

/// How much of an answer's body is read.
const BODY_BYTES_MAX: u64 = 2 << 20;

fn read_bounded(reader: impl Read, into: &mut Vec<u8>) -> std::io::Result<()> {
    reader.take(BODY_BYTES_MAX).read_to_end(into).map(|_| ())
}

/// The classifier with the packs that were named.
fn classifier(packs: &[PathBuf]) -> Result<Classifier, CliError> {
    let classifier = if packs.is_empty() { Classifier::builtin() } else { classifier_with_packs(packs)?.0 };
    Ok(classifier.redacting(terminal::redactor().as_ref().clone()).in_zone(process::zone()))
}

fn signal(args: &Classify) -> Result<Signal, CliError> {
    let answered = args.status.is_some() || !args.headers.is_empty() || args.errno.is_some();
    Ok(Signal {
        surface: if answered && args.exit.is_none() { Surface::Response } else { Surface::Command },
        command: args.command.clone(),
        exit: args.exit,
        signal: args.signal.as_deref().map(signal_given).transpose()?,
        timed_out: args.timed_out,
        status: args.status,
        headers: args.headers.iter().map(|h| header(h)).collect::<Result<_, _>>()?,
        errno: args.errno.clone(),
        provider: args.provider.clone(),
        at: Some(now()),
        ..Signal::default()
    })
}

fn header(text: &str) -> Result<(String, String), CliError> {
    let error = || {
        usage(format!("`{text}` is no header: write it as `name: value`"))
            .hint("for example: `--header 'retry-after: 30'`")
    };
    let (name, value) = text.split_once(':').ok_or_else(error)?;
    if name.trim().is_empty() || name.contains(char::is_whitespace) {
        return Err(error());
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn signal_given(text: &str) -> Result<i64, CliError> {
    signal_number(text).ok_or_else(|| {
        usage(format!("`{text}` is no signal: use a number from 1 to 64, or a name such as SIGTERM"))
            .hint("for example: `backstop classify --signal SIGSEGV out.log`")
    })
}

/// The files one after the other, or standard input.
fn open(files: &[PathBuf]) -> Result<Box<dyn Read + Send>, CliError> {
    let mut all: Box<dyn Read + Send> = match files {
        [] => {
            terminal::tell_waiting();
            return Ok(Box::new(std::io::stdin()));
        }
        _ => Box::new(std::io::empty()),
    };
    for file in files {
        let next: Box<dyn Read + Send> = if file == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            let opened = File::open(file).map_err(|error| CliError::read(file, error))?;
            Box::new(opened)
        };
        all = if files.len() == 1 { next } else { Box::new(all.chain(next)) };
    }
    Ok(all)
}

fn read_error(files: &[PathBuf], error: std::io::Error) -> CliError {
    CliError::read(files.first().cloned().unwrap_or_else(|| "standard input".into()), error)
}
