//! Makes a table from labelled failures: the model, how good its guesses are, and how good each
//! rule is on tools that it was not written for.

use crate::model::{Model, Point};
use backstop_classify::learned::{FEATURES, LabelledExample, LabelledFailure, Table, TableParts, canonical};
use backstop_classify::{Classifier, ClassifierError, Observation};
use backstop_core::{Reason, fnv1a};
use std::collections::{BTreeMap, BTreeSet};

/// The reasons that the model may answer. Everything that is waited for or paid for is not among
/// them: `unknown` stands for those, and is no answer.
const REASONS: &[Reason] = &[
    Reason::InvalidUsage,
    Reason::Validation,
    Reason::CompileError,
    Reason::TypecheckError,
    Reason::LintError,
    Reason::FormatError,
    Reason::TestFailure,
    Reason::DependencyMissing,
    Reason::Crash,
    Reason::ToolFailed,
    Reason::VcsError,
    Reason::PermissionDenied,
    Reason::AuthError,
    Reason::NetworkPermanent,
    Reason::NetworkTransient,
    Reason::ResourceContention,
    Reason::ResourceExhausted,
    Reason::Unknown,
];

/// Into how many parts the tools are cut for measuring.
pub(crate) const FOLDS: u64 = 5;
/// How many answers of the kind a rule belongs to count with its own.
const PRIOR_COUNT: f64 = 4.0;
/// How many bytes of an example's line are kept.
const EXAMPLE_BYTES: usize = 44;
/// How much a failure counts for whose tool rules were written.
const SEEN_WEIGHT: f32 = 0.5;
/// How many steps the calibration has.
const STEPS: usize = 20;

/// A labelled failure and what is seen of it.
pub(crate) struct Sample {
    pub(crate) failure: LabelledFailure,
    pub(crate) seen: Observation,
    /// Whether no rule was written for its tool.
    pub(crate) is_unseen: bool,
    class: usize,
}

impl Sample {
    /// What is seen of all these failures. What is seen of tools that no rule should have been
    /// written for is seen without the rules that name them, one part of the tools after the other:
    /// otherwise rules would look better than they are on tools that nobody has seen.
    pub(crate) fn all(failures: &[(LabelledFailure, bool)]) -> Result<Vec<Self>, ClassifierError> {
        let everything = Classifier::builtin();
        let mut samples = Vec::new();
        for fold in 0..FOLDS {
            let of_fold = failures.iter().filter(|(failure, _)| fold_of(&failure.tool, "outer") == fold);
            let unseen = of_fold.clone().filter(|(_, is_unseen)| *is_unseen);
            let left_out =
                Classifier::leaving_out(&unseen.map(|(failure, _)| failure.tool.clone()).collect())?;
            for (failure, is_unseen) in of_fold {
                let classifier = if *is_unseen { &left_out } else { &everything };
                samples.extend(Self::new(classifier, failure, *is_unseen));
            }
        }
        Ok(samples)
    }

    fn new(classifier: &Classifier, failure: &LabelledFailure, is_unseen: bool) -> Option<Self> {
        let seen = classifier.observe(&failure.signal)?;
        let known = REASONS.iter().position(|reason| failure.reason == Some(*reason));
        Some(Self { class: known.unwrap_or(REASONS.len() - 1), failure: failure.clone(), seen, is_unseen })
    }

    /// The part that its tool belongs to.
    pub(crate) fn fold(&self, salt: &str) -> u64 {
        fold_of(&self.failure.tool, salt)
    }
}

fn fold_of(tool: &str, salt: &str) -> u64 {
    fnv1a(format!("{salt}{tool}").as_bytes()) % FOLDS
}

pub(crate) fn tools(samples: &[Sample]) -> BTreeSet<&str> {
    samples.iter().map(|sample| sample.failure.tool.as_str()).collect()
}

fn model<'s>(samples: impl Iterator<Item = &'s Sample>) -> Model {
    let points: Vec<Point<'_>> = samples
        .map(|s| Point {
            vector: &s.seen.vector,
            class: s.class,
            weight: if s.is_unseen { 1.0 } else { SEEN_WEIGHT },
        })
        .collect();
    Model::fit(&points, REASONS.len())
}

/// The table of all these failures.
pub(crate) fn table(samples: &[Sample], version: &str) -> TableParts {
    let all: Vec<&Sample> = samples.iter().collect();
    table_of(&all, version)
}

/// The table of some failures.
pub(crate) fn table_of(samples: &[&Sample], version: &str) -> TableParts {
    let fitted = model(samples.iter().copied());
    TableParts {
        version: version.to_owned(),
        reasons: REASONS.to_vec(),
        bias: fitted.bias,
        weights: fitted.weights,
        counts: counts(samples),
        calibration: calibration(samples),
        shares: all_shares(samples),
        examples: examples(samples),
    }
}

/// How many failures have each feature.
fn counts(samples: &[&Sample]) -> Vec<u32> {
    let mut counts = vec![0; FEATURES];
    for (feature, _) in samples.iter().flat_map(|sample| &sample.seen.vector) {
        counts[*feature as usize] += 1;
    }
    counts
}

/// The share of right guesses for each step of the model's probability, on tools that it was not
/// trained on. It never falls from step to step.
fn calibration(samples: &[&Sample]) -> Vec<u8> {
    let mut counts = vec![(0.0_f64, 0.0_f64); STEPS];
    for fold in 0..FOLDS {
        let (left_out, others): (Vec<&Sample>, Vec<&Sample>) =
            samples.iter().partition(|sample| sample.fold("inner") == fold);
        let fitted = model(others.into_iter());
        for sample in left_out.into_iter().filter(|sample| sample.is_unseen) {
            let probabilities = fitted.probabilities(&sample.seen.vector);
            let best = probabilities.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            let Some((class, probability)) = best else { continue };
            let count = &mut counts[Table::step(*probability)];
            count.0 += f64::from(u8::from(sample.failure.accepts(REASONS[class])));
            count.1 += 1.0;
        }
    }
    rising(&counts)
}

/// Shares that never fall: neighbours that would are put together.
fn rising(counts: &[(f64, f64)]) -> Vec<u8> {
    let mut groups: Vec<(f64, f64, usize)> = Vec::new();
    for (right, of) in counts {
        groups.push((*right, *of, 1));
        while let [.., before, last] = &groups[..] {
            let share = |group: &(f64, f64, usize)| (group.0 + 0.5) / (group.1 + 1.0);
            if share(before) <= share(last) && before.1 >= 8.0 {
                break;
            }
            let joined = (before.0 + last.0, before.1 + last.1, before.2 + last.2);
            groups.truncate(groups.len() - 2);
            groups.push(joined);
        }
    }
    groups.iter().flat_map(|(right, of, steps)| vec![percent(*right, *of + 0.5); *steps]).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is between 0 and 99.
fn percent(right: f64, of: f64) -> u8 {
    (100.0 * right / of.max(1e-9)).clamp(0.0, 99.0) as u8
}

/// The shares on tools that no rule was written for, those on tools that rules were written for,
/// and which these are.
fn all_shares(samples: &[&Sample]) -> Vec<(String, u8)> {
    let unseen: Vec<&Sample> = samples.iter().copied().filter(|sample| sample.is_unseen).collect();
    let seen: Vec<&Sample> = samples.iter().copied().filter(|sample| !sample.is_unseen).collect();
    let known = shares(&seen).into_iter().filter(|(name, _)| !name.starts_with("grammar."));
    let tools = samples.iter().filter(|sample| !sample.is_unseen).map(|sample| &sample.failure.tool);
    let tools: BTreeSet<&String> = tools.collect();
    let mut all = shares(&unseen);
    all.extend(known.map(|(name, share)| (format!("known {name}"), share)));
    all.extend(tools.into_iter().map(|tool| (format!("tool {tool}"), 0)));
    all
}

/// The share of right answers of each kind of rules, each rule and each finding of the grammar. A
/// rule counts once for each tool and reason, so that one tool with many rows does not decide.
fn shares(samples: &[&Sample]) -> Vec<(String, u8)> {
    let mut all: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut kind_of: BTreeMap<&str, &str> = BTreeMap::new();
    let mut add = |name, right: bool| {
        let count: &mut (f64, f64) = all.entry(name).or_default();
        count.0 += f64::from(u8::from(right));
        count.1 += 1.0;
    };
    for sample in samples {
        if let (Some(rule), Some(kind)) = (&sample.seen.rule, sample.seen.kind)
            && sample.seen.reason != Reason::Unknown
        {
            let right = sample.failure.accepts(sample.seen.reason);
            add(kind, right);
            add(rule, right);
            kind_of.insert(rule, kind);
        }
        for (kind, reason) in &sample.seen.findings {
            add(kind, sample.failure.accepts(canonical(*reason)));
        }
    }
    let share = |name: &str| all.get(name).map_or(0.5, |(right, of)| (right + 1.0) / (of + 2.0));
    let smoothed = |name: &str, (right, of): &(f64, f64)| match kind_of.get(name) {
        Some(kind) => percent(right + PRIOR_COUNT * share(kind), of + PRIOR_COUNT),
        None => percent(right + 1.0, of + 2.0),
    };
    all.iter().map(|(name, count)| ((*name).to_owned(), smoothed(name, count))).collect()
}

fn examples(samples: &[&Sample]) -> Vec<LabelledExample> {
    let told = samples.iter().filter(|sample| !sample.seen.text.trim().is_empty());
    told.filter_map(|sample| {
        let text = sample.seen.text.trim();
        Some(LabelledExample {
            id: sample.failure.id.clone(),
            reason: sample.failure.reason.filter(|reason| REASONS.contains(reason))?,
            text: text[..text.floor_char_boundary(EXAMPLE_BYTES)].to_owned(),
            sketch: sample.seen.sketch,
        })
    })
    .collect()
}
