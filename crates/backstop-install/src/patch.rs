//! Patches to a text, and their inverse.

use serde::{Deserialize, Serialize};

/// A replacement at one position of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Patch {
    /// The position in bytes.
    pub(crate) at: usize,
    /// The number of bytes to remove.
    pub(crate) take: usize,
    /// The text to insert.
    pub(crate) put: String,
}

/// Applies patches, which must be in order and must not overlap. `None` if they do not fit the
/// text.
pub(crate) fn apply(text: &str, patches: &[Patch]) -> Option<String> {
    let mut out = String::with_capacity(text.len() + patches.iter().map(|p| p.put.len()).sum::<usize>());
    let mut done = 0;
    for patch in patches {
        out.push_str(text.get(done..patch.at)?);
        out.push_str(&patch.put);
        done = patch.at.checked_add(patch.take)?;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// The patches that undo `patches` on `text`.
pub(crate) fn inverse(text: &str, patches: &[Patch]) -> Option<Vec<Patch>> {
    let (mut gone, mut come) = (0, 0);
    let mut back = Vec::with_capacity(patches.len());
    for patch in patches {
        let put = text.get(patch.at..patch.at.checked_add(patch.take)?)?.to_owned();
        back.push(Patch { at: (patch.at + come).checked_sub(gone)?, take: patch.put.len(), put });
        gone += patch.take;
        come += patch.put.len();
    }
    Some(back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patches(text: String) -> impl Strategy<Value = (String, Vec<Patch>)> {
        let steps = proptest::collection::vec((0..9usize, 0..4usize, "[a-c]{0,3}"), 0..5);
        steps.prop_map(move |steps| {
            let mut at = 0;
            let mut patches = Vec::new();
            for (gap, take, put) in steps {
                at += gap;
                if at + take <= text.len() {
                    patches.push(Patch { at, take, put });
                    at += take;
                }
            }
            (text.clone(), patches)
        })
    }

    proptest! {
        #[test]
        fn a_change_can_be_taken_back((text, patches) in "[x-z]{0,30}".prop_flat_map(patches)) {
            let changed = apply(&text, &patches).unwrap();
            let back = inverse(&text, &patches).unwrap();
            prop_assert_eq!(apply(&changed, &back).unwrap(), text);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let patch = |at, take| Patch { at, take, put: String::new() };
        assert_eq!(apply("abc", &[patch(4, 0)]), None);
        assert_eq!(apply("abc", &[patch(2, 2)]), None);
        assert_eq!(apply("abc", &[patch(2, 1), patch(1, 1)]), None);
        assert_eq!(apply("é", &[patch(1, 0)]), None);
        assert_eq!(apply("abc", &[patch(1, usize::MAX)]), None);
    }
}
