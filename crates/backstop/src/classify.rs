//! `backstop classify`.

use crate::cli::Classify;
use crate::context::{Context, now};
use crate::error::CliError;
use crate::{batch, terminal};
use backstop_classify::{Classifier, Rule, check_examples, pack};
use backstop_core::{Redactor, Signal, Surface, signal_number};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &Classify) -> Result<(), CliError> {
    let classifier = classifier(&args.packs)?;
    if args.batch {
        return batch::run(&classifier, open(&args.files)?);
    }
    let mut signal = signal(args)?;
    let reader = open(&args.files)?;
    let fault = if signal.surface == Surface::Response {
        // An answer is read whole: it is small, and what is beyond this limit says nothing about why it failed.
        read_bounded(reader, &mut signal.stdout).map_err(|error| read_error(&args.files, error))?;
        classifier.classify(&signal)
    } else {
        classifier.classify_reader(&signal, reader).map_err(|error| read_error(&args.files, error))?
    };
    if args.json {
        return terminal::print(&format!(
            "{}\n",
            backstop_report::to_json(&backstop_report::fault_json(fault.as_ref()))
        ));
    }
    let style = terminal::stdout_style();
    terminal::print(&match &fault {
        Some(fault) => backstop_report::fault(fault, style),
        None => backstop_report::success(style),
    })
}

/// How much of an answer's body is read.
const BODY_BYTES_MAX: u64 = 2 << 20;

fn read_bounded(reader: impl Read, into: &mut Vec<u8>) -> std::io::Result<()> {
    reader.take(BODY_BYTES_MAX).read_to_end(into).map(|_| ())
}

/// The classifier with the packs that were named.
pub(crate) fn classifier(packs: &[PathBuf]) -> Result<Classifier, CliError> {
    classifier_with(packs, &terminal::redactor())
}

/// The classifier with the packs that were named, and this redactor.
pub(crate) fn classifier_with(packs: &[PathBuf], redactor: &Redactor) -> Result<Classifier, CliError> {
    let classifier = if packs.is_empty() { Classifier::builtin() } else { with_packs(packs)?.0 };
    Ok(classifier.redacting(redactor.clone()))
}

/// The classifier of a project. Where a pack of it cannot be used, that is told, and the built-in rules have to do.
pub(crate) fn classifier_or_builtin(context: &Context, tell: impl FnOnce(&CliError)) -> Classifier {
    classifier_with(&context.config.packs(), &context.redactor).unwrap_or_else(|error| {
        tell(&error);
        Classifier::builtin().redacting(context.redactor.as_ref().clone())
    })
}

/// The classifier with these packs, and the ids of their rules. A pack whose examples fail is refused.
pub(crate) fn with_packs(packs: &[PathBuf]) -> Result<(Classifier, BTreeSet<String>), CliError> {
    let rules = read_packs(packs)?;
    let ids: BTreeSet<String> = rules.iter().map(|rule| rule.id.to_string()).collect();
    let classifier = Classifier::with_packs(rules)?;
    let failures = check_examples(&classifier, |rule| ids.contains(&*rule.id));
    if failures.is_empty() { Ok((classifier, ids)) } else { Err(CliError::Examples(failures)) }
}

/// Reads packs and checks them.
fn read_packs(files: &[PathBuf]) -> Result<Vec<Rule>, CliError> {
    let mut rules = Vec::new();
    for file in files {
        let read_error = |error| CliError::Read { file: file.clone(), error };
        let mut bytes = Vec::new();
        let opened = File::open(file).map_err(read_error)?;
        opened.take(pack::PACK_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(read_error)?;
        let source = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..at];
            let line = before.iter().filter(|b| **b == b'\n').count() + 1;
            let column = at - before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1) + 1;
            CliError::Pack(backstop_classify::PackError {
                file: file.display().to_string(),
                line,
                column,
                message: "the pack is not UTF-8".to_owned(),
                hint: None,
            })
        })?;
        rules.extend(pack::parse(&file.display().to_string(), &source)?);
    }
    Ok(rules)
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
    let error = || CliError::Header { given: text.to_owned() };
    let (name, value) = text.split_once(':').ok_or_else(error)?;
    if name.trim().is_empty() || name.contains(char::is_whitespace) {
        return Err(error());
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn signal_given(text: &str) -> Result<i64, CliError> {
    signal_number(text).ok_or_else(|| CliError::Signal { given: text.to_owned() })
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
            let opened = File::open(file).map_err(|error| CliError::Read { file: file.clone(), error })?;
            Box::new(opened)
        };
        all = if files.len() == 1 { next } else { Box::new(all.chain(next)) };
    }
    Ok(all)
}

fn read_error(files: &[PathBuf], error: std::io::Error) -> CliError {
    CliError::Read { file: files.first().cloned().unwrap_or_else(|| "standard input".into()), error }
}
