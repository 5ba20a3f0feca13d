//! `backstop drift`: what no rule knows.

use super::runs;
use crate::error::{CliError, DONE, FAILED};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_report::DriftReport;
use clap::Args;

/// Show failures that no rule knows, grouped by likeness, each with a draft of a rule.
#[derive(Debug, Args)]
pub(crate) struct Drift {
    /// Period, such as 30d, or a start time
    #[arg(long, value_name = "WHEN", default_value = "30d")]
    pub(crate) since: String,
    /// Number of groups to list
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) limit: u32,
    /// Exit 1 if the last day has many more than the days before it
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Gives the exit code: with `--check`, a spike is a failure.
pub(crate) fn run(args: &Drift, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let since = runs::since(&args.since)?;
    let project = process::open(&[], log_format)?;
    let found = match project.existing_journal()? {
        Some(journal) => journal.drift(since)?,
        None => Default::default(),
    };
    let groups_max = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let report = DriftReport::new(found, since, groups_max);
    terminal::show(&report, args.json)?;
    Ok(if args.check && report.spike { FAILED } else { DONE })
}

#[cfg(test)]
mod tests {
    use backstop_classify::{Classifier, check_examples, pack};
    use backstop_core::signature;
    use backstop_report::rule_stub;
    use proptest::prelude::*;

    /// Makes a rule of each message that one can be made of, and runs all their examples. Says how
    /// many rules there are.
    fn rules_of<'e>(examples: impl IntoIterator<Item = &'e str>) -> Result<usize, String> {
        let stub =
            |(n, example): (usize, &str)| rule_stub(&format!("local.stub{n}"), &signature(example), example);
        let source: String = examples.into_iter().enumerate().filter_map(stub).collect();
        let rules = pack::parse("stub.toml", &source).map_err(|error| format!("{error}\n{source}"))?;
        let count = rules.len();
        let classifier = Classifier::with_packs(rules).map_err(|error| format!("{error}\n{source}"))?;
        let failures = check_examples(&classifier, |rule| rule.id.starts_with("local.stub"));
        if failures.is_empty() { Ok(count) } else { Err(format!("{failures:?}\n{source}")) }
    }

    #[test]
    fn a_rule_can_be_made_of_most_messages() {
        let examples = [
            "worker-17 died after 320ms",
            "Error: <n> is not \"defined\" in 'x' at /a/b.js:3",
            "E_FLUX (7): capacitor [offline] {a|b} ^$ \\d+ *",
            "na\u{ef}ve caf\u{e9} \u{fc}berlief: 7 St\u{fc}ck",
            "two  spaces   between 7 words",
            "aa s",
            "Something else",
        ];
        assert_eq!(rules_of(examples), Ok(examples.len()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
        #[test]
        fn no_message_makes_a_rule_that_does_not_hold(
            examples in prop::collection::vec(
                "[ -~\u{e4}\u{df}\u{20ac}\u{202e}\u{1f600}]{0,60}|([a-z]{1,9}[ /0-9.:<>'-]{1,3}){0,40}",
                1..40,
            ),
        ) {
            let made = rules_of(examples.iter().map(|example| example.trim()));
            prop_assert!(made.is_ok(), "{}", made.unwrap_err());
        }
    }
}
