//! `backstop config`, `backstop trust` and `backstop clean`.

use crate::cli::{Clean, Config, ConfigAction, Trust};
use crate::context::{self, Context};
use crate::error::CliError;
use crate::terminal;
use backstop_config::environment;
use backstop_config::{self as config, Given};
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, to_json};
use serde_json::json;

pub(crate) fn config(args: &Config) -> Result<(), CliError> {
    let print = |value| terminal::print(&format!("{}\n", to_json(&value)));
    match args.action {
        ConfigAction::Show { origin, json } => {
            let context = Context::new(&[], None)?;
            if json {
                return print(config::show_json(&context.config));
            }
            terminal::print(&config::show(&context.config, origin))?;
            terminal::warn_inert(&context.config);
            Ok(())
        }
        ConfigAction::Keys => terminal::print(&config::markdown()),
        ConfigAction::Env => terminal::print(&environment::markdown()),
        ConfigAction::Check { json } => match Context::new(&[], None) {
            Ok(context) if json => print(config::check_json(Ok(&context.config))),
            Ok(context) => {
                let sinks = backstop_notify::sinks(&context.config).into_iter();
                let wrong = sinks.filter_map(|(_, sink)| sink.err());
                let wrong: Vec<String> = wrong.map(|error| format!("{error}; {}", error.hint())).collect();
                terminal::print(&config::check(&context.config, &wrong))
            }
            Err(CliError::Config(error)) if json => {
                print(config::check_json(Err(&error)))?;
                Err(CliError::Config(error))
            }
            Err(error) => Err(error),
        },
    }
}

pub(crate) fn trust(args: &Trust) -> Result<(), CliError> {
    let around = context::surroundings()?;
    let context = Context::new(&[], None);
    // A file with mistakes can still be shown and distrusted, but not trusted.
    let candidate = config::candidate(&around);
    let context = match (context, args.revoke || args.show) {
        (Ok(context), _) => context,
        (Err(error), _) => return Err(error),
    };
    let user = context.user_store()?;
    let Some(candidate) = candidate? else {
        if args.show {
            return show_trusted(&user.trusted()?, args.json);
        }
        return Err(CliError::NothingToTrust);
    };
    let file = SafeText::new(candidate.file.shown.clone()).line(200);
    let trusted = user.is_trusted(&candidate.canonical, &candidate.hash)?;
    let state = |word: &str| {
        let sets: Vec<_> = candidate
            .sets
            .iter()
            .map(|(key, value, line)| json!({ "key": key, "value": value, "line": line }))
            .collect();
        json!({ "schema": JSON_SCHEMA, "file": candidate.canonical.display().to_string(), "hash": candidate.hash, "state": word, "sets": sets })
    };
    let words = |head: String| {
        let mut text = head;
        for (key, value, line) in &candidate.sets {
            let value = SafeText::new(context.redactor.redact(value).into_owned()).line(120);
            text.push_str(&format!("  line {line}: {key} = {value}\n"));
        }
        text
    };
    let (word, text) = if args.show {
        let what = if trusted { "trusted" } else { "not trusted" };
        let none = if candidate.sets.is_empty() { "; nothing in it needs trust" } else { "" };
        (what, words(format!("{file} is {what}{none}\n")))
    } else if args.revoke {
        let was = user.revoke(&candidate.canonical)?;
        let text =
            if was { format!("{file} is trusted no longer\n") } else { format!("{file} was not trusted\n") };
        ("not trusted", text)
    } else {
        user.trust(&candidate.canonical, &candidate.hash)?;
        ("trusted", words(format!("{file} is trusted as it is now\n")))
    };
    if args.json {
        return terminal::print(&format!("{}\n", to_json(&state(word))));
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

pub(crate) fn clean(args: &Clean) -> Result<(), CliError> {
    let flags: Vec<Given> = [("--keep", "store.keep", &args.keep), ("--max", "store.max", &args.max)]
        .into_iter()
        .filter_map(|(flag, key, value)| {
            Some(Given { flag: flag.to_owned(), key: key.to_owned(), value: value.clone()? })
        })
        .collect();
    let context = Context::new(&flags, None)?;
    if args.quarantine {
        return quarantine(&context, args.json);
    }
    let Some(journal) = context.existing_journal()? else {
        return terminal::print(if args.json {
            "{\"schema\":1,\"runs\":0,\"events\":0}\n"
        } else {
            "nothing is recorded in this project\n"
        });
    };
    let mut retention = context.retention();
    if args.keep.is_some() {
        // Asked for by a person, an age means that age: the newest runs are not spared.
        retention.runs_min = 0;
    }
    let cleaned = journal.clean(&retention, &context::is_alive)?;
    if args.json {
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({
                "schema": JSON_SCHEMA, "runs": cleaned.runs, "events": cleaned.events,
                "bytes_before": cleaned.bytes_before, "bytes_after": cleaned.bytes_after,
            }))
        ));
    }
    terminal::print(&format!(
        "removed {} runs with {} events; the store has {} KB, it had {} KB\n",
        cleaned.runs,
        cleaned.events,
        cleaned.bytes_after.div_ceil(1024),
        cleaned.bytes_before.div_ceil(1024)
    ))
}

/// Sets aside what is damaged; what is whole stays where it is.
fn quarantine(context: &Context, json: bool) -> Result<(), CliError> {
    let folder = context.folder()?;
    let mut moved = Vec::new();
    let damaged = |result: Result<(), backstop_store::StoreError>| {
        matches!(
            result,
            Err(backstop_store::StoreError::Corrupt { .. } | backstop_store::StoreError::Newer { .. })
        )
    };
    let journal = backstop_store::Journal::open_existing(&folder, &context.project);
    if damaged(journal.and_then(|j| j.map_or(Ok(()), |j| j.check()))) {
        moved.extend(folder.quarantine(&context.project)?);
    }
    let user = backstop_store::UserStore::open_existing(&folder);
    if damaged(user.and_then(|u| u.map_or(Ok(()), |u| u.check()))) {
        moved.extend(folder.quarantine_user()?);
    }
    let hooks = backstop_store::HookStore::open_existing(&folder);
    if damaged(hooks.and_then(|h| h.map_or(Ok(()), |h| h.check()))) {
        moved.extend(folder.quarantine_hooks()?);
    }
    let outbox = backstop_store::Outbox::open_existing(&folder);
    if damaged(outbox.and_then(|o| o.map_or(Ok(()), |o| o.check()))) {
        moved.extend(folder.quarantine_outbox()?);
    }
    let shown: Vec<String> =
        moved.iter().map(|path| SafeText::new(path.display().to_string()).line(400)).collect();
    terminal::print(&if json {
        format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "set_aside": shown })))
    } else if shown.is_empty() {
        "nothing is damaged, nothing was set aside\n".to_owned()
    } else {
        format!("set aside, nothing deleted: {}\n", shown.join(", "))
    })
}
