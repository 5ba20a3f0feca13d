//! `backstop rules`.

use crate::error::{CliError, usage};
use crate::terminal;
use backstop_classify::{Auditor, Classifier, Rule};
use backstop_core::{Reason, nearest::nearest};
use backstop_report::{RuleDetails, RuleList, RulesAudited, RulesTested};
use backstop_runtime::project::tested_packs;
use clap::{Args, Subcommand};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;

/// List, show and test rules.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Rules {
    #[command(subcommand)]
    pub(crate) action: Option<RulesAction>,
    /// Print every literal of every rule, one per line, for `grep -F -f` or `rg -F -f`
    #[arg(long)]
    pub(crate) literals: bool,
}

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesAction {
    /// List the rules
    List {
        /// Only rules for this reason
        #[arg(long, value_name = "REASON")]
        reason: Option<String>,
        /// Only rules of this pack
        #[arg(long, value_name = "PACK")]
        pack: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one rule with its examples
    Show {
        /// The rule, such as `jest.summary`
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a rule pack and run its examples
    Test {
        /// The rule packs
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run all rules over labelled failures, and list those that are mostly wrong
    Audit {
        /// Corpora: JSON Lines with labels (`kind`), or logs with the passage that says why (`log`,
        /// `chunk`)
        #[arg(required = true, value_name = "CORPUS")]
        files: Vec<PathBuf>,
        /// List rules that decided at least so many failures
        #[arg(long, value_name = "N", default_value_t = 5)]
        least: u32,
        /// Print JSON, with all rules
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Rules) -> Result<(), CliError> {
    if args.literals {
        return literals();
    }
    match &args.action {
        None => list(None, None, false),
        Some(RulesAction::List { reason, pack, json }) => list(reason.as_deref(), pack.as_deref(), *json),
        Some(RulesAction::Show { id, json }) => show(id, *json),
        Some(RulesAction::Test { files, json }) => test(files, *json),
        Some(RulesAction::Audit { files, least, json }) => audit(files, *least, *json),
    }
}

fn literals() -> Result<(), CliError> {
    let classifier = Classifier::builtin();
    let all: BTreeSet<&str> =
        classifier.rules().iter().flat_map(|rule| rule.literals.iter()).map(|l| &**l).collect();
    let lines: String = all.iter().map(|literal| format!("{literal}\n")).collect();
    terminal::print(&lines)
}

fn list(reason: Option<&str>, pack: Option<&str>, json: bool) -> Result<(), CliError> {
    let classifier = Classifier::builtin();
    let reason = reason.map(str::parse::<Reason>).transpose()?;
    if let Some(pack) = pack {
        let known: BTreeSet<&str> = classifier.rules().iter().map(|rule| &*rule.pack).collect();
        if !known.contains(pack) {
            let known: Vec<&str> = known.into_iter().collect();
            return Err(
                usage(format!("there is no pack `{pack}`")).hint(format!("packs are {}", known.join(", ")))
            );
        }
    }
    let wanted =
        |rule: &&Rule| reason.is_none_or(|r| rule.reason() == Some(r)) && pack.is_none_or(|p| rule.pack == p);
    terminal::show(&RuleList(classifier.rules().iter().filter(wanted).collect()), json)
}

fn show(id: &str, json: bool) -> Result<(), CliError> {
    let classifier = Classifier::builtin();
    let Some(rule) = classifier.rules().iter().find(|rule| rule.id == id) else {
        let hint = match nearest(id, classifier.rules().iter().map(|rule| &*rule.id)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`backstop rules list` lists them all".to_owned(),
        };
        return Err(usage(format!("there is no rule `{id}`")).hint(hint));
    };
    terminal::show(&RuleDetails(rule), json)
}

fn test(files: &[PathBuf], json: bool) -> Result<(), CliError> {
    let (rules, examples) = tested_packs(files)?;
    terminal::show(&RulesTested { rules, examples }, json)
}

/// The largest corpus that is read.
const CORPUS_BYTES_MAX: u64 = 512 << 20;

fn audit(files: &[PathBuf], least: u32, json: bool) -> Result<(), CliError> {
    let classifier = Classifier::builtin();
    let mut auditor = Auditor::new(&classifier);
    for path in files {
        let name = path.display().to_string();
        let read = |error| CliError::read(&name, error);
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(read)?;
        file.take(CORPUS_BYTES_MAX).read_to_string(&mut text).map_err(read)?;
        auditor.read(&name, &text).map_err(|bad| {
            usage(bad.to_string()).hint("a row has `id`, `tool`, `kind` and what was seen: see docs/rules.md")
        })?;
    }
    terminal::show(&RulesAudited { audit: auditor.finish(), least }, json)
}
