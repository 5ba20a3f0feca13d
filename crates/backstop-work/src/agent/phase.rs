//! Whether two spellings name the same phase.

/// How much of a name is compared.
const NAME_BYTES_MAX: usize = 200;

/// A phase's name without what people vary: case, spaces, hyphens.
fn bare(name: &str) -> String {
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    name.chars().filter(|c| !c.is_whitespace() && *c != '-').flat_map(char::to_lowercase).collect()
}

/// Whether `given` names the phase `key`: the same but for case, spaces, hyphens and a leading
/// `phase`.
///
/// Both are also compared with the prefix, so that a phase called `phaseout` is not taken for
/// `out`.
pub(super) fn is_same(given: &str, key: &str) -> bool {
    let (given, key) = (bare(given), bare(key));
    if given.is_empty() || key.is_empty() {
        return false;
    }
    let without = |name: &str| name.strip_prefix("phase").unwrap_or_default().to_owned();
    given == key || without(&given) == key || given == without(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_phase_are_the_same_and_others_are_not() {
        let same = [
            ("2a", "2a"),
            ("Phase 2-A", "2a"),
            ("2A", "phase-2a"),
            ("PHASE 2 A", "2a"),
            ("1.1", "Phase 1.1"),
            ("phaseout", "phaseout"),
        ];
        for (given, key) in same {
            assert!(is_same(given, key), "{given} {key}");
        }
        for (given, key) in [("1.1", "11"), ("2b", "2a"), ("", "2a"), ("phase", ""), ("phase", "phase 2")] {
            assert!(!is_same(given, key), "{given} {key}");
        }
    }
}
