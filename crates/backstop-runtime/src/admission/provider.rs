//! Providers by the names that people give them, and what a person asks of their limits: learn from
//! a response, wait until one is open, forget one.

use super::guard::{GuardWait, Step, key_of, sentence_max};
use crate::aftermath::record_override;
use crate::project::{Project, ProjectError};
use backstop_classify::{agent_names, provider_names, provider_of_name};
use backstop_core::guard::{Closed, GuardKey, GuardState, closed_by};
use backstop_core::nearest::nearest;
use backstop_core::{Clock, ErrorKind, HintedError, Hints, HttpAnswer, IdError, Name};
use backstop_report::GuardList;
use backstop_store::{LimitStore, StoreError};
use std::time::Duration;

/// Why a provider is not known.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Nothing is known of a provider of this name.
    #[error("no provider is called `{given}`, and no limit of it was learned")]
    Unknown {
        /// The name.
        given: Name,
        /// The nearest one that is known.
        near: Option<String>,
    },
    /// It is no name.
    #[error("{0}")]
    Name(#[from] IdError),
    /// The shared limits cannot be read.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl HintedError for ProviderError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } => ErrorKind::Usage,
            Self::Name(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unknown { near: Some(near), .. } => vec![format!("did you mean `{near}`?")],
            Self::Unknown { near: None, .. } => vec![
                "`backstop guard` lists what was learned; `guard ingest NAME` learns a limit of any name"
                    .to_owned(),
            ],
            Self::Name(error) => error.hints(),
            Self::Store(error) => error.hints(),
        }
    }
}

/// The provider that a name stands for: an agent's name stands for its provider.
pub fn provider_named(given: &str) -> Result<Name, IdError> {
    let given = given.to_ascii_lowercase();
    provider_of_name(&given).unwrap_or(&given).parse()
}

/// The same, where only a provider that is known makes sense: by its name, or by a guard or breaker
/// that was learned.
pub fn known_provider(given: &str, store: &LimitStore) -> Result<Name, ProviderError> {
    let provider = provider_named(given)?;
    if provider_names().any(|name| name == provider.as_str()) {
        return Ok(provider);
    }
    let learned = store.guards()?.into_iter().map(|guard| guard.key.provider);
    let learned: Vec<Name> = learned.chain(store.breakers()?.into_iter().map(|b| b.provider)).collect();
    if learned.contains(&provider) {
        return Ok(provider);
    }
    let mut names: Vec<&str> = learned.iter().map(Name::as_str).collect();
    provider_names().chain(agent_names()).for_each(|name| names.push(name));
    let near = nearest(provider.as_str(), names).map(str::to_owned);
    Err(ProviderError::Unknown { given: provider, near })
}

/// The known provider or agent whose name a given one nearly is. Any name may be given to a
/// provider: a slip of the pen would have a guard of its own, which nobody else asks.
pub fn near_provider(given: &Name) -> Option<&'static str> {
    let is_known = provider_names().any(|name| name == given.as_str());
    nearest(given.as_str(), provider_names().chain(agent_names())).filter(|_| !is_known)
}

/// Closes a provider's guard as its response asks. Gives the guard as it is then.
pub fn learn_answer(
    project: &Project,
    provider: &Name,
    answer: &HttpAnswer,
) -> Result<GuardState, ProjectError> {
    let now = project.process.now();
    let clock = Clock { now: Some(now), zone: project.process.zone() };
    let hints = Hints::read(&answer.headers, answer.body.as_ref(), &clock);
    let store = project.limits()?;
    let key = key_of(store, provider, None, &project.process, true);
    let closed = closed_by(&hints, answer.status, now);
    Ok(store.learn(&key, closed.map(|closed| closed.bounded(sentence_max(&project.config))))?)
}

/// Waits until a provider's guard is open; gives what closes it, where that lasts longer than
/// `limit`. `on_wait` is told once what is waited for.
pub fn wait_until_open(
    project: &Project,
    provider: &Name,
    limit: Option<Duration>,
    on_wait: impl FnOnce(&Closed),
) -> Result<Option<Closed>, ProjectError> {
    let store = project.limits()?;
    let mut wait = GuardWait::new(GuardKey::from(provider), limit, project.process.id);
    let mut on_wait = Some(on_wait);
    loop {
        match wait.next(store, project.process.now())? {
            Step::Open => return Ok(None),
            Step::TooLong(closed) => return Ok(Some(closed)),
            Step::Sleep(step) => {
                if let Some(tell) = on_wait.take()
                    && let Ok(Some(GuardState { closed: Some(closed), .. })) = store.guard(provider)
                {
                    tell(&closed);
                }
                std::thread::sleep(step);
            }
        }
    }
}

/// The guards and breakers of one provider, or of all; each guard with how many wait for it.
pub fn known_limits(project: &Project, only: Option<&Name>) -> Result<GuardList, ProjectError> {
    let store = project.limits()?;
    let wanted = |name: &Name| only.is_none_or(|only| only == name);
    let waiting = |guard: GuardState| {
        let count = match &guard.closed {
            Some(_) => store.waiting(&guard.key, &project.process.is_alive).unwrap_or(0),
            None => 0,
        };
        (guard, count)
    };
    let guards = store.guards()?.into_iter().filter(|guard| wanted(&guard.key.provider)).map(waiting);
    let breakers = store.breakers()?.into_iter().filter(|breaker| wanted(&breaker.provider));
    Ok(GuardList { guards: guards.collect(), breakers: breakers.collect(), now: project.process.now() })
}

/// Forgets a provider's limit and resets its breakers, which is recorded first. Gives whether it
/// was limited, and how many breakers there were.
pub fn forget_limits(
    project: &Project,
    provider: &Name,
    why: Option<&str>,
) -> Result<(bool, usize), ProjectError> {
    record_override(project, "guard", &format!("guard clear {provider}"), why)?;
    let store = project.limits()?;
    Ok((store.clear_guard(provider)?, store.clear_breakers(provider)?))
}
