//! `backstop rules`.

use crate::error::{CliError, usage};
use crate::terminal;
use backstop_classify::{Classifier, Example, Rule, RuleOutcome};
use backstop_core::{Reason, SafeText, nearest::nearest};
use backstop_runtime::project::{classifier_with_packs, effects_with_packs};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
    }
}

fn literals() -> Result<(), CliError> {
    let classifier = Classifier::builtin();
    let all: BTreeSet<&str> =
        classifier.rules().iter().flat_map(|rule| rule.literals.iter()).map(|l| &**l).collect();
    let lines: String = all.iter().map(|literal| format!("{literal}\n")).collect();
    terminal::print(&lines)
}

fn list(reason: Option<&str>, pack: Option<&str>, as_json: bool) -> Result<(), CliError> {
    let classifier = Classifier::builtin();
    let reason = reason.map(str::parse::<Reason>).transpose()?;
    if let Some(pack) = pack {
        let known: BTreeSet<String> = classifier.rules().iter().map(|rule| rule.pack.to_string()).collect();
        if !known.contains(pack) {
            let known: Vec<String> = known.into_iter().collect();
            return Err(
                usage(format!("there is no pack `{pack}`")).hint(format!("packs are {}", known.join(", ")))
            );
        }
    }
    let wanted =
        |rule: &&Rule| reason.is_none_or(|r| rule.reason() == Some(r)) && pack.is_none_or(|p| rule.pack == p);
    let rules: Vec<&Rule> = classifier.rules().iter().filter(wanted).collect();
    if as_json {
        let rows: Vec<Value> = rules.iter().map(|rule| rule_json(rule)).collect();
        let all = json!({ "schema": backstop_report::JSON_SCHEMA, "rules": rows });
        return terminal::print(&format!("{}\n", backstop_report::to_json(&all)));
    }
    if rules.is_empty() {
        return terminal::print("no rule: this is only ever reported by name, or derived\n");
    }
    let rows: Vec<Vec<String>> = rules
        .iter()
        .map(|rule| {
            vec![
                rule.id.to_string(),
                outcome(rule),
                rule.tier().to_owned(),
                rule.pack.to_string(),
                looks_for(rule),
            ]
        })
        .collect();
    terminal::print(&backstop_report::table(&["RULE", "REASON", "TIER", "PACK", "LOOKS FOR"], &rows))
}

fn outcome(rule: &Rule) -> String {
    match rule.outcome {
        RuleOutcome::Reason(reason) => reason.to_string(),
        RuleOutcome::Status => "by HTTP status".to_owned(),
    }
}

/// What a rule looks for, in a few words.
fn looks_for(rule: &Rule) -> String {
    let mut parts = Vec::new();
    if let Some(literal) = rule.literals.first() {
        parts.push(SafeText::new(format!("{literal:?}")).line(50));
    }
    let numbers =
        |name: &str, list: Vec<String>| (!list.is_empty()).then(|| format!("{name} {}", list.join(" ")));
    parts.extend(numbers("exit", rule.exit.iter().map(ToString::to_string).collect()));
    parts.extend(numbers("signal", rule.signal.iter().map(ToString::to_string).collect()));
    parts.extend(numbers("status", rule.status.iter().take(6).map(ToString::to_string).collect()));
    parts.extend(numbers("errno", rule.errno.iter().take(4).map(ToString::to_string).collect()));
    parts.extend(numbers("program", rule.program.iter().take(4).map(ToString::to_string).collect()));
    if rule.timed_out {
        parts.push("timed out".to_owned());
    }
    parts.join(", ")
}

fn show(id: &str, as_json: bool) -> Result<(), CliError> {
    let classifier = Classifier::builtin();
    let Some(rule) = classifier.rules().iter().find(|rule| rule.id == id) else {
        let hint = match nearest(id, classifier.rules().iter().map(|rule| &*rule.id)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`backstop rules list` lists them all".to_owned(),
        };
        return Err(usage(format!("there is no rule `{id}`")).hint(hint));
    };
    if as_json {
        return terminal::print(&format!("{}\n", backstop_report::to_json(&rule_json(rule))));
    }
    let mut out = format!("{} · {} · {} ({})\n", rule.id, outcome(rule), rule.tier(), rule.weight.0);
    out.push_str(&format!("  pack     {} (from line {} of {})\n", rule.pack, rule.pack_line, rule.source));
    out.push_str(&format!("  looks    {}\n", looks_for(rule)));
    if let Some(regex) = &rule.regex {
        out.push_str(&format!("  regex    {}\n", SafeText::new(&**regex)));
    }
    if let Some(next) = &rule.next {
        out.push_str(&format!("  next     {next}\n"));
    }
    for (name, list) in [("match", &rule.matches), ("miss", &rule.misses)] {
        for example in list.iter() {
            out.push_str(&format!("  {name:8} {}\n", example_line(example)));
        }
    }
    terminal::print(&out)
}

fn example_line(example: &Example) -> String {
    let mut parts = Vec::new();
    parts.extend(example.command.as_ref().map(|c| format!("command {c:?}")));
    parts.extend(example.exit.map(|n| format!("exit {n}")));
    parts.extend(example.signal.map(|n| format!("signal {n}")));
    parts.extend(example.status.map(|n| format!("status {n}")));
    parts.extend(example.errno.as_ref().map(|e| format!("errno {e}")));
    if example.timed_out {
        parts.push("timed out".to_owned());
    }
    if !example.text.is_empty() {
        parts.push(SafeText::new(example.text.to_string()).line(120));
    }
    parts.join(", ")
}

fn rule_json(rule: &Rule) -> Value {
    json!({
        "schema": backstop_report::JSON_SCHEMA, "id": rule.id, "pack": rule.pack, "line": rule.pack_line, "reason": rule.reason().map(Reason::code), "tier": rule.tier(),
        "weight": rule.weight.0, "literals": rule.literals, "regex": rule.regex, "exit": rule.exit, "signal": rule.signal,
        "status": rule.status, "errno": rule.errno, "program": rule.program, "next": rule.next,
        "match": rule.matches.iter().map(|e| e.text.clone()).collect::<Vec<_>>(),
        "miss": rule.misses.iter().map(|e| e.text.clone()).collect::<Vec<_>>(),
    })
}

fn test(files: &[PathBuf], as_json: bool) -> Result<(), CliError> {
    let (classifier, ids) = classifier_with_packs(files)?;
    let (effects, effect_ids) = effects_with_packs(files)?;
    let of_effects: usize = effects
        .rules()
        .iter()
        .filter(|rule| effect_ids.contains(&*rule.id))
        .map(|rule| rule.matches.len() + rule.misses.len())
        .sum();
    let of_rules: usize = classifier
        .rules()
        .iter()
        .filter(|r| ids.contains(&*r.id))
        .map(|r| r.matches.len() + r.misses.len())
        .sum();
    let (count, examples) = (ids.len() + effect_ids.len(), of_rules + of_effects);
    if as_json {
        let answer = json!({ "schema": backstop_report::JSON_SCHEMA, "rules": count, "examples": examples, "ok": true });
        return terminal::print(&format!("{}\n", backstop_report::to_json(&answer)));
    }
    let noun = if count == 1 { "rule" } else { "rules" };
    terminal::print(&format!("{count} {noun}, {examples} examples: all as they should be\n"))
}
