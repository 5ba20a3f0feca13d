//! Every text about a plan's run: as it looks, with hostile text, and against the published
//! schemas.

mod looks;
mod properties;
mod schemas;

use crate::Style;
use crate::samples::Texts;

/// Without colour and without marks.
const ASCII: Style = Style { colour: false, unicode: false };

/// The seed's example.
fn seed() -> Texts {
    Texts {
        message: "3 tests failing - validateToken returns null instead of user object in auth.test.ts".into(),
        problem: "feat(db): add user schema".into(),
        absent: "phases 1 and 2B were changed in the plan after they had run; `backstop run docs/feature-plan.md --rerun-changed` runs them again".into(),
        ..Texts::seed()
    }
}
