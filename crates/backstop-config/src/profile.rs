//! Profiles with the changes that the configuration makes.
//!
//! A higher layer overrides a lower one even with a more general key: `--attempts 1` overrides
//! `on.timeout = "retry:5"` of a file. Within a layer, a key for one reason overrides a key for
//! all. This module must not know what a profile is for: the numbers are in the core.

use super::Config;
use super::error::{Place, Problem};
use super::layers::{Layer, Setting};
use super::value::{ReasonAction, Value};
use backstop_core::nearest::nearest;
use backstop_core::{Backoff, Delays, How, PROFILES, Policy, Reason, profile};
use std::time::Duration;

/// The cap of doubling delays, where neither the profile nor the configuration has one.
const CAP: Duration = Duration::from_secs(60);

/// The profile with this name, with the changes of the configuration.
pub(super) fn policy(config: &Config, name: &str) -> Result<Policy, Problem> {
    let Some(policy) = profile(name) else {
        let near = nearest(name, PROFILES.iter().copied());
        let all = || format!("profiles are {}", PROFILES.join(", "));
        let hint = near.map_or_else(all, |near| format!("did you mean `{near}`?"));
        return Err(Problem::new(Place::Nowhere, &format!("unknown profile `{name}`"), Some(&hint)));
    };
    let field = |field: &str| config.set(&format!("profile.{name}.{field}"));
    let backoff = backoff(&policy.backoff, name, &field)?;
    let mut policy = policy.with_backoff(backoff);
    // Phases have a key of their own; the profile's beats it.
    if name == "phase"
        && let Some(Value::Duration(wait)) = config.set("plan.wait_max").map(|s| &s.written.value)
    {
        policy.wait_max = *wait;
    }
    if let Some(world) = policy.world.as_mut() {
        world.limits.times = u32::try_from(config.count("plan.waits_max")).unwrap_or(u32::MAX);
    }
    if let Some(Value::Duration(wait)) = field("wait_max").map(|setting| &setting.written.value) {
        policy.wait_max = *wait;
    }
    if let Some(Value::Text(switch)) = field("learn").map(|setting| &setting.written.value) {
        policy.learn = switch == "true";
    }
    let attempts = |setting: &Setting| match setting.written.value {
        Value::Count(attempts) => u32::try_from(attempts).ok(),
        _ => None,
    };
    // The number for a plain `retry` does not depend on keys for other reasons.
    let usual = match field("attempts").and_then(attempts) {
        Some(attempts) => policy.clone().with_attempts(attempts).usual_attempts(),
        None => policy.usual_attempts(),
    };
    let on = format!("profile.{name}.on.");
    for layer in Layer::ALL {
        if let Some(attempts) = field("attempts").filter(|setting| setting.layer == layer).and_then(attempts)
        {
            policy = policy.with_attempts(attempts);
        }
        for (key, setting) in config.set_below(&on).filter(|(_, setting)| setting.layer == layer) {
            let reason = key.strip_prefix(&on).and_then(Reason::from_code);
            if let (Some(reason), Value::Action(action)) = (reason, &setting.written.value) {
                policy = with_action(policy, reason, *action, usual);
            }
        }
    }
    Ok(policy)
}

/// The keys of a profile that must fit together.
const WAITS: [&str; 3] = ["delays", "base", "cap"];

/// Removes the waits of files and variables that do not fit together, so that the profile has its
/// own, and gives the problems. Waits that a flag has set are an error.
pub(super) fn drop_conflicts(config: &mut Config) -> Result<Vec<Problem>, Problem> {
    let mut problems = Vec::new();
    // Built-in profiles fit: every start of a command would look at all of them.
    if config.set_below("profile.").next().is_none() {
        return Ok(problems);
    }
    for name in PROFILES {
        let Err(problem) = policy(config, name) else { continue };
        if matches!(problem.place, Place::Flag(_)) {
            return Err(problem);
        }
        for field in WAITS {
            if let Some(settings) = config.settings.get_mut(&format!("profile.{name}.{field}")) {
                settings.retain(|setting| setting.layer == Layer::Flag);
            }
        }
        config.settings.retain(|_, settings| !settings.is_empty());
        problems.push(problem);
        // What is left comes from flags alone.
        policy(config, name)?;
    }
    Ok(problems)
}

fn with_action(policy: Policy, reason: Reason, action: ReasonAction, usual: u32) -> Policy {
    let (attempts, how) = match action {
        // What a profile does before a retry stays: waiting for a guard, compressing.
        ReasonAction::Retry(times) => {
            let how = match policy.allowance(reason).how {
                how @ (How::Guarded | How::Compressed(_)) => how,
                _ => How::Again,
            };
            (times.unwrap_or(usual), how)
        }
        ReasonAction::Surface => (1, How::Surface),
        ReasonAction::Halt => (1, How::Halt),
        ReasonAction::Defer => (1, How::Defer),
        ReasonAction::Confirm => (1, How::Confirm),
    };
    policy.with_cell(reason, attempts, how, None)
}

fn backoff<'c>(
    own: &Backoff,
    name: &str,
    field: &dyn Fn(&str) -> Option<&'c Setting>,
) -> Result<Backoff, Problem> {
    let jitter = match field("jitter").map(|setting| &setting.written.value) {
        Some(Value::Jitter(jitter)) => *jitter,
        _ => own.jitter,
    };
    let (delays, base, cap) = (field("delays"), field("base"), field("cap"));
    let doubled = [base, cap].into_iter().flatten().max_by_key(|setting| setting.layer);
    let delays = match (delays, doubled) {
        (Some(list), Some(other)) if list.layer == other.layer => {
            let message = format!("`profile.{name}` has `delays` and also `base` or `cap`");
            let hint = "keep `delays` for a list of waits, or `base` and `cap` for doubling ones";
            return Err(Problem::new(Place::from(&other.origin), &message, Some(hint)));
        }
        (Some(list), other) if other.is_none_or(|other| other.layer < list.layer) => {
            match &list.written.value {
                Value::Durations(waits) => Delays::Fixed(waits.clone()),
                _ => own.delays.clone(),
            }
        }
        (_, Some(_)) => doubling(own, name, base, cap)?,
        (_, None) => own.delays.clone(),
    };
    Ok(Backoff { delays, jitter })
}

fn doubling(
    own: &Backoff,
    name: &str,
    base: Option<&Setting>,
    cap: Option<&Setting>,
) -> Result<Delays, Problem> {
    let length = |setting: &Setting| match setting.written.value {
        Value::Duration(length) => Some(length),
        _ => None,
    };
    let (own_base, own_cap, from) = match own.delays {
        Delays::Exponential { base, cap, from } => (Some(base), cap, from),
        Delays::Fixed(_) => (None, CAP, 0),
    };
    let chosen_cap = cap.and_then(length).unwrap_or(own_cap);
    let Some(chosen_base) = base.and_then(length).or(own_base) else {
        let message = format!("`profile.{name}.cap` caps nothing: the profile's waits are not doubled");
        let hint = format!("set `profile.{name}.base` too, or `profile.{name}.delays` instead");
        let place = cap.map_or(Place::Nowhere, |setting| Place::from(&setting.origin));
        return Err(Problem::new(place, &message, Some(&hint)));
    };
    if chosen_base > chosen_cap {
        let shown = backstop_core::duration::shown;
        let message = format!(
            "`profile.{name}`: `base`, {}, is longer than `cap`, {}",
            shown(chosen_base),
            shown(chosen_cap)
        );
        let hint = format!("set `profile.{name}.base` and `profile.{name}.cap` together");
        let blamed = [base, cap].into_iter().flatten().max_by_key(|setting| setting.layer);
        let place = blamed.map_or(Place::Nowhere, |setting| Place::from(&setting.origin));
        return Err(Problem::new(place, &message, Some(&hint)));
    }
    Ok(Delays::Exponential { base: chosen_base, cap: chosen_cap, from })
}

#[cfg(test)]
mod tests {
    use super::super::layers::{Given, load};
    use super::super::scratch::Scratch;
    use super::*;
    use backstop_core::Jitter;

    fn with(project: &str, flags: &[(&str, &str)]) -> Result<Config, String> {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", project);
        let flags: Vec<Given> = flags
            .iter()
            .map(|(key, value)| Given {
                flag: "--x".to_owned(),
                key: (*key).to_owned(),
                value: (*value).to_owned(),
            })
            .collect();
        load(&scratch.around(""), &flags, &|_, _| true).map_err(|error| error.to_string())
    }

    fn seconds(policy: &Policy, reason: Reason) -> Vec<f64> {
        let allowed = policy.allowance(reason);
        (1..allowed.attempts).map(|failed| allowed.backoff.wait(failed, 0.5).plain.as_secs_f64()).collect()
    }

    #[test]
    fn without_a_config_profiles_are_as_they_are() {
        let config = with("", &[]).unwrap();
        for name in PROFILES {
            assert_eq!(config.policy(name).unwrap(), profile(name).unwrap());
        }
        let error = config.policy("comand").unwrap_err();
        assert_eq!(error.to_string(), "unknown profile `comand`");
        assert_eq!(error.hints(), ["did you mean `command`?"]);
    }

    #[test]
    fn attempts_waits_and_jitter() {
        let config = with(
            "[profile.command]\nattempts = 6\nbase = \"500ms\"\ncap = \"3s\"\njitter = \"+10%\"\nwait_max = \"5m\"\n\
             [profile.tool]\ndelays = [\"2s\", \"9s\"]\n[profile.state]\nbase = \"1s\"\n[profile.request]\njitter = \"0\"\n",
            &[],
        )
        .unwrap();
        let command = config.policy("command").unwrap();
        assert_eq!(seconds(&command, Reason::Timeout), [0.5, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(command.backoff.jitter, Jitter::Additive(10));
        assert_eq!(command.wait_max, Duration::from_secs(300));
        assert_eq!(seconds(&config.policy("tool").unwrap(), Reason::ToolFailed), [2.0, 9.0]);
        assert_eq!(seconds(&config.policy("state").unwrap(), Reason::FlakyTest), [1.0, 2.0]);
        let request = config.policy("request").unwrap();
        assert_eq!(request.backoff.jitter, Jitter::None);
        assert_eq!(seconds(&request, Reason::NetworkTransient), [0.1, 0.2, 0.4]);
        // The one who counts from 1 goes on counting from 1.
        let task = with("profile.task.base = \"1s\"\n", &[]).unwrap().policy("task").unwrap();
        assert_eq!(seconds(&task, Reason::Timeout), [2.0, 4.0]);
    }

    #[test]
    fn what_is_done_about_a_reason() {
        let config = with(
            "[profile.command.on]\ntest_failure = \"retry\"\ntimeout = \"surface\"\nauth_error = \"halt\"\n\
             disk_full = \"defer\"\ncrash = \"confirm\"\nrate_limited = \"retry:9\"\n\
             [profile.request.on]\nrate_limited = \"retry:2\"\ncontext_overflow = \"retry:3\"\nunknown = \"retry\"\n",
            &[],
        )
        .unwrap();
        let policy = config.policy("command").unwrap();
        let cell = |reason| {
            let allowed = policy.allowance(reason);
            (allowed.attempts, allowed.how)
        };
        assert_eq!(cell(Reason::TestFailure), (4, How::Again));
        assert_eq!(cell(Reason::Timeout), (1, How::Surface));
        assert_eq!(cell(Reason::AuthError), (1, How::Halt));
        assert_eq!(cell(Reason::DiskFull), (1, How::Defer));
        assert_eq!(cell(Reason::Crash), (1, How::Confirm));
        assert_eq!(cell(Reason::RateLimited), (9, How::Again));
        let request = config.policy("request").unwrap();
        assert_eq!(request.allowance(Reason::RateLimited).how, How::Guarded);
        assert_eq!(request.allowance(Reason::RateLimited).attempts, 2);
        assert_eq!(request.allowance(Reason::ContextOverflow).how, How::Compressed(50));
        assert_eq!(request.allowance(Reason::Unknown).attempts, 4);
    }

    #[test]
    fn within_a_layer_the_reason_beats_the_whole_and_a_higher_layer_beats_both() {
        let file = "[profile.command]\nattempts = 2\non.timeout = \"retry:5\"\n";
        let attempts = |flags: &[(&str, &str)]| {
            with(file, flags).unwrap().policy("command").unwrap().allowance(Reason::Timeout).attempts
        };
        assert_eq!(attempts(&[]), 5);
        assert_eq!(attempts(&[("profile.command.attempts", "1")]), 1);
        assert_eq!(attempts(&[("profile.command.on.timeout", "retry")]), 2);
        assert_eq!(
            attempts(&[("profile.command.attempts", "1"), ("profile.command.on.timeout", "retry:3")]),
            3
        );
    }

    #[test]
    fn waits_that_do_not_fit_together() {
        for (source, want) in [
            (
                "profile.command.base = \"2m\"\n",
                "backstop.toml:1:17: `profile.command`: `base`, 2m 00s, is longer than `cap`, 1m 00s",
            ),
            (
                "profile.tool.cap = \"2s\"\n",
                "backstop.toml:1:14: `profile.tool.cap` caps nothing: the profile's waits are not doubled",
            ),
            (
                "[profile.tool]\ndelays = [\"1s\"]\nbase = \"1s\"\n",
                "backstop.toml:3:1: `profile.tool` has `delays` and also `base` or `cap`",
            ),
        ] {
            let config = with(source, &[]).unwrap();
            assert_eq!(config.problems().unwrap().to_string(), want);
            // The profile is as it is without them.
            for name in PROFILES {
                assert_eq!(config.policy(name).unwrap(), profile(name).unwrap());
            }
        }
        let flags = [("profile.tool.delays", "1s"), ("profile.tool.base", "1s")];
        assert!(with("", &flags).unwrap_err().contains("--x: `profile.tool` has `delays`"));
        // Of two layers, the higher one.
        let config = with("profile.tool.base = \"3s\"\n", &[("profile.tool.delays", "7s")]).unwrap();
        assert_eq!(seconds(&config.policy("tool").unwrap(), Reason::ToolFailed), [7.0, 7.0]);
        let config = with("profile.tool.delays = [\"7s\"]\n", &[("profile.tool.base", "3s")]).unwrap();
        assert_eq!(seconds(&config.policy("tool").unwrap(), Reason::ToolFailed), [3.0, 6.0]);
    }
}
