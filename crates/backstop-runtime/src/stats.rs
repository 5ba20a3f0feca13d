//! What was recorded and learned, as the figures of `backstop stats`.

use crate::project::{Project, ProjectError};
use backstop_core::{AgentUse, HintedError, SafeText, SignatureHistory, Timestamp};
use backstop_report::StatsReport;
use backstop_store::{Journal, StatsFilter};

/// Surfaces on which nothing is attempted: a person changes a limit there.
const NO_WORK: [&str; 2] = ["guard", "budget"];
/// How many of the failures that were seen most are listed.
const SIGNATURES_MAX: u32 = 10;

/// The figures of a project since a time, of operations whose name contains a text.
pub fn stats_of(
    project: &Project,
    since: Option<Timestamp>,
    operation_contains: Option<String>,
) -> Result<StatsReport, ProjectError> {
    let surfaces_left_out = NO_WORK.map(str::to_owned).to_vec();
    let filter = StatsFilter { since, operation_contains, surfaces_left_out };
    let journal = project.existing_journal()?;
    let stats = journal.map(|journal| journal.stats(&filter)).transpose()?.unwrap_or_default();
    Ok(StatsReport {
        since,
        now: Some(project.process.now()),
        stats,
        signatures: signatures(project),
        models: models(journal, since)?,
    })
}

/// What each model was used for, the most tokens first.
fn models(
    journal: Option<&Journal>,
    since: Option<Timestamp>,
) -> Result<Vec<(SafeText, AgentUse)>, ProjectError> {
    let since = since.unwrap_or(Timestamp::from_millis(0));
    let used = journal.map(|journal| journal.usage(since)).transpose()?.unwrap_or_default();
    let mut rows: Vec<_> = used.into_iter().map(|(model, used)| (SafeText::new(model), used)).collect();
    rows.sort_by_key(|(_, used)| std::cmp::Reverse(used.tokens_in.saturating_add(used.tokens_out)));
    Ok(rows)
}

/// The failures that were seen most, in all projects. Where they cannot be read, people are told.
fn signatures(project: &Project) -> Vec<SignatureHistory> {
    let known = || -> Result<Vec<SignatureHistory>, ProjectError> {
        Ok(match project.existing_limits()? {
            Some(store) => store.signature_histories(SIGNATURES_MAX)?,
            None => Vec::new(),
        })
    };
    known().unwrap_or_else(|error| {
        let hints = HintedError::hints(&error);
        project.process.warn(&error.to_string(), hints.first().map(String::as_str));
        Vec::new()
    })
}
