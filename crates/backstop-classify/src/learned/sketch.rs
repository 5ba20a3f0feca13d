//! Sketches of texts: few bytes that are the more alike, the more words two texts share.

use super::features::{read_lines, words};
use backstop_core::fnv1a;

/// How many bytes a sketch has.
pub const SKETCH_BYTES: usize = 16;

/// A sketch of a text: the smallest hash of its words, by each of several hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sketch(pub [u8; SKETCH_BYTES]);

impl Sketch {
    pub(crate) fn of(streams: &[Vec<String>]) -> Self {
        let mut least = [u64::MAX; SKETCH_BYTES];
        for line in streams.iter().flat_map(|lines| read_lines(lines)) {
            for word in words(line).filter(|word| word.len() > 1) {
                let hash = fnv1a(&word);
                for (index, least) in least.iter_mut().enumerate() {
                    let turned = (hash ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    *least = (*least).min(turned ^ (turned >> 31));
                }
            }
        }
        Self(least.map(|hash| hash.to_le_bytes()[0]))
    }

    /// Whether there was no word to make it of.
    pub(crate) fn is_of_nothing(&self) -> bool {
        self.0 == [u8::MAX; SKETCH_BYTES]
    }

    /// How many bytes two sketches share.
    pub(crate) fn likeness(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_have_sketches_that_share_bytes() {
        let sketch = |text: &str| Sketch::of(&[vec![text.to_owned()]]);
        let one = sketch("cannot open input file a for reading because it is gone");
        let like = sketch("cannot open input file b for reading because it is gone");
        let other = sketch("7 tests ran and 3 of them did fail with assertions");
        assert!(one.likeness(&like) > 8, "{}", one.likeness(&like));
        assert!(one.likeness(&other) < 4);
    }
}
