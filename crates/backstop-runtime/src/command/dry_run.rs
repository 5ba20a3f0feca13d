//! What would be repeated, and why not. Runs nothing and records nothing.

use super::{PreparedCommand, why_confirm};
use crate::admission::{LOOP_AT, OperationAdmission};
use crate::project::ProjectError;
use backstop_classify::{Changes, Effect, Repeatable};
use backstop_core::{Action, Dispatch, Failure, Fault, Machine, Name, Reason, SafeText};
use backstop_report::{DryRunReason, ExecDryRun};
use std::sync::Arc;
use std::time::Duration;

impl PreparedCommand {
    /// What would be done about this command. `provider` is whose guard it would wait for.
    pub fn forecast(
        &self,
        admission: &OperationAdmission,
        provider: Option<Name>,
    ) -> Result<ExecDryRun, ProjectError> {
        let (settings, effect) = (self.project.config.exec(), self.effect());
        let (repeatable, why, rule) = self.why_repeatable();
        let budget = admission.budget_left()?;
        let closed = admission.closed_for().map(|(_, left)| left);
        let guard = provider.map(|provider| (provider.to_string(), closed));
        let in_a_row = admission.known_streak().map_or(0, |streak| streak.count);
        let refused = if self.project.frozen().is_some() {
            Some("the project is frozen".to_owned())
        } else if budget.as_ref().is_some_and(|(_, left, _)| *left == 0) {
            Some("nothing is left of its budget".to_owned())
        } else if budget.is_some() && in_a_row >= LOOP_AT {
            Some("the same failure again and again, and nothing changed since".to_owned())
        } else if let Some((_, Some(left))) = &guard
            && *left > self.policy.wait_max
        {
            Some("its guard opens too late".to_owned())
        } else {
            None
        };
        Ok(ExecDryRun {
            command: SafeText::new(self.project.redactor.redact(&self.shown).into_owned()),
            repeatable,
            why,
            rule,
            nothing_done: effect.as_ref().and_then(nothing_done).map(str::to_owned),
            profile: self.policy.name.to_string(),
            reasons: Reason::all().map(|reason| self.forecast_reason(reason, effect.as_ref())).collect(),
            wait_max: self.policy.wait_max,
            timeout: settings.timeout,
            idle: settings.idle,
            deadline: self.deadline(),
            budget: budget.map(|(name, left, units)| (name.to_string(), left, units)),
            guard,
            failures_in_a_row: in_a_row,
            refused,
        })
    }

    /// Whether it is repeated by itself, why, and by which rule.
    fn why_repeatable(&self) -> (bool, String, Option<String>) {
        let does = |effect: &Effect| format!("`{}` {}", effect.program, effect.does);
        let by = |effect: &Effect| Some(effect.rule.clone());
        match self.judged() {
            _ if self.request.once => (false, "--once says so".to_owned(), None),
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
            Repeatable::No(effect) if self.request.repeatable => {
                (true, format!("--repeatable says so, although {}", does(effect)), by(effect))
            }
            Repeatable::No(effect) => (false, format!("{} (rule {})", does(effect), effect.rule), by(effect)),
        }
    }

    /// What the attempt machine decides about the first failure with this reason.
    fn forecast_reason(&self, reason: Reason, effect: Option<&Effect>) -> DryRunReason {
        let policy = &self.policy;
        let decide = |dispatch| {
            let mut machine = Machine::new(Arc::new(policy.clone()))
                .repeatable(!self.request.once)
                .compressible(false)
                .confirm_why(effect.map(why_confirm));
            machine.begin();
            let fault = Fault::new(reason);
            machine.failed(&Failure { dispatch, ..Failure::new(&fault, Duration::ZERO) }).decision
        };
        let sent = decide(if self.request.once { Dispatch::Lost } else { Dispatch::Answered });
        // With --once, or where it makes many changes, no failure says that nothing was done.
        let proves_nothing = self.request.once
            || effect.is_some_and(|effect| match effect.changes {
                Changes::Many => true,
                // Only a refusal says that nothing was changed.
                Changes::Refused => reason != Reason::RateLimited,
                Changes::One | Changes::Reported => false,
            });
        let unsent = if proves_nothing { sent.clone() } else { decide(Dispatch::NotDispatched) };
        let allowed = policy.allowance(reason);
        let attempts = if unsent.action.goes_on() { allowed.attempts } else { 1 };
        let waits = (1..attempts).map(|failed| allowed.backoff.wait(failed, 0.5).plain).collect();
        // A refusal for too many requests is never carried out.
        let is_refusal = reason == Reason::RateLimited
            && matches!(sent.action, Action::Confirm { .. })
            && effect.is_some_and(|effect| matches!(effect.changes, Changes::One | Changes::Refused));
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
        Changes::Refused => Some(
            "repeated all the same, if it wrote nothing to standard output: what was refused (429, 503 with \
             Retry-After)",
        ),
        Changes::Many => None,
    }
}
