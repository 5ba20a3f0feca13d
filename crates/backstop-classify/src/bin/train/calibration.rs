//! Measures the whole classifier on tools that were left out of the table and of the rules, and
//! prints how often each level of confidence was right.

use crate::fit::{self, FOLDS, Sample};
use backstop_classify::learned::{Table, canonical};
use backstop_classify::{Classifier, ClassifierError};
use backstop_core::{ConfidenceLevel, Fault, Reason};
use std::collections::BTreeMap;

#[derive(Default)]
struct Count {
    of: u32,
    strict: u32,
    lenient: u32,
    unknown: u32,
    retry: u32,
    false_retry: u32,
    percent: u32,
}

impl Count {
    fn add(&mut self, sample: &Sample, fault: &Fault) {
        let failure = &sample.failure;
        self.of += 1;
        self.strict += u32::from(failure.reason == Some(canonical(fault.reason)));
        self.lenient += u32::from(failure.accepts(fault.reason));
        self.unknown += u32::from(fault.reason == Reason::Unknown);
        self.retry += u32::from(fault.retryable == failure.retryable);
        self.false_retry += u32::from(fault.retryable && !failure.retryable);
        self.percent += u32::from(fault.confidence.percent());
    }

    fn print(&self, name: &str) {
        let share = |n: u32| f64::from(n) / f64::from(self.of.max(1));
        println!(
            "{name:>8}  {:5} answers  said {:.2}  strict {:.3}  right {:.3}  unknown {:.3}  retry {:.3}  \
             false retry {:.3}",
            self.of,
            share(self.percent) / 100.0,
            share(self.strict),
            share(self.lenient),
            share(self.unknown),
            share(self.retry),
            share(self.false_retry),
        );
    }
}

/// Prints the calibration: for each level and for each ten percent, how many answers there were,
/// how sure they said they were, and how many were right. With `mistakes`, also each answer that
/// was wrong.
pub(crate) fn print(samples: &[Sample], mistakes: bool) -> Result<(), ClassifierError> {
    let mut levels: BTreeMap<ConfidenceLevel, Count> = BTreeMap::new();
    let mut tens: BTreeMap<u8, Count> = BTreeMap::new();
    let (mut all, mut unseen, mut known) = (Count::default(), Count::default(), Count::default());
    for fold in 0..FOLDS {
        let others: Vec<&Sample> = samples.iter().filter(|sample| sample.fold("outer") != fold).collect();
        let bytes = fit::table_of(&others, "").write();
        let of_fold = || samples.iter().filter(|sample| sample.fold("outer") == fold);
        let left_out = of_fold().filter(|sample| sample.is_unseen);
        let left_out = Classifier::leaving_out(&left_out.map(|s| s.failure.tool.clone()).collect())?;
        let (Ok(one), Ok(other)) = (Table::read(bytes.clone().into()), Table::read(bytes.into())) else {
            continue;
        };
        let (left_out, everything) = (left_out.with_table(one), Classifier::builtin().with_table(other));
        for sample in of_fold() {
            let classifier = if sample.is_unseen { &left_out } else { &everything };
            let Some(fault) = classifier.classify(&sample.failure.signal) else { continue };
            for count in [
                levels.entry(fault.confidence.level()).or_default(),
                tens.entry(fault.confidence.percent() / 10 * 10).or_default(),
                &mut all,
                if sample.is_unseen { &mut unseen } else { &mut known },
            ] {
                count.add(sample, &fault);
            }
            if mistakes && !sample.failure.accepts(fault.reason) {
                print_mistake(sample, &fault);
            }
        }
    }
    println!("tools left out, {FOLDS} parts:");
    levels.iter().rev().for_each(|(level, count)| count.print(&level.to_string()));
    tens.iter().rev().for_each(|(ten, count)| count.print(&format!("{ten}%")));
    all.print("all");
    unseen.print("unseen");
    known.print("known");
    Ok(())
}

fn print_mistake(sample: &Sample, fault: &Fault) {
    let wanted = sample.failure.reason.map_or("success", Reason::code);
    let by = fault.evidence.first().map_or("nothing", |piece| &*piece.rule);
    let cause = fault.cause.as_ref().map(ToString::to_string).unwrap_or_default();
    let percent = fault.confidence.percent();
    println!("{}: wanted {wanted}, got {} ({percent}% by {by}): {cause}", sample.failure.id, fault.reason);
}
