//! One run on any surface.
pub mod machine_state;
