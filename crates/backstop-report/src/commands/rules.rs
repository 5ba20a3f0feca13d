//! Rules: a list, one with its examples, and how a pack's examples came out.

use crate::{JSON_SCHEMA, Style, View, table};
use backstop_classify::{Audit, Example, Rule, RuleOutcome, RuleRecord};
use backstop_core::{Reason, SafeText};
use serde_json::{Value, json};

/// Some rules, in the given order.
#[derive(Debug, Clone)]
pub struct RuleList<'r>(pub Vec<&'r Rule>);

impl View for RuleList<'_> {
    fn text(&self, _: Style) -> String {
        if self.0.is_empty() {
            return "no rule: this is only ever reported by name, or derived\n".to_owned();
        }
        let row = |rule: &&Rule| {
            vec![
                rule.id.to_string(),
                outcome(rule),
                rule.tier().to_owned(),
                rule.pack.to_string(),
                looks_for(rule),
            ]
        };
        let rows: Vec<Vec<String>> = self.0.iter().map(row).collect();
        table(&["RULE", "REASON", "TIER", "PACK", "LOOKS FOR"], &rows)
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self.0.iter().map(|rule| rule_json(rule)).collect();
        json!({ "schema": JSON_SCHEMA, "rules": rows })
    }
}

/// One rule with its examples.
#[derive(Debug, Clone)]
pub struct RuleDetails<'r>(pub &'r Rule);

impl View for RuleDetails<'_> {
    fn text(&self, _: Style) -> String {
        let rule = self.0;
        let mut out = format!("{} · {} · {} ({})\n", rule.id, outcome(rule), rule.tier(), rule.weight.0);
        out.push_str(&format!(
            "  pack     {} (from line {} of {})\n",
            rule.pack, rule.pack_line, rule.source
        ));
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
        out
    }

    fn json(&self) -> Value {
        rule_json(self.0)
    }
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

fn example_line(example: &Example) -> String {
    let mut parts = Vec::new();
    parts.extend(example.command.as_ref().map(|command| format!("command {command:?}")));
    parts.extend(example.exit.map(|code| format!("exit {code}")));
    parts.extend(example.signal.map(|signal| format!("signal {signal}")));
    parts.extend(example.status.map(|status| format!("status {status}")));
    parts.extend(example.errno.as_ref().map(|errno| format!("errno {errno}")));
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
        "schema": JSON_SCHEMA, "id": rule.id, "pack": rule.pack, "line": rule.pack_line,
        "reason": rule.reason().map(Reason::code), "tier": rule.tier(), "weight": rule.weight.0,
        "literals": rule.literals, "regex": rule.regex, "exit": rule.exit, "signal": rule.signal,
        "status": rule.status, "errno": rule.errno, "program": rule.program, "next": rule.next,
        "match": rule.matches.iter().map(|example| example.text.clone()).collect::<Vec<_>>(),
        "miss": rule.misses.iter().map(|example| example.text.clone()).collect::<Vec<_>>(),
    })
}

/// Packs whose examples are all as they should be.
#[derive(Debug, Clone, Copy)]
pub struct RulesTested {
    /// The number of rules.
    pub rules: usize,
    /// The number of their examples.
    pub examples: usize,
}

impl View for RulesTested {
    fn text(&self, _: Style) -> String {
        let noun = if self.rules == 1 { "rule" } else { "rules" };
        format!("{} {noun}, {} examples: all as they should be\n", self.rules, self.examples)
    }

    fn json(&self) -> Value {
        json!({ "schema": JSON_SCHEMA, "rules": self.rules, "examples": self.examples, "ok": true })
    }
}

/// How all rules did on labelled failures.
#[derive(Debug, Clone)]
pub struct RulesAudited {
    /// What each rule did.
    pub audit: Audit,
    /// How many failures a rule must have decided to be listed.
    pub least: u32,
}

impl RulesAudited {
    fn listed(&self) -> Vec<&RuleRecord> {
        self.audit.rules.iter().filter(|record| record.is_mostly_wrong(self.least)).collect()
    }
}

impl View for RulesAudited {
    fn text(&self, _: Style) -> String {
        let listed = self.listed();
        let failures = self.audit.rows;
        if listed.is_empty() {
            return format!(
                "{failures} failures: no rule that decided {} or more is mostly wrong\n",
                self.least
            );
        }
        let row = |record: &&RuleRecord| {
            vec![
                record.id.clone(),
                record.decided.to_string(),
                record.wrong.to_string(),
                record.matched.to_string(),
                record.misfired.to_string(),
                record.tools.to_string(),
                record.example.as_deref().map(|id| SafeText::new(id).line(40)).unwrap_or_default(),
            ]
        };
        let rows: Vec<Vec<String>> = listed.iter().map(row).collect();
        let head = ["RULE", "DECIDED", "WRONG", "MATCHED", "MISFIRED", "TOOLS", "EXAMPLE"];
        format!("{failures} failures; these rules are mostly wrong:\n{}", table(&head, &rows))
    }

    fn json(&self) -> Value {
        let row = |record: &RuleRecord| {
            json!({
                "id": record.id, "decided": record.decided, "wrong": record.wrong,
                "matched": record.matched, "misfired": record.misfired, "tools": record.tools,
                "example": record.example, "mostly_wrong": record.is_mostly_wrong(self.least),
            })
        };
        let rules: Vec<Value> = self.audit.rules.iter().map(row).collect();
        json!({ "schema": JSON_SCHEMA, "failures": self.audit.rows, "rules": rules })
    }
}
