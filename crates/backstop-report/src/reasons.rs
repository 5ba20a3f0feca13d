//! The taxonomy: a table of all reasons, and a page for each.

use crate::{JSON_SCHEMA, Style, table};
use backstop_core::{Reason, SEED_NAMES, TAXONOMY};
use serde_json::{Value, json};

/// The taxonomy as a table for a terminal.
pub fn reasons_table(style: Style) -> String {
    let rows: Vec<Vec<String>> = TAXONOMY
        .iter()
        .map(|row| {
            vec![
                row.code.to_owned(),
                row.class.to_string(),
                row.severity.to_string(),
                row.retry.to_string(),
                row.remedy.to_owned(),
            ]
        })
        .collect();
    let text = table(&["REASON", "CLASS", "SEVERITY", "RETRY", "REMEDY"], &rows);
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{}\n{body}", style.strong(head))
}

/// The taxonomy as a Markdown table, with a link to each page.
pub fn reasons_markdown() -> String {
    let mut out = String::from("| reason | class | severity | retry | remedy |\n|---|---|---|---|---|\n");
    for row in TAXONOMY {
        out.push_str(&format!(
            "| [`{code}`](reasons/{code}.md) | {} | {} | {} | {} |\n",
            row.class,
            row.severity,
            row.retry,
            row.remedy,
            code = row.code
        ));
    }
    out
}

/// The taxonomy as JSON.
pub fn reasons_json() -> Value {
    let rows: Vec<Value> = TAXONOMY
        .iter()
        .map(|row| {
            json!({
                "reason": row.code, "class": row.class, "severity": row.severity, "retry": row.retry,
                "retryable": row.reason.retryable(), "remedy": row.remedy, "causes": row.causes, "next_steps": row.next_steps,
                "also_called": also_called(row.reason),
            })
        })
        .collect();
    json!({ "schema": JSON_SCHEMA, "reasons": rows })
}

/// One reason as JSON.
pub fn reason_json(reason: Reason) -> Option<Value> {
    let all = reasons_json();
    let rows = all["reasons"].as_array()?;
    let mut row = rows.iter().find(|row| row["reason"] == reason.code()).cloned()?;
    row["schema"] = all["schema"].clone();
    Some(row)
}

/// The page of a reason, in Markdown.
pub fn reason_page(reason: Reason) -> String {
    let row = reason.info();
    let mut out = format!("# {}\n\n{}.\n\n", row.code, sentence(row.remedy));
    let again = if reason.retryable() { "yes" } else { "no" };
    out.push_str("| class | severity | retry | the same again has a fair chance |\n|---|---|---|---|\n");
    out.push_str(&format!("| {} | {} | {} | {again} |\n\n", row.class, row.severity, row.retry));
    out.push_str("## Possible causes\n\n");
    for cause in row.causes {
        out.push_str(&format!("- {cause}\n"));
    }
    out.push_str("\n## What to do\n\n");
    for (n, step) in row.next_steps.iter().enumerate() {
        out.push_str(&format!("{}. {step}\n", n + 1));
    }
    out.push_str(&format!(
        "\n`backstop rules list --reason {}` lists the rules that recognise it.\n",
        row.code
    ));
    let also = also_called(reason);
    if !also.is_empty() {
        let names: Vec<String> = also.iter().map(|name| format!("`{name}`")).collect();
        out.push_str(&format!("\nAlso called: {}.\n", names.join(", ")));
    }
    out
}

fn also_called(reason: Reason) -> Vec<&'static str> {
    let mut names: Vec<&str> =
        SEED_NAMES.iter().filter(|n| n.reason == reason && n.name != reason.code()).map(|n| n.name).collect();
    names.dedup();
    names
}

/// The text with its first letter in upper case.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_all_its_parts() {
        insta::assert_snapshot!(reason_page(Reason::RateLimited));
    }

    #[test]
    fn every_reason_has_a_row_and_a_page() {
        let table = reasons_table(Style::PLAIN);
        assert_eq!(table.lines().count(), TAXONOMY.len() + 1);
        assert_eq!(reasons_markdown().lines().count(), TAXONOMY.len() + 2);
        for reason in Reason::all() {
            assert!(reason_page(reason).contains("## What to do\n\n1. "), "{reason}");
        }
    }
}
