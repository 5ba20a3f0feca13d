//! End to end, through the built binary.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]

mod bad_input;
mod batch;
mod classify;
mod config;
mod demo;
mod docs;
mod exec;
mod exec_bad_input;
mod exec_every_crash_point;
mod exec_orphans;
mod exec_output;
mod exec_secrets;
mod exec_store_trouble;
mod freeze;
mod harness;
mod hook;
mod init;
mod journal;
mod limits;
mod limits_shared;
mod notify;
mod plan_agents;
mod plan_bad_input;
mod plan_every_crash_point;
mod plan_examples;
mod plan_gates;
mod plan_git;
mod plan_resume;
mod plan_run;
mod plan_store_trouble;
mod plan_terminal;
mod plan_text;
mod reference;
mod rules;
mod stats;
