//! What commands show that look at something or change a setting, a file for each: a [`View`] of
//! values that were looked up before.
//!
//! [`View`]: crate::View

mod agents;
mod budget;
mod clean;
mod config_change;
mod deferred;
mod demo;
mod doctor;
mod file_changes;
mod guard;
mod init;
mod notifications;
mod rules;
mod tasks;
mod trust;
mod unfreeze;

pub use agents::{AgentList, AgentRow};
pub use budget::{BudgetChange, BudgetList};
pub use clean::{CleanedStore, SetAside};
pub use config_change::ConfigChange;
pub use deferred::{DeferredDropped, DeferredList, deferred_offer};
pub use demo::{
    DEMO_COMMAND_STARTS, DEMO_FAULTS_END, DEMO_FAULTS_START, DemoPlan, demo_command_ended, demo_command_json,
    demo_plan_ended, demo_plan_starts, demo_plan_stopped, demo_step,
};
pub use doctor::{Check, CheckState, Checks};
pub use file_changes::{
    FileChange, FileChanges, server_move_last, servers_can_move, servers_moved, service_last,
};
pub use guard::{GuardCleared, GuardDecision, GuardList, guard_countdown, guard_waits};
pub use init::{HookChange, HookChanges};
pub use notifications::{MessageRow, Messages, SinkRow, SinkTest, SinkTests};
pub use rules::{RuleDetails, RuleList, RulesAudited, RulesTested};
pub use tasks::{TaskList, TaskResolved};
pub use trust::{SetValue, TrustChange, TrustState, TrustedFiles};
pub use unfreeze::Unfrozen;
