//! `backstop config`: show, check and change the settings.

use crate::error::{CliError, DONE, FAILED, failed};
use crate::{process, terminal};
use backstop_config::{self as settings, Edit, EditScope, environment};
use backstop_core::SafeText;
use backstop_files::{Durability, GivenPath, named};
use backstop_report::ConfigChange;
use clap::{Args, Subcommand};

/// Show, check and change the settings.
///
/// Without a command, every setting is shown with its value.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  backstop config show --origin\n  backstop config get exec.timeout\n  \
    backstop config set exec.timeout 10m\n  backstop config unset exec.timeout\n  backstop config set redact.env API_KEY DB_PASSWORD --user"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Show every setting
    Show {
        /// Show which file, variable or flag set each value
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the value of one setting
    Get {
        /// The key, such as `exec.timeout`
        key: String,
        /// Print JSON, with the origin
        #[arg(long)]
        json: bool,
    },
    /// Set a value in the project's backstop.toml; comments and layout stay
    Set {
        /// The key, such as `exec.timeout`
        key: String,
        /// The value; a list is given as several values. A value that starts with a dash goes after
        /// `--`
        #[arg(required = true)]
        values: Vec<String>,
        /// Change your own settings instead, for all projects
        #[arg(long)]
        user: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a value from the project's backstop.toml, so that a lower layer or the default counts
    Unset {
        /// The key, such as `exec.timeout`
        key: String,
        /// Change your own settings instead, for all projects
        #[arg(long)]
        user: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check all files and variables; exits 1 if something is wrong
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the reference of all keys, in Markdown
    Keys,
    /// Print the reference of all environment variables, in Markdown
    Env,
}

pub(crate) fn run(args: &Config) -> Result<u8, CliError> {
    let done = |()| DONE;
    match &args.action {
        None => show(false, args.json).map(done),
        Some(ConfigAction::Show { origin, json }) => show(*origin, *json).map(done),
        Some(ConfigAction::Get { key, json }) => get(key, *json).map(done),
        Some(ConfigAction::Set { key, values, user, json }) => {
            let scope = if *user { EditScope::User } else { EditScope::Project };
            set(key, values, scope, *json).map(done)
        }
        Some(ConfigAction::Unset { key, user, json }) => {
            let scope = if *user { EditScope::User } else { EditScope::Project };
            unset(key, scope, *json).map(done)
        }
        Some(ConfigAction::Keys) => terminal::print(&settings::markdown()).map(done),
        Some(ConfigAction::Env) => terminal::print(&environment::markdown()).map(done),
        Some(ConfigAction::Check { json }) => check(*json),
    }
}

fn show(origin: bool, json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    if json {
        return terminal::print_json(&settings::show_json(&project.config));
    }
    terminal::print(&settings::show(&project.config, origin))?;
    terminal::warn_inert(&project.config);
    Ok(())
}

fn get(key: &str, json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    let found = project.config.get(key)?;
    terminal::warn_inert_key(&project.config, key);
    if json {
        return terminal::print_json(&settings::get_json(&found));
    }
    let text = project.redactor.redact(&found.text).into_owned();
    terminal::print(&format!("{}\n", SafeText::new(text).line(usize::MAX)))
}

fn set(key: &str, values: &[String], scope: EditScope, json: bool) -> Result<(), CliError> {
    let around = process::surroundings()?;
    let edit = settings::edit(&around, scope, key, values)?;
    write(&edit, scope)?;
    show_change(key, &edit, json)
}

fn unset(key: &str, scope: EditScope, json: bool) -> Result<(), CliError> {
    let around = process::surroundings()?;
    let edit = settings::unset(&around, scope, key)?;
    if edit.before.is_some() {
        write(&edit, scope)?;
    }
    show_change(key, &edit, json)
}

fn write(edit: &Edit, scope: EditScope) -> Result<(), CliError> {
    let around = process::surroundings()?;
    let path = &edit.file.path;
    if path.metadata().is_ok_and(|meta| meta.permissions().readonly()) {
        return Err(
            failed(format!("{} is read-only", path.display())).hint("make it writable, or edit it by hand")
        );
    }
    let written = match scope {
        EditScope::Project => GivenPath::new(path, &around.cwd, &process::root()?)
            .replace(edit.text.as_bytes(), Durability::OnDisk),
        EditScope::User => {
            let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            folder.map_err(|error| CliError::write(path, error))?;
            named::replace(path, edit.text.as_bytes(), Durability::OnDisk)
        }
    };
    written.map_err(|error| CliError::write(path, error.into()))
}

/// Says what was changed, and what keeps it from having an effect.
fn show_change(key: &str, edit: &Edit, json: bool) -> Result<(), CliError> {
    let path = &edit.file.path;
    // The settings as they are now: what does not fit together is told, and what is masked is
    // known.
    let project = process::open(&[], None)?;
    let effective = project.config.get(key)?;
    let change = ConfigChange {
        key,
        path,
        shown: &edit.file.shown,
        before: edit.before.as_deref(),
        after: edit.after.as_deref(),
        existed: edit.existed,
        needs_trust: edit.needs_trust,
        effective: (&effective.text, effective.origin.to_string()),
        redactor: &project.redactor,
    };
    terminal::show(&change, json)?;
    let is_ignored = project.config.inert().iter().any(|inert| inert.key == key);
    let is_above = matches!(effective.origin, settings::Origin::Environment { .. });
    if edit.after.is_some() && effective.origin.file() != Some(path) && (!is_ignored || is_above) {
        let what = format!(
            "{key} is still {}, set by {}",
            ConfigChange::value(&project.redactor, &effective.text),
            effective.origin
        );
        terminal::warn(&what, Some("`backstop config show --origin` says where each value comes from"));
    }
    if edit.needs_trust && !project.config.inert().is_empty() {
        let file = &edit.file.shown;
        let what = format!("{file} has changed and is not trusted: what needs trust in it is ignored");
        terminal::warn(&what, Some(&format!("read {file}, then `backstop trust`")));
    }
    Ok(())
}

fn check(json: bool) -> Result<u8, CliError> {
    let project = process::open_quietly(&[], None)?;
    let problems = project.config.problems();
    let code = if problems.is_some() { FAILED } else { DONE };
    if json {
        terminal::print_json(&settings::check_json(&project.config))?;
    } else {
        let sinks = backstop_notify::sinks(&project.config).into_iter();
        let wrong = sinks.filter_map(|(_, sink)| sink.err());
        let wrong: Vec<String> = wrong.map(|error| format!("{error}; {}", error.hint())).collect();
        terminal::print(&settings::check(&project.config, &wrong))?;
    }
    if let Some(error) = problems {
        let mut error = CliError::from(error);
        error.kind = crate::error::ErrorKind::Failed;
        return Err(error);
    }
    Ok(code)
}
