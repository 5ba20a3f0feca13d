//! `backstop trust`: what a project's configuration runs and reads may take effect.

use super::tools::places;
use crate::error::{CliError, failed, usage};
use crate::{process, terminal};
use backstop_config::Sets;
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_runtime::Project;
use backstop_tools::{ProjectImport, project_imports};
use clap::Args;
use serde_json::json;

/// Trust this project's `backstop.toml`, and the rule packs and scripts that it names, as they are
/// now. It has to be trusted again when one of them changes.
#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Show what takes effect without trust, what needs it, and whether it is trusted
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Revoke the trust
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Trust) -> Result<(), CliError> {
    let around = process::surroundings()?;
    let project = process::open(&[], None)?;
    let candidate = backstop_config::candidate(&around)?;
    let user = project.user_store()?;
    let Some(candidate) = candidate else {
        if args.show {
            return show_trusted(&user.trusted()?, args.json);
        }
        return Err(usage(
            "nothing to trust: there is no backstop.toml between here and the repository's root",
        )
        .hint("docs/config.md says what it may hold"));
    };
    let file = SafeText::new(candidate.file.shown.clone()).line(200);
    let known = user.trusted_hashes(&candidate.canonical)?;
    let trusted = known.as_deref() == Some(candidate.hashes.as_str());
    let state = |word: &str| {
        let json = |sets: &[Sets]| -> Vec<_> {
            let set = |set: &Sets| json!({ "key": set.key, "value": set.value, "line": set.line });
            sets.iter().map(set).collect()
        };
        json!({
            "schema": JSON_SCHEMA, "file": candidate.canonical.display().to_string(),
            "hash": candidate.hash(), "state": word, "sets": json(&candidate.sets),
            "without_trust": json(&candidate.without_trust),
            "covers": candidate.covers().collect::<Vec<_>>(),
        })
    };
    let lines = |head: &str, sets: &[Sets]| {
        let mut text = if sets.is_empty() { String::new() } else { format!("{head}\n") };
        for Sets { key, value, line } in sets {
            let value = SafeText::new(project.redactor.redact(value).into_owned()).line(120);
            text.push_str(&format!("  line {line}: {key} = {value}\n"));
        }
        text
    };
    let covers = || {
        let files: Vec<&str> = candidate.covers().collect();
        format!("trust covers {}: a change in one of them ends it\n", files.join(", "))
    };
    // What the trusted settings take MCP servers from is trusted with them, each file as it is now.
    let imports = |project: &Project| -> Result<Vec<ProjectImport>, CliError> {
        Ok(project_imports(&project.config.mcp().from, &places()?))
    };
    let mut named = imports(&project)?;
    let (word, text) = if args.show {
        let what = if trusted { "trusted" } else { "not trusted" };
        let none = if candidate.sets.is_empty() { "; nothing in it needs trust" } else { "" };
        let changed = match known.as_deref().map(|known| candidate.changes_since(known)) {
            Some(changes) if !trusted => format!(" any more: {}", changes.join(", ")),
            _ => String::new(),
        };
        let needs =
            if trusted { "takes effect because it is trusted:" } else { "ignored until it is trusted:" };
        let text = [
            format!("{file} is {what}{changed}{none}\n"),
            lines(needs, &candidate.sets),
            lines("takes effect without trust:", &candidate.without_trust),
            covers(),
        ];
        (what, text.concat())
    } else if args.revoke {
        let was = user.revoke(&candidate.canonical)?;
        for import in &named {
            user.revoke(&import.file)?;
        }
        let text =
            if was { format!("{file} is trusted no longer\n") } else { format!("{file} was not trusted\n") };
        ("not trusted", text)
    } else {
        if let Some(what) = candidate.unreadable() {
            return Err(failed(format!("{file} cannot be trusted: {what} cannot be covered"))
                .hint("it is no regular file, a link, or larger than 64 MB: put a file in its place"));
        }
        user.trust(&candidate.canonical, &candidate.hashes)?;
        named = imports(&process::open_quietly(&[], None)?)?;
        for import in &named {
            user.trust(&import.file, &import.hash)?;
        }
        let text = [
            format!("{file} is trusted as it is now\n"),
            lines("takes effect from now on:", &candidate.sets),
            covers(),
        ];
        ("trusted", text.concat())
    };
    let mut text = text;
    if word == "trusted" {
        for import in &named {
            let path = SafeText::new(import.file.display().to_string()).line(200);
            let servers = SafeText::new(import.servers.join(", ")).line(200);
            let is = if user.trusted_hashes(&import.file)?.as_deref() == Some(import.hash.as_str()) {
                "trusted"
            } else {
                "not trusted"
            };
            text.push_str(&format!("  MCP servers of {path} ({is}): {servers}\n"));
        }
    }
    if args.json {
        let mut all = state(word);
        all["imports"] = named
            .iter()
            .map(|import| json!({ "file": import.file, "hash": import.hash, "servers": import.servers }))
            .collect();
        return terminal::print(&format!("{}\n", to_json(&all)));
    }
    terminal::print(&text)
}

fn show_trusted(trusted: &[backstop_store::Trusted], json: bool) -> Result<(), CliError> {
    let paths: Vec<String> = trusted.iter().map(|t| t.path.display().to_string()).collect();
    if json {
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({ "schema": JSON_SCHEMA, "trusted": paths }))
        ));
    }
    let mut text = "there is no backstop.toml here\n".to_owned();
    for path in paths {
        text.push_str(&format!("trusted: {}\n", SafeText::new(path).line(400)));
    }
    terminal::print(&text)
}
