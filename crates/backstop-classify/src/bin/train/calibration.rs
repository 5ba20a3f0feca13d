//! Measures the whole classifier on tools that were left out of the table, and prints how often each
//! level of confidence was right.

use crate::fit::{self, FOLDS, Sample};
use backstop_classify::Classifier;
use backstop_classify::learned::Table;
use backstop_core::{ConfidenceLevel, Reason};
use std::collections::BTreeMap;

#[derive(Default)]
struct Count {
    of: u32,
    strict: u32,
    lenient: u32,
    percent: u32,
}

/// Prints the calibration: for each level and for each ten percent, how many answers there were, how
/// sure they said they were, and how many were right.
pub(crate) fn print(samples: &[Sample]) {
    let mut levels: BTreeMap<ConfidenceLevel, Count> = BTreeMap::new();
    let mut tens: BTreeMap<u8, Count> = BTreeMap::new();
    let (mut all, mut unseen, mut known) = (Count::default(), Count::default(), Count::default());
    let mut unknown = 0;
    for fold in 0..FOLDS {
        let others: Vec<&Sample> = samples.iter().filter(|sample| sample.fold("outer") != fold).collect();
        let Ok(table) = Table::read(fit::table_of(&others, "").write().into()) else { continue };
        let classifier = Classifier::builtin().with_table(table);
        for sample in samples.iter().filter(|sample| sample.fold("outer") == fold) {
            let Some(fault) = classifier.classify(&sample.failure.signal) else { continue };
            if fault.reason == Reason::Unknown {
                unknown += 1;
            }
            let strict = sample.failure.reason == Some(backstop_classify::learned::canonical(fault.reason));
            let lenient = sample.failure.accepts(fault.reason);
            let percent = fault.confidence.percent();
            for count in [
                levels.entry(fault.confidence.level()).or_default(),
                tens.entry(percent / 10 * 10).or_default(),
                &mut all,
                if sample.is_unseen { &mut unseen } else { &mut known },
            ] {
                count.of += 1;
                count.strict += u32::from(strict);
                count.lenient += u32::from(lenient);
                count.percent += u32::from(percent);
            }
        }
    }
    let share = |n: u32, of: u32| f64::from(n) / f64::from(of.max(1));
    let line = |name: String, count: &Count| {
        println!(
            "{name:>8}  {:5} answers  said {:.2}  strict {:.3}  right {:.3}",
            count.of,
            share(count.percent, count.of) / 100.0,
            share(count.strict, count.of),
            share(count.lenient, count.of),
        );
    };
    println!("tools left out, {FOLDS} parts:");
    levels.iter().rev().for_each(|(level, count)| line(level.to_string(), count));
    tens.iter().rev().for_each(|(ten, count)| line(format!("{ten}%"), count));
    line("all".to_owned(), &all);
    line("unseen".to_owned(), &unseen);
    line("known".to_owned(), &known);
    println!("unknown {:.3}", share(unknown, all.of));
}
