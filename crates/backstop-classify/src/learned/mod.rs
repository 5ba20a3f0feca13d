//! The learned back-off: a small linear model over pieces of words, asked only where no rule is
//! sure, and the measured shares of right answers of all rules.
//!
//! The table is made by `cargo run -p backstop-classify --bin train` from the corpora in
//! `tests/corpus` and compiled in. What it answers is a guess with a measured share of right
//! answers. It can name a reason and nothing else: no retry, no wait and no command follow from it.

mod corpus;
mod features;
mod sketch;
mod table;

pub use corpus::{
    BadRow, LabelledFailure, canonical, data_version, is_for_training, is_held_out, read_corpus,
};
pub use features::{FEATURES, Vector};
pub use sketch::{SKETCH_BYTES, Sketch};
pub use table::{BadTable, LabelledExample, Table, TableParts};

pub(crate) use features::{Case, text_features};

use std::sync::OnceLock;

static BUILTIN: &[u8] = include_bytes!("../../learned/table.bin");

/// The table that is compiled in. `None` only while it is being made for the first time.
pub fn builtin() -> Option<&'static Table> {
    static TABLE: OnceLock<Option<Table>> = OnceLock::new();
    TABLE.get_or_init(|| Table::read(BUILTIN.into()).ok()).as_ref()
}
