//! Git, for real: temporary repositories, hostile names, users who do things meanwhile.
#![allow(clippy::unwrap_used)] // Helpers of tests.

mod applying;
mod asking;
mod committing;
mod landing;
mod merging;
mod repo;
mod saving;
mod script;
mod slots;
mod special;
mod world;
