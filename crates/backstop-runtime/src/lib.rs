//! One run on any surface.
pub mod host;
pub mod machine_state;
