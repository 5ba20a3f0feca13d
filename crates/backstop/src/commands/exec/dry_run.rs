//! `exec --dry-run`: what would be repeated, and why not. Runs nothing and records nothing.

use super::{Exec, deadline};
use crate::commands::guard::provider_named;
use crate::error::CliError;
use crate::terminal;
use backstop_classify::{Changes, Effect, Repeatable};
use backstop_core::{Action, Dispatch, Failure, Fault, Machine, Name, Policy, Reason, SafeText};
use backstop_report::{DryRunReason, ExecDryRun, to_json};
use backstop_runtime::admission::{LOOP_AT, OperationAdmission, client_of};
use backstop_runtime::command::why_confirm;
use backstop_runtime::{Project, ProjectError};
use backstop_store::Per;
use std::sync::Arc;
use std::time::Duration;

impl Exec {
    /// Shows what would be done.
    pub(super) fn show_dry_run(
        &self,
        project: &Arc<Project>,
        shown: &str,
        policy: &Policy,
        repeatable: &Repeatable,
        admission: &OperationAdmission,
    ) -> Result<u8, CliError> {
        let settings = project.config.exec();
        let effect = self.effect(repeatable);
        let (is_repeatable, why, rule) = self.why_repeatable(repeatable);
        let budget = self.budget_left(project)?;
        let provider = match &self.provider {
            Some(given) => Some(provider_named(given)?),
            None => client_of(shown),
        };
        let guard =
            provider.map(|provider| (provider.to_string(), admission.closed_for().map(|(_, left)| left)));
        let in_a_row = admission.known_streak().map_or(0, |streak| streak.count);
        let refused = if project.frozen().is_some() {
            Some("the project is frozen".to_owned())
        } else if budget.as_ref().is_some_and(|(_, left, _)| *left == 0) {
            Some("nothing is left of its budget".to_owned())
        } else if budget.is_some() && in_a_row >= LOOP_AT {
            Some("the same failure again and again, and nothing changed since".to_owned())
        } else if let Some((_, Some(left))) = &guard
            && *left > policy.wait_max
        {
            Some("its guard opens too late".to_owned())
        } else {
            None
        };
        let forecast = ExecDryRun {
            command: SafeText::new(project.redactor.redact(shown).into_owned()),
            repeatable: is_repeatable,
            why,
            rule,
            nothing_done: effect.as_ref().and_then(nothing_done).map(str::to_owned),
            profile: policy.name.to_string(),
            reasons: Reason::all().map(|reason| self.reason(policy, reason, effect.as_ref())).collect(),
            wait_max: policy.wait_max,
            timeout: settings.timeout,
            idle: settings.idle,
            deadline: deadline(project),
            budget,
            guard,
            failures_in_a_row: in_a_row,
            refused,
        };
        let text = if self.json {
            format!("{}\n", to_json(&forecast.json()))
        } else {
            forecast.text(terminal::stdout_style())
        };
        terminal::print(&text)?;
        Ok(0)
    }

    /// What keeps the command from being repeated by itself.
    pub(super) fn effect(&self, repeatable: &Repeatable) -> Option<Effect> {
        match repeatable {
            Repeatable::No(effect) if !self.repeatable => Some(effect.clone()),
            _ => None,
        }
    }

    /// Whether it is repeated by itself, why, and by which rule.
    fn why_repeatable(&self, repeatable: &Repeatable) -> (bool, String, Option<String>) {
        let does = |effect: &Effect| format!("`{}` {}", effect.program, effect.does);
        let by = |effect: &Effect| Some(effect.rule.clone());
        match repeatable {
            _ if self.once => (false, "--once says so".to_owned(), None),
            Repeatable::Unlisted => {
                (true, "it is not known to change anything outside the project".to_owned(), None)
            }
            Repeatable::Listed(effect) => {
                (true, format!("{} (rule {})", does(effect), effect.rule), by(effect))
            }
            Repeatable::Allowed { effect, pattern } => {
                let pattern = SafeText::new(pattern.clone()).line(80);
                let why = format!("`exec.repeatable` allows `{pattern}`, although {}", does(effect));
                (true, why, by(effect))
            }
            Repeatable::No(effect) if self.repeatable => {
                (true, format!("--repeatable says so, although {}", does(effect)), by(effect))
            }
            Repeatable::No(effect) => (false, format!("{} (rule {})", does(effect), effect.rule), by(effect)),
        }
    }

    /// What the attempt machine decides about the first failure with this reason.
    fn reason(&self, policy: &Policy, reason: Reason, effect: Option<&Effect>) -> DryRunReason {
        let decide = |dispatch| {
            let mut machine = Machine::new(Arc::new(policy.clone()))
                .repeatable(!self.once)
                .compressible(false)
                .confirm_why(effect.map(why_confirm));
            machine.begin();
            let fault = Fault::new(reason);
            machine.failed(&Failure { dispatch, ..Failure::new(&fault, Duration::ZERO) }).decision
        };
        let sent = decide(if self.once { Dispatch::Lost } else { Dispatch::Answered });
        // With --once, or where it makes many changes, no failure says that nothing was done.
        let proves_nothing = self.once || effect.is_some_and(|effect| effect.changes == Changes::Many);
        let unsent = if proves_nothing { sent.clone() } else { decide(Dispatch::NotDispatched) };
        let allowed = policy.allowance(reason);
        let attempts = if unsent.action.goes_on() { allowed.attempts } else { 1 };
        let waits = (1..attempts).map(|failed| allowed.backoff.wait(failed, 0.5).plain).collect();
        // A refusal for too many requests is never carried out.
        let is_refusal = reason == Reason::RateLimited
            && matches!(sent.action, Action::Confirm { .. })
            && effect.is_some_and(|effect| effect.changes == Changes::One);
        let decision = if is_refusal { &unsent } else { &sent };
        DryRunReason {
            reason,
            action: decision.action.name(),
            if_nothing_done: unsent.action.name(),
            attempts,
            waits,
            why: decision.why.clone(),
        }
    }

    /// The budget, and how many units of how many are left.
    fn budget_left(&self, project: &Project) -> Result<Option<(String, u64, u64)>, CliError> {
        let Some(given) = &self.budget else { return Ok(None) };
        let name: Name = given.parse()?;
        let store = project.limits()?;
        let states = store.budget_states()?;
        let Some(budget) = store.budget(&name)? else {
            let known = states.iter().map(|state| state.budget.name.to_string()).collect();
            return Err(ProjectError::NoBudget { given: name.to_string(), known }.into());
        };
        let session = project.process.session.as_ref().map(|session| session.raw().to_owned());
        let scope = match budget.per {
            Per::Total => "all".to_owned(),
            Per::Day => store.budget_day(&name)?,
            Per::Run => project.process.parent.map(|run| run.to_string()).unwrap_or_default(),
            Per::Task => {
                let task = self.task.clone().or_else(|| self.session.clone()).or(session);
                task.unwrap_or_else(|| "none".to_owned())
            }
        };
        let state = states.iter().find(|state| state.budget.name == name && state.scope == scope);
        let left = state.map_or(budget.units, backstop_store::BudgetState::remaining);
        Ok(Some((name.to_string(), left, budget.units)))
    }
}

/// Which failures say that nothing was changed.
fn nothing_done(effect: &Effect) -> Option<&'static str> {
    match effect.changes {
        Changes::One => Some(
            "repeated all the same: what was never sent (connection refused, DNS, TLS) or was refused \
             (429, 503 with Retry-After)",
        ),
        Changes::Reported => Some(
            "repeated all the same, if it wrote nothing to standard output: what was never sent (connection \
             refused, DNS, TLS) or was refused (429, 503 with Retry-After)",
        ),
        Changes::Many => None,
    }
}
