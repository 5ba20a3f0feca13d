//! Whether a retry continues the agent's own session, or starts a new one.
//!
//! A session is continued by its id where the last attempt was only cut off: its work is right as
//! far as it goes, and the agent knows what it has done. Where it took a wrong path (failed tests,
//! a conflict, an untrue claim), a new session is told what failed and does not carry the old
//! thoughts along.

use super::phase_runner::AttemptDir;
use backstop_core::{Reason, Timestamp};
use backstop_runtime::host::{AgentSession, AttemptJob};
use backstop_work::agent::Agent;

/// When a session is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContinueSession {
    /// Where the last attempt was only cut off.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Wherever there is one.
    Always,
}

impl ContinueSession {
    /// By its name in the configuration.
    pub fn from_name(name: &str) -> Self {
        match name {
            "never" => ContinueSession::Never,
            "always" => ContinueSession::Always,
            _ => ContinueSession::Auto,
        }
    }

    /// Whether a session whose last attempt ended like this is continued; nothing stands for a lost
    /// one.
    fn wants(self, reason: Option<Reason>) -> bool {
        match self {
            ContinueSession::Never => false,
            ContinueSession::Always => true,
            ContinueSession::Auto => reason.is_none_or(was_cut_off),
        }
    }

    /// The session that this attempt is to continue, before it is known where it will work.
    pub(super) fn session(self, job: &AttemptJob, agent: Option<&Agent>) -> Option<AgentSession> {
        let prior = job.session.clone().filter(|prior| self.wants(prior.reason))?;
        let can = agent.is_some_and(|agent| agent.name == prior.session.agent && agent.resume.is_some());
        can.then_some(prior.session)
    }
}

/// Whether this cut the work off, and does not say that it went wrong.
fn was_cut_off(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::RateLimited
            | Reason::QuotaExhausted
            | Reason::AuthError
            | Reason::NetworkTransient
            | Reason::NetworkPermanent
            | Reason::ServiceDown
            | Reason::Interrupted
            | Reason::BudgetExhausted
            | Reason::DiskFull
            | Reason::OutOfMemory
            | Reason::ResourceExhausted
            | Reason::ResourceContention
            // The work is done, and its result is missing.
            | Reason::ParseError
    )
}

/// Whether the session can be continued in the folder of this attempt.
pub(super) fn fits(session: &AgentSession, agent: &Agent, dir: &AttemptDir<'_>, now: Timestamp) -> bool {
    let same_folder = dir.folder.to_str() == Some(session.folder.as_str());
    let is_found = same_folder || agent.resume.is_some_and(|resume| !resume.same_folder);
    dir.has_earlier_work && is_found && is_old_enough(session.begun, agent, now)
}

/// Whether a session that was begun at this time is not lost by being continued now.
pub(super) fn is_old_enough(begun: Timestamp, agent: &Agent, now: Timestamp) -> bool {
    let minute = |at: Timestamp| at.as_millis().div_euclid(60_000);
    minute(begun) != minute(now) || agent.resume.is_none_or(|resume| !resume.later_minute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_work::agent::AcpOptions;

    #[test]
    fn an_agent_that_loses_its_session_within_the_minute_is_not_asked_for_it() {
        let acp = |words: &[&str]| {
            let argv = words.iter().map(|word| (*word).to_owned()).collect();
            backstop_work::agent::from_acp("mine", argv, AcpOptions::default()).unwrap()
        };
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let gemini = acp(&["gemini", "--acp"]);
        assert!(!is_old_enough(at(120), &gemini, at(179)), "the same minute of the clock");
        assert!(is_old_enough(at(179), &gemini, at(180)), "the next one, a second later");
        assert!(is_old_enough(at(120), &acp(&["goose", "acp"]), at(121)));
        let plain = backstop_work::agent::builtin("gemini").unwrap();
        assert!(is_old_enough(at(120), &plain, at(121)), "its command line loses none");
    }

    #[test]
    fn what_was_cut_off_goes_on_and_what_went_wrong_begins_anew() {
        use ContinueSession::{Always, Auto, Never};
        for reason in
            [None, Some(Reason::RateLimited), Some(Reason::NetworkTransient), Some(Reason::ParseError)]
        {
            assert!(Auto.wants(reason) && Always.wants(reason) && !Never.wants(reason), "{reason:?}");
        }
        for reason in [
            Reason::TestFailure,
            Reason::FileConflict,
            Reason::VerificationMismatch,
            Reason::TaskIncomplete,
            Reason::ContextOverflow,
            Reason::Timeout,
        ] {
            assert!(!Auto.wants(Some(reason)) && Always.wants(Some(reason)), "{reason}");
        }
        assert_eq!(["auto", "never", "always"].map(ContinueSession::from_name), [Auto, Never, Always]);
    }
}
