//! `backstop unfreeze`: a frozen project may go on.

use crate::error::{CliError, usage};
use crate::{process, terminal};
use backstop_report::Unfrozen;
use backstop_runtime::aftermath::record_override;
use backstop_runtime::machine_state;
use clap::Args;

/// Unfreeze this project: new work may start again.
#[derive(Debug, Args)]
pub(crate) struct Unfreeze {
    /// What was corrected; it is recorded
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) why: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `backstop unfreeze`.
pub(crate) fn run(args: &Unfreeze) -> Result<(), CliError> {
    if args.why.trim().is_empty() {
        return Err(usage("no reason is given for unfreezing this project")
            .hint("say what was corrected: `backstop unfreeze --why 'made room on /'`"));
    }
    let project = process::open(&[], None)?;
    let was = project.frozen();
    if let Some(freeze) = &was {
        // Recorded before it takes effect. A disk that is still full must not keep it frozen.
        let what = format!("unfreeze: {} ({})", freeze.why.line(200), freeze.reason);
        if let Err(error) = record_override(&project, "unfreeze", &what, Some(&args.why)) {
            let error = CliError::from(error);
            terminal::warn(&format!("this is not recorded: {error}"), error.first_hint());
        }
        project.folder()?.unfreeze(&project.root)?;
    }
    let undone = was.as_ref().map(|freeze| (freeze.reason, freeze.at, freeze.run));
    terminal::show(&Unfrozen(undone), args.json)?;
    if args.json {
        return Ok(());
    }
    let short = machine_state::look(&project).short_of;
    if let (Some(_), Some(short)) = (&was, short.first()) {
        let hint = "it will be frozen again when something fails of it";
        terminal::warn(&format!("the host is still short: {}", short.says.line(200)), Some(hint));
    }
    Ok(())
}
