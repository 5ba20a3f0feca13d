//! The attempt machine: the pure state machine of one operation. Results of attempts and the time
//! go in, a [`Decision`] comes out.
//!
//! It must not wait, run or record anything: its driver does, and reports back. Time is the
//! driver's monotonic time since the operation began, so that a change of the wall clock moves no
//! deadline.
//!
//! The main types are [`Machine`], [`Failure`] (the result of a failed attempt) and [`Verdict`]
//! (what to do about it).

use crate::duration::shown;
use crate::policy::{Allowance, Exhausted, How, On, Policy, World};
use crate::{Action, Class, Decision, Dispatch, Fault, Reason, Recent, Retry, RetryBudget, Severity};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A failed attempt, with what its driver knows about it.
#[derive(Debug, Clone)]
pub struct Failure<'f> {
    /// The classified failure.
    pub fault: &'f Fault,
    /// Whether the request was sent, and whether an answer came.
    pub dispatch: Dispatch,
    /// Monotonic time since the operation began.
    pub now: Duration,
    /// A random number in `0.0..1.0`, for jitter.
    pub random: f64,
    /// The recent attempts of everybody who shares the retry budget.
    pub recent: Recent,
    /// How often a layer below has retried already, if one did.
    pub retried_below: Option<u32>,
    /// Why the attempt cannot be repeated with the same input, if it cannot.
    pub unrepeatable: Option<&'f str>,
    /// Whether the failure shows that the attempt changed nothing, so that it needs no confirmation
    /// before it is repeated.
    pub nothing_done: bool,
    /// What earlier runs learned about failures like this one, if the policy learns.
    pub experience: Option<Experience>,
    /// Whether the worker was lost. Such a failure never uses up the operation's own attempts.
    pub worker_lost: bool,
    /// Whether the attempt had done work before it failed, which is paid for again if it is
    /// repeated.
    pub worked: bool,
    /// Whether one more wait for a rate limit may begin, where somebody counts those of a whole
    /// run.
    pub may_wait: bool,
    /// Who can take the work over while a rate limit holds, if somebody can.
    pub alternative: Option<&'f str>,
}

/// How often failures like this one were retried, and how often that helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Experience {
    /// The number of retries.
    pub retried: u32,
    /// The number of retries after which the operation succeeded.
    pub cured: u32,
}

/// How often the stated end of a rate limit is waited for without using up attempts. After that, a
/// rate limit uses up attempts like any other failure, so that every operation ends.
const STATED_ENDS_MAX: u32 = 5;

/// How long after the stated end of a limit a run goes on, where its window is an hour or longer:
/// whoever comes at the very second is often refused again.
const MARGIN: Duration = Duration::from_secs(60);
/// The part of a wait that is added to it where the window is shorter.
const MARGIN_PART: u32 = 10;
/// Windows from this length on have the full margin.
const LONG_WINDOW: Duration = Duration::from_secs(3600);
/// A limit that ends sooner is waited for, even where somebody could take over.
const TAKEOVER_FROM: Duration = Duration::from_secs(60);
/// How often somebody else takes over at most, so that two workers do not pass work back and forth.
const TAKEOVERS_MAX: u32 = 8;

/// After this many retries that never helped, a policy that learns stops retrying.
pub const TRIES_TO_LEARN: u32 = 5;

impl<'f> Failure<'f> {
    /// An answered failure at time `now`, without jitter and with nothing else known.
    pub fn new(fault: &'f Fault, now: Duration) -> Self {
        Self {
            fault,
            dispatch: Dispatch::Answered,
            now,
            random: 0.5,
            recent: Recent::default(),
            retried_below: None,
            unrepeatable: None,
            nothing_done: false,
            experience: None,
            worker_lost: false,
            worked: false,
            may_wait: true,
            alternative: None,
        }
    }
}

/// The decision about a failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What to do, and why.
    pub decision: Decision,
    /// A new reason, where retries are used up and the fault is now permanent.
    pub reclassified: Option<Reason>,
    /// Whether the failure came from outside (rate limit, overload, lost worker) and used up none
    /// of the operation's own attempts.
    pub outside: bool,
    /// The delay that follows once the guard is open, where the decision waits for one.
    pub after_guard: Duration,
}

/// The stage of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// No attempt has begun.
    Idle,
    /// An attempt is in progress.
    Attempting,
    /// The next attempt has been decided on, and has not begun.
    Waiting,
    /// The operation is over.
    Ended,
}

/// The state of one operation.
#[derive(Debug, Clone)]
pub struct Machine {
    policy: Arc<Policy>,
    repeatable: bool,
    compressible: bool,
    confirm_why: Option<String>,
    confirm_with: String,
    budget: RetryBudget,
    deadline: Option<Duration>,
    disabled: bool,
    stage: Stage,
    attempt: u32,
    /// The number of failures charged to each cell; the last element counts failures that no cell
    /// covers.
    charged: Vec<u32>,
    world_waits: u32,
    world_worked: u32,
    world_waited: Duration,
    /// The number of waits in a row for a limit whose end is not known, and how long in all.
    blind_waits: u32,
    blind_waited: Duration,
    /// How often another worker took over.
    takeovers: u32,
    /// The number of stated ends of rate limits that were waited for, and how long in all.
    limit_waits: u32,
    limit_waited: Duration,
    /// The delay after a guard has opened, of the last decision.
    after_guard: Duration,
    /// What is used instead where an attempt cannot be made to succeed, next one first.
    fallbacks: VecDeque<FallbackChoice>,
}

/// An alternative, and the reasons for which it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FallbackChoice {
    /// What is used instead, such as another model.
    pub to: String,
    /// For these reasons.
    pub on: Vec<Reason>,
}

impl Machine {
    /// An operation under `policy`.
    pub fn new(policy: Arc<Policy>) -> Self {
        let charged = vec![0; policy.cells.len() + 1];
        Self {
            policy,
            repeatable: true,
            compressible: true,
            confirm_why: None,
            confirm_with: String::new(),
            budget: RetryBudget::default(),
            deadline: None,
            disabled: false,
            stage: Stage::Idle,
            attempt: 0,
            charged,
            world_waits: 0,
            world_worked: 0,
            world_waited: Duration::ZERO,
            blind_waits: 0,
            blind_waited: Duration::ZERO,
            takeovers: 0,
            limit_waits: 0,
            limit_waited: Duration::ZERO,
            after_guard: Duration::ZERO,
            fallbacks: VecDeque::new(),
        }
    }

    /// What is used instead, in this order, where nothing else helps. Each is attempted once more
    /// than what was used up before: a fallback gives no retries anew.
    pub fn fallbacks(mut self, fallbacks: impl IntoIterator<Item = FallbackChoice>) -> Self {
        self.fallbacks = fallbacks.into_iter().collect();
        self
    }

    /// The decision to use the next alternative for this reason, if there is one.
    fn fall_back(&mut self, reason: Reason, instead_of: &FinalDecision) -> Option<Verdict> {
        if self.disabled || !self.fallbacks.front()?.on.contains(&reason) {
            return None;
        }
        let to = self.fallbacks.pop_front()?.to;
        let why = format!("{}; {to} is used instead", instead_of.decision.why);
        let decision = Decision { action: Action::Fallback { to }, why };
        Some(Verdict { decision, reclassified: None, outside: false, after_guard: Duration::ZERO })
    }

    /// Whether an attempt whose result is unknown may be repeated.
    pub fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    /// Whether the operation can be made smaller. A command cannot.
    pub fn compressible(mut self, compressible: bool) -> Self {
        self.compressible = compressible;
        self
    }

    /// Why the operation is repeated only after a confirmation, if so: an attempt may have changed
    /// something, even if an answer came. A failure that shows that nothing was done needs none.
    pub fn confirm_why(mut self, why: Option<String>) -> Self {
        self.needs_confirmation(why);
        self
    }

    /// The same, for a driver that finds it out when an attempt has failed.
    pub fn needs_confirmation(&mut self, why: Option<String>) {
        self.confirm_why = why;
    }

    /// The command that a person types to repeat the operation after a `Confirm`.
    pub fn confirm_with(mut self, command: impl Into<String>) -> Self {
        self.confirm_with = command.into();
        self
    }

    /// No attempt begins later than `deadline` after the operation began.
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// The share of attempts that may be retries.
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Turns every recovery off.
    pub fn disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }

    /// The stage of the operation.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The number of the current attempt, counted from 1; 0 before the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Begins an attempt, and returns its number.
    pub fn begin(&mut self) -> u32 {
        self.stage = Stage::Attempting;
        self.attempt += 1;
        self.attempt
    }

    /// Reports that the attempt succeeded.
    pub fn succeeded(&mut self) {
        self.stage = Stage::Ended;
    }

    /// Decides about a start that was refused. Nothing was attempted, so no attempt is used up; a
    /// refusal always ends the operation, because whoever refused has waited as long as allowed.
    pub fn refused(&mut self, failure: &Failure<'_>) -> Verdict {
        let policy = Arc::clone(&self.policy);
        let reason = failure.fault.reason;
        let verdict = if reason == Reason::RateLimited && !self.disabled {
            let why = match stated_wait(failure.fault) {
                Some(wait) => {
                    format!("the limit lasts another {}, which is too long to wait here", shown(wait))
                }
                None => "the limit lasts too long to wait here".to_owned(),
            };
            let ending = FinalDecision::until_reset(failure.fault, why);
            if let Some(verdict) = self.fall_back(reason, &ending) {
                self.stage = Stage::Waiting;
                return verdict;
            }
            self.ended(ending, reason, false)
        } else {
            let verdict = self.failed(failure);
            let why = || format!("{reason}: it was refused before it began");
            let falls_back = matches!(verdict.decision.action, Action::Fallback { .. });
            match verdict.decision.action.goes_on() && !falls_back {
                true => self.ended(FinalDecision::of(&policy, reason, why()), reason, verdict.outside),
                false => verdict,
            }
        };
        self.stage = if verdict.decision.action.goes_on() { Stage::Waiting } else { Stage::Ended };
        verdict
    }

    fn ended(&self, ending: FinalDecision, reason: Reason, outside: bool) -> Verdict {
        let reclassified = ending.used_up.then(|| reason.when_exhausted()).flatten();
        Verdict { decision: ending.decision, reclassified, outside, after_guard: Duration::ZERO }
    }

    /// Reports that the attempt failed, and decides what to do.
    pub fn failed(&mut self, failure: &Failure<'_>) -> Verdict {
        let policy = Arc::clone(&self.policy);
        let reason = failure.fault.reason;
        let allowed = policy.allowance(acted_on(failure.fault));
        let outside = is_outside(&policy, failure);
        let verdict = match self.judge(&policy, &allowed, failure) {
            Ok(decision) => {
                // Somebody else's turn is no failure of the work.
                let outside = outside || matches!(decision.action, Action::Fallback { .. });
                Verdict { decision, reclassified: None, outside, after_guard: self.after_guard }
            }
            Err(ending) => match self.fall_back(reason, &ending) {
                Some(verdict) => verdict,
                None => self.ended(ending, reason, outside),
            },
        };
        self.stage = if verdict.decision.action.goes_on() { Stage::Waiting } else { Stage::Ended };
        verdict
    }

    fn judge(
        &mut self,
        policy: &Policy,
        allowed: &Allowance<'_>,
        failure: &Failure<'_>,
    ) -> Result<Decision, FinalDecision> {
        let fault = failure.fault;
        let reason = fault.reason;
        let is_guess = fault.confidence.is_low();
        let end = |why: String| Err(FinalDecision::of(policy, acted_on(fault), why));
        if self.disabled {
            return Err(FinalDecision::surface("recovery is turned off by BACKSTOP_DISABLE".to_owned()));
        }
        match allowed.how {
            How::Surface => {
                return Err(FinalDecision::surface(format!(
                    "{reason} is given to the caller: the configuration or --on says so"
                )));
            }
            How::Halt => {
                if reason == Reason::QuotaExhausted
                    && let Some(to) = failure.alternative
                {
                    let why = format!("{reason} stops a {}; {to} takes over", policy.name);
                    if let Some(decision) = self.taken_over(to, why) {
                        return Ok(decision);
                    }
                }
                let why = format!("{reason} stops a {} at once", policy.name);
                return Err(FinalDecision {
                    decision: Decision { action: Action::Halt, why },
                    used_up: false,
                });
            }
            How::Defer => {
                return Err(FinalDecision::defer(
                    reason,
                    format!("{reason} is put aside: the configuration or --on says so"),
                ));
            }
            How::Confirm => {
                return Err(self.confirm(format!(
                    "{reason} needs confirmation before it is retried: the configuration or --on asks for it"
                )));
            }
            How::Compressed(_) if !self.compressible => {
                return end(format!(
                    "{reason}: a command cannot be made smaller from outside, and the same again would be \
                     too large again"
                ));
            }
            How::Again | How::Guarded | How::Compressed(_) => {}
        }
        if fault.severity == Severity::Critical {
            return end(format!("{reason} is critical here: nothing is repeated before somebody has looked"));
        }
        // A smaller request is another request than the one that the server speaks of.
        let is_same_request = !matches!(allowed.how, How::Compressed(_));
        if fault.facts.should_retry == Some(false) && is_same_request && !is_guess {
            return end("what failed says that a retry makes no sense".to_owned());
        }
        let wait = match is_guess {
            true => None,
            false => self.world_wait(policy, failure).or_else(|| self.stated_end(policy, allowed, failure)),
        };
        if let Some(wait) = wait {
            return wait;
        }
        let slot = allowed.cell.unwrap_or(policy.cells.len());
        let used = self.charged[slot].saturating_add(1);
        self.charged[slot] = used;
        let attempts = match fault.facts.should_retry {
            Some(true) if allowed.attempts == 1 => policy.usual_attempts(),
            _ => allowed.attempts,
        };
        if used >= attempts || self.all_started(policy) {
            let why = if reason == Reason::Interrupted {
                "stopped by you".to_owned()
            } else if attempts == 1 && is_guess && reason != Reason::Unknown {
                format!("it only looks like {reason}: a guess is not repeated (profile {})", policy.name)
            } else if attempts == 1 {
                format!("{} ({reason}, profile {})", once(reason), policy.name)
            } else if self.all_started(policy) {
                all_started_why(self.attempt)
            } else {
                let besides = match self.limit_waits {
                    0 => String::new(),
                    1 => " besides 1 wait for a stated end".to_owned(),
                    waits => format!(" besides {waits} waits for a stated end"),
                };
                format!(
                    "{reason} has {attempts} attempts in profile {}{besides}, and all are used",
                    policy.name
                )
            };
            let mut ending = FinalDecision::of(policy, acted_on(fault), why);
            ending.used_up = attempts > 1;
            return Err(ending);
        }
        // The same again may have been tried elsewhere; what waits for a guard or sends less was
        // not.
        if let Some(below) = failure.retried_below.filter(|n| *n > 1 && allowed.how == How::Again) {
            let why =
                format!("a layer below has made {below} attempts already; retrying here would multiply them");
            let mut ending = FinalDecision::of(policy, reason, why);
            ending.used_up = true;
            return Err(ending);
        }
        if let Some(known) = failure.experience.filter(|known| policy.learn && known.cured == 0)
            && known.retried >= TRIES_TO_LEARN
        {
            let why = format!("experience: a retry has never cured this in {} tries", known.retried);
            return end(why);
        }
        self.may_repeat(policy, failure)?;
        // After waiting for a guard, the delays start over.
        let n = if allowed.how == How::Guarded { 1 } else { used };
        let wait = allowed.backoff.wait(n, failure.random);
        let (delay, mut words) = (wait.delay, format!("wait {}", shown(wait.delay)));
        if wait.jitter_percent != 0.0 {
            words =
                format!("wait {}, jitter {:+.0} %: {}", shown(wait.plain), wait.jitter_percent, shown(delay));
        }
        self.after_guard = delay;
        let (delay, hint) = self.floor(policy, failure, delay)?;
        let next = self.attempt.saturating_add(1);
        let of = at_most(policy, self.attempt.saturating_add(attempts - used));
        let why = format!(
            "{reason} has {attempts} attempts in profile {}, {used} used; {words}{hint}",
            policy.name
        );
        let action = match allowed.how {
            How::Compressed(keep_percent) => Action::Compress { keep_percent, attempt: next },
            how => again(fault, how, delay, next, of),
        };
        Ok(Decision { action, why })
    }

    /// The wait for a rate limit whose end is stated: it uses up no attempt. `None` if the failure
    /// is none, or has been waited for too often.
    fn stated_end(
        &mut self,
        policy: &Policy,
        allowed: &Allowance<'_>,
        failure: &Failure<'_>,
    ) -> Option<Result<Decision, FinalDecision>> {
        let fault = failure.fault;
        // A cell of its own for rate limits says how often: `request`, `task`, `--on`.
        let is_counted = allowed.cell.is_some_and(|cell| matches!(policy.cells[cell].on, On::Reasons(_)));
        if fault.reason != Reason::RateLimited
            || is_counted
            || allowed.attempts <= 1
            || self.limit_waits >= STATED_ENDS_MAX
            || self.all_started(policy)
            || failure.retried_below.is_some_and(|n| n > 1)
        {
            return None;
        }
        let stated = stated_wait(fault)?;
        let decide = |machine: &mut Self| {
            machine.may_repeat(policy, failure)?;
            let backoff = allowed.backoff.wait(1, failure.random).delay;
            machine.after_guard = backoff;
            let (delay, _) = machine.floor(policy, failure, backoff)?;
            if machine.limit_waited.saturating_add(delay) > policy.wait_max {
                let why = format!(
                    "waiting {} more for limits would be longer than wait_max allows, which is {}",
                    shown(stated),
                    shown(policy.wait_max)
                );
                return Err(FinalDecision::until_reset(fault, why));
            }
            machine.limit_waits += 1;
            machine.limit_waited += delay;
            let slot = allowed.cell.unwrap_or(policy.cells.len());
            let left = allowed.attempts.saturating_sub(machine.charged[slot]);
            let next = machine.attempt.saturating_add(1);
            let why = format!(
                "the limit ends in {}; waiting for it uses up no attempt ({} of {} such waits)",
                shown(stated),
                machine.limit_waits,
                STATED_ENDS_MAX
            );
            // Every wait that may still follow begins an attempt, so that `n of m` counts towards
            // one m.
            let waits_left = STATED_ENDS_MAX - machine.limit_waits;
            let of = at_most(policy, machine.attempt.saturating_add(left).saturating_add(waits_left));
            Ok(Decision { action: again(fault, allowed.how, delay, next, of), why })
        };
        Some(decide(self))
    }

    /// The wait for a failure from outside, which has limits of its own. `None` if the failure is
    /// the operation's own.
    fn world_wait(
        &mut self,
        policy: &Policy,
        failure: &Failure<'_>,
    ) -> Option<Result<Decision, FinalDecision>> {
        let world = policy.world.as_ref()?;
        let is_limit = failure.fault.reason == Reason::RateLimited;
        if !is_limit {
            self.blind_waits = 0;
            self.blind_waited = Duration::ZERO;
        }
        if !is_outside(policy, failure) {
            return None;
        }
        if self.all_started(policy) {
            return Some(Err(FinalDecision::used_up(all_started_why(self.attempt))));
        }
        if is_limit {
            return Some(self.limit_wait(policy, world, failure));
        }
        Some(self.trouble_wait(policy, world, failure))
    }

    /// The wait for trouble of the world that is no rate limit: an outage, a full disk, a lock.
    fn trouble_wait(
        &mut self,
        policy: &Policy,
        world: &World,
        failure: &Failure<'_>,
    ) -> Result<Decision, FinalDecision> {
        let reason = failure.fault.reason;
        let (waits, times) = match failure.worked {
            true => (self.world_worked, world.times_worked),
            false => (self.world_waits, world.times),
        };
        if waits >= times {
            let why = format!("{reason} was waited out {times} times, which is the limit");
            return Err(FinalDecision::used_up(why));
        }
        let wait = world.backoff.wait(self.world_waits + 1, failure.random);
        let (delay, hint) = self.floor(policy, failure, wait.delay)?;
        if self.world_waited.saturating_add(delay) > world.total {
            return Err(FinalDecision::used_up(format!(
                "waiting {} more for {reason} would pass the limit of {} in all",
                shown(delay),
                shown(world.total)
            )));
        }
        self.may_repeat(policy, failure)?;
        self.world_waits += 1;
        self.world_worked += u32::from(failure.worked);
        self.world_waited += delay;
        let next = self.attempt.saturating_add(1);
        let left = world.times.saturating_sub(self.world_waits);
        let why = format!(
            "{reason} is not the work's fault: wait {} of {}, {}{hint}",
            self.world_waits,
            world.times,
            shown(delay)
        );
        self.after_guard = Duration::ZERO;
        Ok(Decision {
            action: Action::Retry { after: delay, attempt: next, of: at_most(policy, next + left) },
            why,
        })
    }

    /// The wait for a rate limit: until its stated end and a margin, else growing waits. Each is at
    /// most as long as the policy's longest wait. Where somebody else can do the work, nobody
    /// waits.
    fn limit_wait(
        &mut self,
        policy: &Policy,
        world: &World,
        failure: &Failure<'_>,
    ) -> Result<Decision, FinalDecision> {
        let fault = failure.fault;
        let reason = fault.reason;
        // A reset that has just passed is one now; one that comes again says nothing about the end.
        let stated = stated_wait(fault).filter(|wait| !wait.is_zero());
        if let Some(decision) = self.take_over(failure, stated) {
            return Ok(decision);
        }
        self.may_repeat(policy, failure)?;
        if !failure.may_wait {
            let times = match world.limits.times {
                0 => "none is".to_owned(),
                1 => "1 wait is".to_owned(),
                times => format!("{times} waits are"),
            };
            let why = format!("{reason}: {times} allowed in a run, and no more");
            return Err(match stated {
                Some(_) => FinalDecision::until_reset(fault, why),
                None => FinalDecision::used_up(why),
            });
        }
        let (delay, words) = match stated {
            Some(stated) => {
                let margin = margin(fault, stated);
                // The stated end is a floor, so that one which is too far away ends it.
                let (wait, _) = self.floor(policy, failure, Duration::ZERO)?;
                if failure.dispatch == Dispatch::NotDispatched {
                    // A guard of ours that nobody gave an end to: the provider has said nothing
                    // new.
                    self.blind_waited += if self.blind_waits > 0 { wait } else { Duration::ZERO };
                } else {
                    self.blind_waits = 0;
                    self.blind_waited = Duration::ZERO;
                }
                let words = format!("the limit ends in {}, and {} to be sure", shown(stated), shown(margin));
                (wait.saturating_add(margin), words)
            }
            None => {
                let delay = world.limits.backoff.wait(self.blind_waits + 1, failure.random).delay;
                let (delay, _) = self.floor(policy, failure, delay)?;
                // A limit that has just ended: now, and a little later.
                let is_over = fault.facts.resets_at.is_some();
                let delay = if is_over { delay.max(margin(fault, Duration::ZERO)) } else { delay };
                if self.blind_waited.saturating_add(delay) > policy.wait_max {
                    return Err(FinalDecision::used_up(format!(
                        "no end of the limit is known, and waiting {} more would pass {} in all",
                        shown(delay),
                        shown(policy.wait_max)
                    )));
                }
                self.blind_waits += 1;
                self.blind_waited += delay;
                let words = match is_over {
                    true => format!("the limit has just ended: {} to be sure", shown(delay)),
                    false => format!(
                        "no end of the limit is known: wait {} in a row, {}",
                        self.blind_waits,
                        shown(delay)
                    ),
                };
                (delay, words)
            }
        };
        let next = self.attempt.saturating_add(1);
        self.after_guard = Duration::ZERO;
        let why = format!("{reason} is not the work's fault: {words}");
        Ok(Decision { action: again(fault, How::Again, delay, next, at_most(policy, next)), why })
    }

    /// Another worker, where there is one and the limit is not over in a moment.
    fn take_over(&mut self, failure: &Failure<'_>, stated: Option<Duration>) -> Option<Decision> {
        let to = failure.alternative?;
        let is_long = match stated {
            Some(wait) => wait > TAKEOVER_FROM,
            None => self.blind_waits > 0,
        };
        if !is_long {
            return None;
        }
        let why = match stated {
            Some(wait) => format!("the limit ends in {}; {to} takes over", shown(wait)),
            None => format!("no end of the limit is known; {to} takes over"),
        };
        self.taken_over(to, why)
    }

    /// Hands the work to another worker, unless that was done too often.
    fn taken_over(&mut self, to: &str, why: String) -> Option<Decision> {
        if self.takeovers >= TAKEOVERS_MAX {
            return None;
        }
        self.takeovers += 1;
        self.after_guard = Duration::ZERO;
        Some(Decision { action: Action::Fallback { to: to.to_owned() }, why })
    }

    /// Whether the last failures were rate limits whose end nobody knows: the next such wait
    /// belongs to the same wait of the run.
    pub fn is_waiting_blindly(&self) -> bool {
        self.blind_waits > 0
    }

    /// Whether the operation was started as often as it may be, whatever the reasons were.
    fn all_started(&self, policy: &Policy) -> bool {
        policy.starts_max.is_some_and(|most| self.attempt >= most)
    }

    /// Checks everything that forbids another attempt, except the number of attempts.
    fn may_repeat(&self, policy: &Policy, failure: &Failure<'_>) -> Result<(), FinalDecision> {
        let reason = failure.fault.reason;
        if let Some(why) = failure.unrepeatable {
            return Err(FinalDecision::of(policy, reason, why.to_owned()));
        }
        if failure.dispatch == Dispatch::Lost && !self.repeatable {
            let why = format!(
                "{reason}: how far it got is not known, so it needs confirmation before it is retried"
            );
            return Err(self.confirm(why));
        }
        let nothing_done = failure.nothing_done || failure.dispatch == Dispatch::NotDispatched;
        if let Some(why) = self.confirm_why.clone().filter(|_| !nothing_done) {
            return Err(self.confirm(why));
        }
        if failure.dispatch != Dispatch::NotDispatched && !self.budget.allows(failure.recent) {
            let Recent { attempts, retries } = failure.recent;
            let window = shown(self.budget.window);
            let why = format!(
                "the retry budget is empty: {retries} of {attempts} attempts in the last {window} were retries"
            );
            return Err(FinalDecision::of(policy, reason, why));
        }
        Ok(())
    }

    /// Applies the server's hint as a minimum and the deadline as a maximum of a wait.
    fn floor(
        &self,
        policy: &Policy,
        failure: &Failure<'_>,
        delay: Duration,
    ) -> Result<(Duration, String), FinalDecision> {
        let reason = failure.fault.reason;
        let asked = stated_wait(failure.fault);
        let mut hint = String::new();
        let mut wait = delay;
        if let Some(asked) = asked.filter(|asked| *asked > delay) {
            if asked > policy.wait_max {
                let why = format!(
                    "the server asks to wait {}, and wait_max allows {}",
                    shown(asked),
                    shown(policy.wait_max)
                );
                return Err(FinalDecision::until_reset(failure.fault, why));
            }
            wait = asked;
            hint = format!("; the server asks for {}, which is longer", shown(asked));
        }
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_sub(failure.now);
            if wait >= left {
                let why = if left.is_zero() {
                    "the deadline is reached".to_owned()
                } else {
                    format!(
                        "the wait of {} would pass the deadline, which is {} away",
                        shown(wait),
                        shown(left)
                    )
                };
                return Err(FinalDecision::of(policy, reason, why));
            }
        }
        Ok((wait, hint))
    }

    fn confirm(&self, why: String) -> FinalDecision {
        let command = self.confirm_with.clone();
        FinalDecision { decision: Decision { action: Action::Confirm { command }, why }, used_up: false }
    }
}

/// The reason that is acted on. What is only guessed is treated like what nobody knows: a guess may
/// neither repeat, nor halt, nor wait for anything.
fn acted_on(fault: &Fault) -> Reason {
    if fault.confidence.is_low() { Reason::Unknown } else { fault.reason }
}

/// Whether the failure came from outside: it is waited out against limits of its own.
fn is_outside(policy: &Policy, failure: &Failure<'_>) -> bool {
    let reason = acted_on(failure.fault);
    let is_worlds = |reasons: &[Reason]| failure.worker_lost || reasons.contains(&reason);
    policy.world.as_ref().is_some_and(|world| is_worlds(&world.reasons))
}

fn all_started_why(attempts: u32) -> String {
    match attempts {
        1 => "1 attempt is allowed in all, and it is used".to_owned(),
        _ => format!("{attempts} attempts are allowed in all, and all are used"),
    }
}

/// The number of the last attempt that there can be.
fn at_most(policy: &Policy, attempts: u32) -> u32 {
    policy.starts_max.map_or(attempts, |most| attempts.min(most))
}

/// How much longer than until the stated end of a limit is waited.
fn margin(fault: &Fault, stated: Duration) -> Duration {
    let is_long = fault.facts.window.map_or(stated >= LONG_WINDOW, |window| window.length() >= LONG_WINDOW);
    if is_long { MARGIN } else { (stated / MARGIN_PART).min(MARGIN) }
}

/// The wait that a fault asks for.
fn stated_wait(fault: &Fault) -> Option<Duration> {
    fault.facts.retry_after_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Another attempt after a delay. A rate limit of a known provider waits for that provider's guard.
fn again(fault: &Fault, how: How, after: Duration, attempt: u32, of: u32) -> Action {
    let provider = fault.facts.provider.as_ref().map(|provider| provider.raw().to_owned());
    let waits = how == How::Guarded || (fault.reason == Reason::RateLimited && provider.is_some());
    if !waits {
        return Action::Retry { after, attempt, of };
    }
    Action::AwaitGuard { provider: provider.unwrap_or_else(|| "unknown".to_owned()), after, attempt, of }
}

/// A decision that ends the operation.
struct FinalDecision {
    decision: Decision,
    /// Whether it ends because retries did not help.
    used_up: bool,
}

impl FinalDecision {
    fn surface(why: String) -> Self {
        Self { decision: Decision { action: Action::Surface, why }, used_up: false }
    }

    /// Put aside until the wait is over that the fault asks for.
    fn until_reset(fault: &Fault, why: String) -> Self {
        let until = match (fault.facts.resets_at, stated_wait(fault)) {
            (Some(at), _) => at.to_string(),
            (None, Some(wait)) => format!("{} have passed", shown(wait)),
            (None, None) => fault.reason.waits_for().to_owned(),
        };
        Self { decision: Decision { action: Action::Defer { until }, why }, used_up: false }
    }

    /// The run is halted: all that was allowed did not help.
    fn used_up(why: String) -> Self {
        Self { decision: Decision { action: Action::Halt, why }, used_up: true }
    }

    fn defer(reason: Reason, why: String) -> Self {
        let until = reason.waits_for().to_owned();
        Self { decision: Decision { action: Action::Defer { until }, why }, used_up: false }
    }

    /// The decision of the policy for an operation that is not attempted again.
    fn of(policy: &Policy, reason: Reason, why: String) -> Self {
        if policy.exhausted == Exhausted::Halt {
            return Self { decision: Decision { action: Action::Halt, why }, used_up: false };
        }
        if reason.class() == Class::System && reason.retry() == Retry::Later {
            return Self::defer(reason, why);
        }
        Self::surface(why)
    }
}

/// The sentence that says why a reason is not retried.
fn once(reason: Reason) -> &'static str {
    match reason.retry() {
        _ if reason == Reason::Unknown => "a failure that no rule knows is not repeated",
        Retry::No => "the same again would fail again",
        Retry::Changed => "only a change can cure it",
        Retry::Later => "it can only work when its cause is gone",
        Retry::Plain => "one attempt is all that is allowed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::{PROFILES, profile};
    use proptest::prelude::*;

    fn machine(name: &str) -> Machine {
        Machine::new(Arc::new(profile(name).unwrap()))
    }

    #[test]
    fn a_guess_is_decided_like_what_nobody_knows() {
        let decide = |name: &str, reason: Reason, percent: u8| {
            let mut machine = machine(name);
            machine.begin();
            let mut fault = Fault::new(reason);
            fault.set_confidence(crate::Confidence::of_percent(percent));
            machine.failed(&Failure::new(&fault, Duration::ZERO)).decision
        };
        // Sure of it, a phase halts at once; a guess leaves it its retry.
        assert_eq!(decide("phase", Reason::DependencyMissing, 95).action, Action::Halt);
        // What is critical is only ever reported, and never repeated.
        for reason in Reason::all().filter(|reason| reason.severity() != Severity::Critical) {
            for name in ["phase", "command", "task"] {
                let (guess, unknown) =
                    (decide(name, reason, 40).action, decide(name, Reason::Unknown, 40).action);
                assert_eq!(guess.name(), unknown.name(), "{reason} in {name}");
            }
        }
        let why = decide("command", Reason::NetworkTransient, 40).why;
        assert_eq!(why, "it only looks like network_transient: a guess is not repeated (profile command)");
    }

    /// Fails with these reasons, one after the other, and says what was decided each time.
    fn play(mut machine: Machine, reasons: &[Reason]) -> Vec<String> {
        let mut said = Vec::new();
        for reason in reasons {
            if machine.stage() == Stage::Ended {
                break;
            }
            machine.begin();
            let verdict = machine.failed(&Failure::new(&Fault::new(*reason), Duration::ZERO));
            let name = verdict.decision.action.name();
            let wait = match verdict.decision.action {
                Action::Retry { after, attempt, of } | Action::AwaitGuard { after, attempt, of, .. } => {
                    format!(" {}ms {attempt}/{of}", after.as_millis())
                }
                _ => String::new(),
            };
            let named = verdict.reclassified.map(|r| format!(" as {r}")).unwrap_or_default();
            said.push(format!("{name}{wait}{named}"));
        }
        said
    }

    #[test]
    fn a_command_retries_the_network_three_times_and_then_calls_it_permanent() {
        assert_eq!(
            play(machine("command"), &[Reason::NetworkTransient; 9]),
            ["retry 1000ms 2/4", "retry 2000ms 3/4", "retry 4000ms 4/4", "surface as network_permanent"]
        );
        assert_eq!(play(machine("command"), &[Reason::TestFailure; 2]), ["surface"]);
    }

    #[test]
    fn different_transient_faults_share_the_chances_of_their_cell() {
        let mixed =
            [Reason::NetworkTransient, Reason::Timeout, Reason::RateLimited, Reason::ResourceContention];
        assert_eq!(
            play(machine("command"), &mixed),
            ["retry 1000ms 2/4", "retry 2000ms 3/4", "retry 4000ms 4/4", "surface"]
        );
    }

    #[test]
    fn a_rate_limit_waits_for_the_guard_and_starts_over() {
        assert_eq!(
            play(machine("request"), &[Reason::RateLimited; 9]),
            [
                "await_guard 100ms 2/5",
                "await_guard 100ms 3/5",
                "await_guard 100ms 4/5",
                "await_guard 100ms 5/5",
                "surface"
            ]
        );
        assert_eq!(play(machine("request"), &[Reason::ContextOverflow; 9]), ["compress", "surface"]);
    }

    #[test]
    fn the_worlds_trouble_does_not_use_up_a_phases_one_retry() {
        let mut reasons = vec![Reason::NetworkTransient, Reason::RateLimited];
        reasons.extend([Reason::TestFailure; 3]);
        assert_eq!(
            play(machine("phase"), &reasons),
            ["retry 15000ms 2/21", "retry 15000ms 3/3", "retry 0ms 4/4", "halt"]
        );
        // A network that is cut for an hour is waited out.
        let waits = play(machine("phase"), &[Reason::ServiceDown; 40]);
        assert_eq!(waits.len(), 17, "{waits:?}");
        assert_eq!(waits.last().unwrap(), "halt");
        assert_eq!(
            play(machine("phase"), &[Reason::DiskFull; 2]),
            ["retry 15000ms 2/21", "retry 30000ms 3/21"]
        );
        assert_eq!(play(machine("phase"), &[Reason::AuthError]), ["halt"]);
    }

    #[test]
    fn a_phase_waits_for_the_stated_end_and_a_margin_and_for_others_in_growing_waits() {
        use crate::wait::LimitWindow::{FiveHour, Minute};
        for (seconds, window, want) in [
            (8400.0, Some(FiveHour), "retry 8460000ms"),
            (20.0, Some(FiveHour), "retry 80000ms"),
            (20.0, Some(Minute), "retry 22000ms"),
            (7200.0, None, "retry 7260000ms"),
            (1800.0, None, "retry 1860000ms"),
            (100.0, None, "retry 110000ms"),
            // Six hours are allowed, and the margin does not count against them.
            (21_600.0, Some(FiveHour), "retry 21660000ms"),
            (21_601.0, Some(FiveHour), "defer"),
            // A reset that has passed says nothing.
            (0.0, Some(FiveHour), "retry 15000ms"),
            (1e18, None, "defer"),
        ] {
            let mut fault = limited(None, Some(seconds));
            fault.facts.window = window;
            let mut machine = machine("phase");
            machine.begin();
            let decision = machine.failed(&Failure::new(&fault, Duration::ZERO)).decision;
            let said = match decision.action {
                Action::Retry { after, .. } => format!("retry {}ms", after.as_millis()),
                ref action => action.name().to_owned(),
            };
            assert_eq!(said, want, "{seconds} {window:?}: {}", decision.why);
        }
        // A reset that has just passed is one now, and a margin later; of a short window, no later
        // than a limit without an end.
        for (window, want) in [(Some(FiveHour), 60_000), (Some(Minute), 15_000), (None, 15_000)] {
            let mut fault = limited(None, None);
            fault.facts.window = window;
            fault.facts.resets_at = Some(crate::Timestamp::from_millis(0));
            let mut machine = machine("phase");
            machine.begin();
            let decision = machine.failed(&Failure::new(&fault, Duration::ZERO)).decision;
            let after = Duration::from_millis(want);
            assert!(
                matches!(decision.action, Action::Retry { after: got, .. } if got == after),
                "{decision:?}"
            );
            assert!(decision.why.contains("has just ended"), "{}", decision.why);
        }
        // Four waits of five hours and more are possible in one phase; what is allowed in a run is
        // counted there.
        let five_hours = limited(None, Some(18_000.0));
        let mut machine = machine("phase");
        for _ in 0..4 {
            machine.begin();
            assert!(machine.failed(&Failure::new(&five_hours, Duration::ZERO)).decision.action.goes_on());
        }
        machine.begin();
        let none_left = Failure { may_wait: false, ..Failure::new(&five_hours, Duration::ZERO) };
        let decision = machine.failed(&none_left).decision;
        assert!(matches!(decision.action, Action::Defer { .. }), "{decision:?}");
        assert!(decision.why.contains("4 waits are allowed in a run"), "{}", decision.why);
    }

    #[test]
    fn a_limit_without_an_end_is_waited_for_in_growing_waits_within_the_longest() {
        let mut machine = machine("phase");
        let (mut waits, mut total) = (Vec::new(), Duration::ZERO);
        let last = loop {
            machine.begin();
            let decision = machine.failed(&Failure::new(&limited(None, None), Duration::ZERO)).decision;
            let Action::Retry { after, .. } = decision.action else { break decision };
            total += after;
            waits.push(after.as_secs());
        };
        assert_eq!(waits[..9], [15, 30, 60, 120, 240, 480, 960, 1920, 3600]);
        assert!(total <= Duration::from_secs(6 * 3600) && total > Duration::from_secs(5 * 3600), "{total:?}");
        assert_eq!(last.action, Action::Halt);
        assert!(last.why.contains("no end of the limit is known"), "{}", last.why);
    }

    #[test]
    fn somebody_else_takes_over_where_the_wait_is_long() {
        let decide = |fault: &Fault, alternative| {
            let mut machine = machine("phase");
            machine.begin();
            let verdict = machine.failed(&Failure { alternative, ..Failure::new(fault, Duration::ZERO) });
            (verdict.decision.action.name(), verdict.outside)
        };
        assert_eq!(decide(&limited(Some("anthropic"), Some(7200.0)), Some("codex")), ("fallback", true));
        assert_eq!(decide(&limited(Some("anthropic"), Some(1e6)), Some("codex")), ("fallback", true));
        assert_eq!(decide(&limited(Some("anthropic"), Some(20.0)), Some("codex")), ("await_guard", true));
        assert_eq!(decide(&limited(Some("anthropic"), Some(7200.0)), None), ("await_guard", true));
        assert_eq!(decide(&Fault::new(Reason::QuotaExhausted), Some("codex")), ("fallback", true));
        assert_eq!(decide(&Fault::new(Reason::QuotaExhausted), None), ("halt", false));
        assert_eq!(decide(&Fault::new(Reason::TestFailure), Some("codex")), ("retry", false));
        // Two that are limited both do not pass the work back and forth for ever.
        let mut machine = machine("phase");
        let fault = limited(Some("anthropic"), Some(1e6));
        let mut taken = 0;
        loop {
            machine.begin();
            let failure = Failure { alternative: Some("codex"), ..Failure::new(&fault, Duration::ZERO) };
            match machine.failed(&failure).decision.action {
                Action::Fallback { .. } => taken += 1,
                _ => break,
            }
        }
        assert_eq!(taken, TAKEOVERS_MAX);
    }

    #[test]
    fn a_service_that_is_down_is_put_aside() {
        let mut machine = machine("command");
        machine.begin();
        let verdict = machine.failed(&Failure::new(&Fault::new(Reason::ServiceDown), Duration::ZERO));
        assert_eq!(verdict.decision.action, Action::Defer { until: "the service answers".to_owned() });
    }

    #[test]
    fn what_was_lost_is_repeated_only_if_it_may_be() {
        let fault = Fault::new(Reason::Timeout);
        for (dispatch, repeatable, want) in [
            (Dispatch::Lost, true, "retry"),
            (Dispatch::Lost, false, "confirm"),
            (Dispatch::NotDispatched, false, "retry"),
            (Dispatch::Answered, false, "retry"),
        ] {
            let mut machine =
                machine("command").repeatable(repeatable).confirm_with("backstop exec --confirm r-7f3a");
            machine.begin();
            let verdict = machine.failed(&Failure { dispatch, ..Failure::new(&fault, Duration::ZERO) });
            assert_eq!(verdict.decision.action.name(), want, "{dispatch:?} {repeatable}");
        }
    }

    #[test]
    fn what_may_have_changed_something_is_repeated_only_after_a_confirmation() {
        for (reason, dispatch, nothing_done, want) in [
            (Reason::NetworkTransient, Dispatch::Answered, false, "confirm"),
            (Reason::Timeout, Dispatch::Lost, false, "confirm"),
            (Reason::NetworkTransient, Dispatch::NotDispatched, false, "retry"),
            (Reason::RateLimited, Dispatch::Answered, true, "retry"),
            // What would not be repeated anyway needs no confirmation.
            (Reason::Validation, Dispatch::Answered, false, "surface"),
            (Reason::ServiceDown, Dispatch::Answered, false, "defer"),
        ] {
            let mut machine = machine("command")
                .confirm_why(Some("curl sends a request that can change something".to_owned()))
                .confirm_with("backstop exec --confirm r-7f3a");
            machine.begin();
            let fault = Fault::new(reason);
            let failure = Failure { dispatch, nothing_done, ..Failure::new(&fault, Duration::ZERO) };
            let decision = machine.failed(&failure).decision;
            assert_eq!(decision.action.name(), want, "{reason} {dispatch:?}");
            assert_eq!(decision.why.contains("curl sends"), want == "confirm", "{}", decision.why);
        }
    }

    #[test]
    fn what_cannot_be_made_smaller_has_one_attempt() {
        let decide = |policy: Policy| {
            let mut machine = Machine::new(Arc::new(policy)).compressible(false);
            machine.begin();
            machine.failed(&Failure::new(&Fault::new(Reason::ContextOverflow), Duration::ZERO)).decision
        };
        let decision = decide(profile("request").unwrap());
        assert_eq!(decision.action, Action::Surface);
        assert!(decision.why.contains("cannot be made smaller"), "{}", decision.why);
        // Whoever asks for the same again gets it.
        let plain = profile("request").unwrap().with_cell(Reason::ContextOverflow, 2, How::Again, None);
        assert_eq!(decide(plain).action.name(), "retry");
    }

    #[test]
    fn a_stop_by_a_person_is_called_that() {
        let mut machine = machine("command");
        machine.begin();
        let verdict = machine.failed(&Failure::new(&Fault::new(Reason::Interrupted), Duration::ZERO));
        assert_eq!(verdict.decision.why, "stopped by you");
    }

    #[test]
    fn a_hint_is_a_floor_and_the_deadline_a_ceiling() {
        let mut fault = Fault::new(Reason::RateLimited);
        fault.facts.retry_after_seconds = Some(41.0);
        let decide = |deadline: Option<u64>, fault: &Fault| {
            let mut machine = machine("command").deadline(deadline.map(Duration::from_secs));
            machine.begin();
            machine.failed(&Failure::new(fault, Duration::from_secs(10))).decision
        };
        assert_eq!(
            decide(None, &fault).why,
            "the limit ends in 41 s; waiting for it uses up no attempt (1 of 5 such waits)"
        );
        assert!(
            matches!(decide(Some(60), &fault).action, Action::Retry { after, .. } if after.as_secs() == 41)
        );
        let late = decide(Some(50), &fault);
        assert_eq!(late.action, Action::Surface);
        assert_eq!(late.why, "the wait of 41 s would pass the deadline, which is 40 s away");
        assert_eq!(decide(Some(10), &fault).why, "the deadline is reached");
        fault.facts.retry_after_seconds = Some(7200.0);
        assert!(matches!(decide(None, &fault).action, Action::Defer { .. }));
        fault.facts.retry_after_seconds = Some(f64::INFINITY);
        assert!(matches!(decide(None, &fault).action, Action::Retry { .. }));
    }

    fn limited(provider: Option<&str>, seconds: Option<f64>) -> Fault {
        let mut fault = Fault::new(Reason::RateLimited);
        fault.facts.provider = provider.map(crate::SafeText::from);
        fault.facts.retry_after_seconds = seconds;
        fault
    }

    #[test]
    fn every_profile_waits_for_the_guard_of_a_known_provider() {
        for name in PROFILES {
            for seconds in [None, Some(20.0)] {
                let mut machine = machine(name);
                machine.begin();
                let fault = limited(Some("anthropic"), seconds);
                let verdict = machine.failed(&Failure::new(&fault, Duration::ZERO));
                let Action::AwaitGuard { after, provider, .. } = verdict.decision.action else {
                    panic!("{name}: {:?}", verdict.decision);
                };
                assert_eq!(provider, "anthropic");
                assert!(after.as_secs_f64() >= seconds.unwrap_or(0.0), "{name}: {after:?}");
                assert!(verdict.after_guard <= after, "{name}: the delay comes after the guard");
            }
        }
    }

    #[test]
    fn a_stated_end_uses_up_no_attempt_and_is_waited_for_five_times_at_most() {
        // The profiles without a count of their own for rate limits.
        for (name, counted) in [("command", 4), ("tool", 3), ("state", 2)] {
            let reasons = limited(None, Some(1.0));
            let mut machine = machine(name);
            let mut attempts = 0;
            while machine.stage() != Stage::Ended {
                machine.begin();
                attempts += 1;
                machine.failed(&Failure::new(&reasons, Duration::ZERO));
            }
            assert_eq!(attempts, STATED_ENDS_MAX + counted, "{name}");
        }
        // What has one attempt has one.
        let mut once = Machine::new(Arc::new(profile("command").unwrap().with_attempts(1)));
        once.begin();
        let fault = limited(None, Some(1.0));
        assert_eq!(once.failed(&Failure::new(&fault, Duration::ZERO)).decision.action, Action::Surface);
    }

    #[test]
    fn attempts_bound_every_start_and_n_of_m_counts_towards_one_m() {
        for (name, attempts) in [
            ("command", None),
            ("command", Some(2)),
            ("tool", Some(3)),
            ("state", Some(2)),
            ("request", Some(3)),
            ("task", Some(2)),
            ("phase", Some(2)),
        ] {
            for seconds in [None, Some(1.0)] {
                let mut policy = profile(name).unwrap();
                if let Some(attempts) = attempts {
                    policy = policy.with_attempts(attempts).with_starts_max(attempts);
                }
                let fault = limited(Some("anthropic"), seconds);
                let mut machine = Machine::new(Arc::new(policy));
                let mut promised = Vec::new();
                let last = loop {
                    machine.begin();
                    let decision = machine.failed(&Failure::new(&fault, Duration::ZERO)).decision;
                    match decision.action {
                        Action::Retry { of, attempt, .. } | Action::AwaitGuard { of, attempt, .. } => {
                            assert_eq!(attempt, machine.attempt() + 1);
                            promised.push(of);
                        }
                        _ => break decision,
                    }
                };
                let made = machine.attempt();
                assert!(attempts.is_none_or(|most| made == most), "{name} {attempts:?} {seconds:?}: {made}");
                assert!(
                    promised.iter().all(|of| *of == made),
                    "{name} {seconds:?}: {promised:?}, {made} made"
                );
                if attempts.is_some() && seconds.is_some() {
                    assert!(last.why.contains(&format!("{made} attempts")), "{name}: {}", last.why);
                }
            }
        }
        // A server that asks for a retry gets none beyond the bound.
        let mut fault = Fault::new(Reason::Validation);
        fault.facts.should_retry = Some(true);
        let mut once = Machine::new(Arc::new(profile("command").unwrap().with_attempts(1)));
        once.begin();
        let decision = once.failed(&Failure::new(&fault, Duration::ZERO)).decision;
        assert_eq!(decision.action, Action::Surface, "{}", decision.why);
    }

    #[test]
    fn a_fallback_is_used_once_and_gives_no_retries_anew() {
        let policy = profile("request").unwrap();
        let choice = |to: &str, on: &[Reason]| FallbackChoice { to: to.to_owned(), on: on.to_vec() };
        let choices = [
            choice("small", &[Reason::NetworkTransient, Reason::RateLimited]),
            choice("other", &[Reason::ServiceDown]),
        ];
        let mut machine = Machine::new(Arc::new(policy)).fallbacks(choices.clone());
        let fault = Fault::new(Reason::NetworkTransient);
        let mut actions = Vec::new();
        loop {
            machine.begin();
            let verdict = machine.failed(&Failure::new(&fault, Duration::ZERO));
            actions.push(verdict.decision.action.name());
            if !verdict.decision.action.goes_on() {
                assert_eq!(verdict.reclassified, Some(Reason::NetworkPermanent));
                break;
            }
        }
        assert_eq!(actions, ["retry", "retry", "retry", "fallback", "surface"]);
        // What is refused before it begins can be done by another.
        let policy = profile("request").unwrap();
        let mut machine = Machine::new(Arc::new(policy)).fallbacks(choices);
        let limited = machine.refused(&Failure::new(&limited(Some("x"), Some(600.0)), Duration::ZERO));
        assert_eq!(limited.decision.action, Action::Fallback { to: "small".to_owned() });
        let down = machine.refused(&Failure::new(&Fault::new(Reason::ServiceDown), Duration::ZERO));
        assert_eq!(down.decision.action, Action::Fallback { to: "other".to_owned() });
        let again = machine.refused(&Failure::new(&Fault::new(Reason::ServiceDown), Duration::ZERO));
        assert!(!again.decision.action.goes_on());
    }

    #[test]
    fn limits_are_waited_for_no_longer_than_allowed_in_all() {
        let policy = Policy { wait_max: Duration::from_secs(60), ..profile("command").unwrap() };
        let mut machine = Machine::new(Arc::new(policy));
        let fault = limited(None, Some(40.0));
        machine.begin();
        assert!(machine.failed(&Failure::new(&fault, Duration::ZERO)).decision.action.goes_on());
        machine.begin();
        let second = machine.failed(&Failure::new(&fault, Duration::ZERO)).decision;
        assert!(matches!(second.action, Action::Defer { .. }), "{second:?}");
    }

    #[test]
    fn a_refused_start_is_no_attempt_and_ends_it() {
        let mut machine = machine("tool");
        machine.begin();
        machine.failed(&Failure::new(&Fault::new(Reason::ToolFailed), Duration::ZERO));
        let verdict = machine.refused(&Failure::new(&limited(Some("x"), Some(600.0)), Duration::ZERO));
        assert_eq!(verdict.decision.action, Action::Defer { until: "10m 00s have passed".to_owned() });
        assert_eq!((machine.attempt(), machine.stage()), (1, Stage::Ended));
        let mut machine = Machine::new(Arc::new(profile("tool").unwrap()));
        let down = machine.refused(&Failure::new(&Fault::new(Reason::ServiceDown), Duration::ZERO));
        assert!(!down.decision.action.goes_on());
        assert_eq!(machine.attempt(), 0);
    }

    #[test]
    fn the_server_may_forbid_a_retry_or_ask_for_one() {
        let mut fault = Fault::new(Reason::NetworkTransient);
        fault.facts.should_retry = Some(false);
        let mut first = machine("request");
        first.begin();
        assert_eq!(first.failed(&Failure::new(&fault, Duration::ZERO)).decision.action, Action::Surface);
        let mut fault = Fault::new(Reason::Validation);
        fault.facts.should_retry = Some(true);
        let mut second = machine("request");
        second.begin();
        assert!(second.failed(&Failure::new(&fault, Duration::ZERO)).decision.action.goes_on());
        // What it says about the same request is not said about a smaller one.
        let mut fault = Fault::new(Reason::ContextOverflow);
        fault.facts.should_retry = Some(false);
        let mut third = machine("request").compressible(true);
        third.begin();
        let decision = third.failed(&Failure::new(&fault, Duration::ZERO)).decision;
        assert_eq!(decision.action, Action::Compress { keep_percent: 50, attempt: 2 });
    }

    #[test]
    fn an_empty_retry_budget_refuses_and_says_the_numbers() {
        let fault = Fault::new(Reason::NetworkTransient);
        let mut machine = machine("command");
        machine.begin();
        let recent = Recent { attempts: 40, retries: 30 };
        let verdict = machine.failed(&Failure { recent, ..Failure::new(&fault, Duration::ZERO) });
        assert_eq!(verdict.decision.action, Action::Surface);
        assert_eq!(
            verdict.decision.why,
            "the retry budget is empty: 30 of 40 attempts in the last 1m 00s were retries"
        );
        let budget = RetryBudget::default();
        assert!(budget.allows(Recent { attempts: 1000, retries: 499 }));
        assert!(!budget.allows(Recent { attempts: 1000, retries: 500 }));
    }

    #[test]
    fn a_layer_below_that_retried_is_not_multiplied() {
        let fault = Fault::new(Reason::NetworkTransient);
        let mut machine = machine("command");
        machine.begin();
        let failure = Failure { retried_below: Some(4), ..Failure::new(&fault, Duration::ZERO) };
        let verdict = machine.failed(&failure);
        assert_eq!(verdict.decision.action, Action::Surface);
        assert!(verdict.decision.why.contains("4 attempts already"), "{}", verdict.decision.why);
        // A smaller request and one after a wait are other requests.
        for fault in [Fault::new(Reason::ContextOverflow), limited(Some("x"), Some(1.0))] {
            let mut machine = self::machine("request").compressible(true);
            machine.begin();
            let failure = Failure { retried_below: Some(4), ..Failure::new(&fault, Duration::ZERO) };
            let decision = machine.failed(&failure).decision;
            assert!(decision.action.goes_on(), "{decision:?}");
        }
    }

    #[test]
    fn what_a_retry_has_never_cured_is_surfaced_where_the_policy_learns() {
        let fault = Fault::new(Reason::NetworkTransient);
        for (learn, retried, cured, goes_on) in
            [(true, 5, 0, false), (true, 4, 0, true), (true, 9, 1, true), (false, 9, 0, true)]
        {
            let mut machine = Machine::new(Arc::new(Policy { learn, ..profile("command").unwrap() }));
            machine.begin();
            let experience = Some(Experience { retried, cured });
            let verdict = machine.failed(&Failure { experience, ..Failure::new(&fault, Duration::ZERO) });
            assert_eq!(verdict.decision.action.goes_on(), goes_on, "{learn} {retried} {cured}");
            assert_eq!(verdict.decision.why.contains("never cured this in 5 tries"), !goes_on);
        }
    }

    #[test]
    fn disabled_means_that_nothing_is_tried_again() {
        let mut machine = machine("command").disabled(true);
        machine.begin();
        let fault = Fault::new(Reason::NetworkTransient);
        assert_eq!(machine.failed(&Failure::new(&fault, Duration::ZERO)).decision.action, Action::Surface);
    }

    proptest! {
        #[test]
        fn every_machine_ends_and_no_wait_passes_a_bound(
            name in prop::sample::select(PROFILES),
            seed in prop::collection::vec((0usize..51, 0.0f64..1.0, prop::option::of(0.0f64..10_000.0), 0u8..3), 700),
            deadline in prop::option::of(0u64..100_000),
            attempts in prop::option::of(1u32..120),
            repeatable: bool,
        ) {
            let mut policy = profile(name).unwrap();
            if let Some(attempts) = attempts {
                policy = policy.with_attempts(attempts);
            }
            let policy = Arc::new(policy);
            let deadline = deadline.map(Duration::from_secs);
            let mut machine = Machine::new(Arc::clone(&policy)).deadline(deadline).repeatable(repeatable);
            let mut now = Duration::ZERO;
            for (index, random, hint, dispatch) in &seed {
                machine.begin();
                let mut fault = Fault::new(Reason::all().nth(*index).unwrap());
                fault.facts.retry_after_seconds = *hint;
                let dispatch = [Dispatch::NotDispatched, Dispatch::Answered, Dispatch::Lost][usize::from(*dispatch)];
                let failure = Failure { random: *random, dispatch, ..Failure::new(&fault, now) };
                let verdict = machine.failed(&failure);
                prop_assert!(!verdict.decision.why.is_empty());
                match verdict.decision.action {
                    Action::Retry { after, attempt, of } | Action::AwaitGuard { after, attempt, of, .. } => {
                        let table = policy.allowance(fault.reason).backoff.ceiling();
                        let world = policy.world.as_ref().map_or(Duration::ZERO, |w| w.backoff.ceiling());
                        let hinted = hint.map_or(Duration::ZERO, Duration::from_secs_f64);
                        let blind = policy.world.as_ref().map_or(Duration::ZERO, |w| w.limits.backoff.ceiling());
                        prop_assert!(after <= table.max(world).max(blind).max(hinted + MARGIN));
                        prop_assert!(after <= policy.wait_max + MARGIN);
                        prop_assert!(attempt <= of);
                        if let Some(deadline) = deadline { prop_assert!(now + after < deadline); }
                        now += after;
                    }
                    Action::Compress { .. } => {}
                    _ => break,
                }
            }
            prop_assert_eq!(machine.stage(), Stage::Ended);
        }
    }
}
