//! The commands, one file or folder each: what may be typed, beside the code that carries it out.

pub(crate) mod budget;
pub(crate) mod classify;
pub(crate) mod clean;
pub(crate) mod config;
pub(crate) mod deferred;
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod guard;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod notify;
pub(crate) mod plan;
pub(crate) mod reference;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod stats;
pub(crate) mod trust;
pub(crate) mod unfreeze;
