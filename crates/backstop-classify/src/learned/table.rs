//! The table of the back-off: how it is written and read.
//!
//! All numbers are little-endian. `BSL2`, the version of the data (16 hexadecimal digits), the
//! reasons with their scale and bias, the features that weigh most (three bytes each, rising),
//! their weights (half a byte each, all reasons of a feature side by side), the shares of right
//! answers by the model's own probability, those of the rules and of the grammar's findings, and
//! the labelled examples.

use super::features::Vector;
use super::sketch::{SKETCH_BYTES, Sketch};
use backstop_core::Reason;
use std::borrow::Cow;
use std::cmp::Ordering;

const MAGIC: &[u8; 4] = b"BSL2";
const VERSION_BYTES: usize = 16;
/// How many steps the model's own probability is cut into.
const STEPS: usize = 20;
/// The largest table that is compiled in.
const TABLE_BYTES_MAX: usize = 400_000;
/// How many examples an answer names.
const NEAREST_MAX: usize = 3;
/// How many bytes two sketches share at least, for one failure to be like the other.
const LIKENESS_MIN: usize = 4;

/// How many features are kept.
const KEPT_MAX: usize = 13_000;
/// How many bytes the number of a feature has.
const FEATURE_BYTES: usize = 3;
/// The largest size of a weight, in steps.
const WEIGHT_STEPS: f32 = 7.0;

/// A failure whose reason somebody has labelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledExample {
    /// Its id in the corpus.
    pub id: String,
    /// Its labelled reason.
    pub reason: Reason,
    /// Its line that says most.
    pub text: String,
    /// Its sketch.
    pub sketch: Sketch,
}

/// What a table is made of.
#[derive(Debug, Clone, Default)]
pub struct TableParts {
    /// The version of the data: 16 hexadecimal digits.
    pub version: String,
    /// The reasons that the model knows.
    pub reasons: Vec<Reason>,
    /// What is added for each reason.
    pub bias: Vec<f32>,
    /// For each feature, a weight for each reason.
    pub weights: Vec<f32>,
    /// For each feature, how many failures have it.
    pub counts: Vec<u32>,
    /// The share of right answers for each step of the model's own probability, in percent.
    pub calibration: Vec<u8>,
    /// The share of right answers of rules and of findings of the grammar, in percent.
    pub shares: Vec<(String, u8)>,
    /// The examples that an answer may name.
    pub examples: Vec<LabelledExample>,
}

/// Why a table cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the learned table is damaged or too large: `cargo run -p backstop-classify --bin train` writes it anew"
)]
pub struct BadTable;

/// A table, read where it lies.
#[derive(Debug)]
pub struct Table {
    bytes: Cow<'static, [u8]>,
    version: String,
    reasons: Vec<(Reason, f32, f32)>,
    /// How many features are kept, where their numbers are and where their weights are.
    kept: usize,
    features: usize,
    weights: usize,
    calibration: usize,
    shares: usize,
    examples: usize,
}

/// What the model takes a failure for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guess {
    pub(crate) reason: Reason,
    /// The share of right answers of such guesses.
    pub(crate) percent: u8,
}

impl TableParts {
    /// The table as bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut version = self.version.clone().into_bytes();
        version.resize(VERSION_BYTES, b'0');
        out.extend(version);
        let count = self.reasons.len();
        out.push(u8::try_from(count).unwrap_or(u8::MAX));
        let mut scales = Vec::new();
        for (index, reason) in self.reasons.iter().enumerate() {
            let column = self.weights.iter().skip(index).step_by(count.max(1));
            let scale = column.fold(1e-6_f32, |most, weight| most.max(weight.abs()));
            text(&mut out, reason.code());
            out.extend(scale.to_le_bytes());
            out.extend(self.bias.get(index).copied().unwrap_or_default().to_le_bytes());
            scales.push(scale);
        }
        let kept = self.kept();
        out.extend(u16::try_from(kept.len()).unwrap_or(u16::MAX).to_le_bytes());
        for feature in &kept {
            out.extend(&u32::try_from(*feature).unwrap_or_default().to_le_bytes()[..FEATURE_BYTES]);
        }
        for feature in &kept {
            let row = &self.weights[feature * count..(feature + 1) * count];
            let codes: Vec<u8> =
                row.iter().zip(&scales).map(|(weight, scale)| code(weight / scale)).collect();
            out.extend(codes.chunks(2).map(|pair| pair[0] | pair.get(1).copied().unwrap_or(0) << 4));
        }
        let mut calibration = self.calibration.clone();
        calibration.resize(STEPS, 0);
        out.extend(calibration);
        out.extend(u16::try_from(self.shares.len()).unwrap_or(u16::MAX).to_le_bytes());
        for (name, share) in &self.shares {
            text(&mut out, name);
            out.push(*share);
        }
        out.extend(u16::try_from(self.examples.len()).unwrap_or(u16::MAX).to_le_bytes());
        for example in &self.examples {
            let reason = self.reasons.iter().position(|known| *known == example.reason);
            out.push(reason.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX));
            out.extend(example.sketch.0);
            text(&mut out, &example.id);
            text(&mut out, &example.text);
        }
        out
    }
}

impl TableParts {
    /// The features that weigh most, rising. One that many failures have weighs more.
    fn kept(&self) -> Vec<usize> {
        let count = self.reasons.len().max(1);
        let mut all: Vec<(f32, usize)> = Vec::new();
        for (feature, row) in self.weights.chunks(count).enumerate() {
            let size = row.iter().map(|weight| weight * weight).sum::<f32>().sqrt();
            let times = self.counts.get(feature).copied().unwrap_or(1) as f32;
            if size > 0.0 {
                all.push((size * times.sqrt().sqrt(), feature));
            }
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut kept: Vec<usize> = all.into_iter().take(KEPT_MAX).map(|(_, feature)| feature).collect();
        kept.sort_unstable();
        kept
    }
}

/// A weight between -1 and 1 in half a byte: its sign and its size, in finer steps near zero.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is between 0 and 7.
fn code(weight: f32) -> u8 {
    let size = (weight.abs().sqrt() * WEIGHT_STEPS).round().min(WEIGHT_STEPS) as u8;
    if weight < 0.0 && size > 0 { size | 8 } else { size }
}

/// The weight that half a byte stands for.
fn decode(code: u8) -> f32 {
    let size = f32::from(code & 7) / WEIGHT_STEPS;
    if code & 8 == 0 { size * size } else { -size * size }
}

fn text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(255)];
    out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    out.extend(text.as_bytes());
}

/// Reads a table from front to back.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], BadTable> {
        let taken =
            self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end)).ok_or(BadTable)?;
        self.at += count;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, BadTable> {
        Ok(self.take(1)?[0])
    }

    fn short(&mut self) -> Result<u16, BadTable> {
        self.take(2)?.try_into().map(u16::from_le_bytes).map_err(|_| BadTable)
    }

    fn number(&mut self) -> Result<f32, BadTable> {
        let number = self.take(4)?.try_into().map(f32::from_le_bytes).map_err(|_| BadTable)?;
        if number.is_finite() { Ok(number) } else { Err(BadTable) }
    }

    /// The bytes of a text. Looking for one text among many needs no more of the others.
    fn text_bytes(&mut self) -> Result<&'b [u8], BadTable> {
        let count = self.byte()?;
        self.take(count.into())
    }

    fn text(&mut self) -> Result<&'b str, BadTable> {
        std::str::from_utf8(self.text_bytes()?).map_err(|_| BadTable)
    }
}

impl Table {
    /// Reads a table.
    pub fn read(bytes: Cow<'static, [u8]>) -> Result<Self, BadTable> {
        let mut cursor = Cursor { bytes: &bytes, at: 0 };
        if bytes.len() > TABLE_BYTES_MAX || cursor.take(MAGIC.len())? != MAGIC {
            return Err(BadTable);
        }
        let version = std::str::from_utf8(cursor.take(VERSION_BYTES)?).map_err(|_| BadTable)?.to_owned();
        let count = cursor.byte()?;
        let mut reasons = Vec::new();
        for _ in 0..count {
            let reason: Reason = cursor.text()?.parse().map_err(|_| BadTable)?;
            reasons.push((reason, cursor.number()?, cursor.number()?));
        }
        let kept = usize::from(cursor.short()?);
        let features = cursor.at;
        cursor.take(kept * FEATURE_BYTES)?;
        let weights = cursor.at;
        cursor.take(kept * reasons.len().div_ceil(2))?;
        let calibration = cursor.at;
        cursor.take(STEPS)?;
        let shares = cursor.at;
        for _ in 0..cursor.short()? {
            cursor.text_bytes()?;
            cursor.byte()?;
        }
        let examples = cursor.at;
        for _ in 0..cursor.short()? {
            cursor.take(1 + SKETCH_BYTES)?;
            cursor.text_bytes()?;
            cursor.text_bytes()?;
        }
        if cursor.at != bytes.len() {
            return Err(BadTable);
        }
        Ok(Self { version, reasons, kept, features, weights, calibration, shares, examples, bytes })
    }

    /// The version of the data that it was made from.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How large it is.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The share of right answers of a rule or of a finding of the grammar, in percent.
    pub fn share(&self, name: &str) -> Option<u8> {
        let mut cursor = Cursor { bytes: &self.bytes, at: self.shares };
        for _ in 0..cursor.short().ok()? {
            let known = cursor.text_bytes().ok()?;
            let share = cursor.byte().ok()?;
            if known == name.as_bytes() {
                return Some(share);
            }
        }
        None
    }

    /// The probability of each reason by the model itself, highest first.
    pub fn probabilities(&self, vector: &Vector) -> Vec<(Reason, f32)> {
        let count = self.reasons.len();
        let mut sums = vec![0_f32; count];
        for (feature, value) in vector {
            let Some(row) = self.row(*feature) else { continue };
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum += value * decode(row[index / 2] >> (index % 2 * 4) & 15);
            }
        }
        let scores: Vec<f32> =
            self.reasons.iter().zip(&sums).map(|((_, scale, bias), sum)| scale * sum + bias).collect();
        let most = scores.iter().copied().fold(f32::MIN, f32::max);
        let powers: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
        let total: f32 = powers.iter().sum();
        let mut all: Vec<(Reason, f32)> =
            self.reasons.iter().zip(&powers).map(|((reason, ..), power)| (*reason, power / total)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// The weights of a feature, if it was kept.
    fn row(&self, feature: u32) -> Option<&[u8]> {
        let number = |at: usize| {
            let bytes = &self.bytes[self.features + at * FEATURE_BYTES..][..FEATURE_BYTES];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0])
        };
        let (mut first, mut end) = (0, self.kept);
        while first < end {
            let middle = usize::midpoint(first, end);
            match number(middle).cmp(&feature) {
                Ordering::Less => first = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => {
                    let bytes = self.reasons.len().div_ceil(2);
                    return self.bytes.get(self.weights + middle * bytes..)?.get(..bytes);
                }
            }
        }
        None
    }

    /// How many of these features were kept: how much of a text is known.
    pub(crate) fn known_count(&self, features: &[u32]) -> usize {
        features.iter().filter(|feature| self.row(**feature).is_some()).count()
    }

    /// The step of the calibration that a probability belongs to.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is between 0 and 1.
    pub fn step(probability: f32) -> usize {
        ((probability.clamp(0.0, 1.0) * STEPS as f32) as usize).min(STEPS - 1)
    }

    /// What the model takes a failure for.
    pub(crate) fn guess(&self, vector: &Vector) -> Option<Guess> {
        let (reason, probability) = self.probabilities(vector).first().copied()?;
        let percent = *self.bytes.get(self.calibration + Self::step(probability))?;
        (reason != Reason::Unknown).then_some(Guess { reason, percent })
    }

    /// The labelled examples of a reason that are most like a failure.
    pub(crate) fn nearest(&self, reason: Reason, sketch: &Sketch) -> Vec<LabelledExample> {
        let mut best: Vec<(usize, LabelledExample)> = Vec::new();
        if sketch.is_of_nothing() {
            return Vec::new();
        }
        let mut cursor = Cursor { bytes: &self.bytes, at: self.examples };
        let count = cursor.short().unwrap_or(0);
        for _ in 0..count {
            let Ok((of, bytes, id, text)) = Self::example(&mut cursor) else { break };
            if self.reasons.get(usize::from(of)).is_none_or(|(known, ..)| *known != reason) {
                continue;
            }
            let own = Sketch(bytes);
            let likeness = own.likeness(sketch);
            let at = best.iter().position(|(known, _)| *known < likeness).unwrap_or(best.len());
            if likeness >= LIKENESS_MIN && at < NEAREST_MAX {
                let example =
                    LabelledExample { id: id.to_owned(), reason, text: text.to_owned(), sketch: own };
                best.insert(at, (likeness, example));
                best.truncate(NEAREST_MAX);
            }
        }
        best.into_iter().map(|(_, example)| example).collect()
    }

    fn example<'b>(cursor: &mut Cursor<'b>) -> Result<(u8, [u8; SKETCH_BYTES], &'b str, &'b str), BadTable> {
        let of = cursor.byte()?;
        let sketch = cursor.take(SKETCH_BYTES)?.try_into().map_err(|_| BadTable)?;
        Ok((of, sketch, cursor.text()?, cursor.text()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::FEATURES;

    fn parts() -> TableParts {
        let reasons = vec![Reason::Crash, Reason::LintError];
        let mut weights = vec![0.0; FEATURES * 2];
        (weights[0], weights[3]) = (2.0, 2.0);
        TableParts {
            version: "0123456789abcdef".to_owned(),
            bias: vec![0.0, 0.1],
            counts: vec![1; FEATURES],
            calibration: (0..20).map(|n| n * 5).collect(),
            shares: vec![("a.b".to_owned(), 77)],
            examples: vec![LabelledExample {
                id: "x-1".to_owned(),
                reason: Reason::LintError,
                text: "bad".to_owned(),
                sketch: Sketch([7; SKETCH_BYTES]),
            }],
            reasons,
            weights,
        }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let table = Table::read(parts().write().into()).unwrap();
        assert_eq!(
            (table.version(), table.share("a.b"), table.share("c")),
            ("0123456789abcdef", Some(77), None)
        );
        assert_eq!(table.guess(&vec![(0, 1.0)]).unwrap().reason, Reason::Crash);
        assert_eq!(table.guess(&vec![(1, 1.0)]).unwrap().reason, Reason::LintError);
        assert_eq!((table.known_count(&[0, 1]), table.known_count(&[2, 7])), (2, 0));
        let near = table.nearest(Reason::LintError, &Sketch([7; SKETCH_BYTES]));
        assert_eq!(near[0].id, "x-1");
        assert!(table.nearest(Reason::Crash, &Sketch([7; SKETCH_BYTES])).is_empty());
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let good = parts().write();
        for end in [0, 3, 20, 21, 40, good.len() - 1] {
            assert_eq!(Table::read(good[..end].to_vec().into()).err(), Some(BadTable), "{end}");
        }
        let mut longer = good.clone();
        longer.push(0);
        assert!(Table::read(longer.into()).is_err());
        let mut other = good;
        other[0] = b'X';
        assert!(Table::read(other.into()).is_err());
    }
}
