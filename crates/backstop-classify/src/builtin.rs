//! The built-in rules and their table, as the build script wrote them.

use crate::automaton::Automaton;
use crate::effect_rule::{Changes, EffectRule};
use crate::pattern::Needs;
use crate::rule::{Example, Rule, RuleOutcome, Trace, Weight};
use backstop_core::Reason;
use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/rules.rs"));
include!(concat!(env!("OUT_DIR"), "/effects.rs"));
include!(concat!(env!("OUT_DIR"), "/needs.rs"));
include!(concat!(env!("OUT_DIR"), "/table.rs"));

static NEEDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/needs.bin"));

/// What a regex of a rule needs: its own, the one above or the one below.
pub(crate) fn needs(rule: usize, which: usize) -> Needs {
    let at = rule * 3 + which;
    Needs(&NEEDS[NEEDS_STARTS[at] as usize..NEEDS_STARTS[at + 1] as usize])
}

/// The rows of the table, aligned so that they can be read in place.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static TABLE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/table.bin")));

/// The built-in table, used where it lies.
pub(crate) fn automaton() -> Automaton {
    Automaton::from_parts(&CLASSES, table(), SHIFT, FIRST_MATCH, STARTS, VALUES)
}

#[allow(unsafe_code)]
fn table() -> &'static [u16] {
    // SAFETY: every pattern of bits is a u16, and the bytes are aligned to 64.
    let (head, table, tail) = unsafe { TABLE.0.align_to::<u16>() };
    assert!(head.is_empty() && tail.is_empty());
    table
}
