//! The advice about a fault: possible causes, next steps, and what it is called once retries are
//! used up.
//!
//! There is one advice for one ending. The terminal, `explain`, notifications, hooks and reports
//! all take it from here, so that none of them can say something else. It depends on what is known
//! of the failure and not on the reason's name alone: a missing repository is no problem of DNS,
//! and a 503 is still the server's trouble when the retries are used up.

use crate::{Fault, Reason, SafeText};

/// What to do about something that may have been carried out although it failed, in place of steps
/// that advise to repeat it.
const MAY_HAVE_CHANGED: &[&str] =
    &["Find out whether it took effect", "Repeat it only if a second time does no harm"];

/// Phrases that advise to repeat something, in lower case.
const REPEATING: &[&str] = &[
    "try again",
    "try it again",
    "try once more",
    "retry",
    "repeat",
    "once more",
    "run it again",
    "run again",
    "run this again",
    "run the work again",
    "send it again",
    "same again may work",
    "same again works",
];
/// Phrases that advise against it, or make it depend on an answer, in lower case.
const CAUTIOUS: &[&str] = &[
    "do not",
    "don't",
    "never",
    "not be repeated",
    "not tried again",
    "not repeat",
    "only if",
    "only when",
    "before you",
    "before it is",
    "before anything",
    "will not",
    "would fail again",
    "will fail again",
    "needs confirmation",
    "after a confirmation",
];

/// Whether a text has a sentence that advises to repeat what failed, without a condition.
pub fn advises_repeating(text: &str) -> bool {
    let has = |sentence: &str, phrases: &[&str]| phrases.iter().any(|phrase| sentence.contains(phrase));
    text.to_lowercase()
        .split_inclusive(['.', ';', '\n', ':'])
        .any(|sentence| has(sentence, REPEATING) && !has(sentence, CAUTIOUS))
}

/// What is in the way when a request over the network fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkTrouble {
    /// The server answered that it cannot serve now: 5xx, overloaded.
    Service,
    /// The host name was not found.
    NameLookup,
    /// The certificate or the TLS handshake was refused.
    Certificate,
    /// The server answered that the resource is not there: 404, 410, a missing repository.
    Resource,
    /// No connection, or it was lost.
    Connection,
}

/// What the built-in rules are about, by the beginning of their ids.
const RULES: &[(&str, NetworkTrouble)] = &[
    ("net.dns", NetworkTrouble::NameLookup),
    ("net.certificate", NetworkTrouble::Certificate),
    ("net.tls", NetworkTrouble::Certificate),
    ("http.526", NetworkTrouble::Certificate),
    ("git.repo_not_found", NetworkTrouble::Resource),
    ("http.gone", NetworkTrouble::Resource),
    ("codex.demand", NetworkTrouble::Service),
];

/// Words of errors that no rule has read: an errno, the type and the message of a reported error.
/// Earlier ones win: "host not found" is about a name.
const WORDS: &[(&[&str], NetworkTrouble)] = &[
    (
        &[
            "errno enotfound",
            "getaddrinfo",
            "eai_",
            "resolve host",
            "host not found",
            "unknown host",
            "name resolution",
            "dns",
        ],
        NetworkTrouble::NameLookup,
    ),
    (&["certificate", "cert_", "errno cert", "self_signed", "ssl", "tls "], NetworkTrouble::Certificate),
    (
        &[
            "serviceunavailable",
            "service unavailable",
            "bad gateway",
            "gateway timeout",
            "internal server error",
            "overloaded",
        ],
        NetworkTrouble::Service,
    ),
    (&["not found", "notfound", "does not exist", "no longer exists"], NetworkTrouble::Resource),
];

impl NetworkTrouble {
    /// What the fault is about; `None` where it is no fault of the network.
    pub fn of(fault: &Fault) -> Option<Self> {
        if !matches!(fault.reason, Reason::NetworkTransient | Reason::NetworkPermanent) {
            return None;
        }
        Some(
            Self::of_rule(fault)
                .or_else(|| fault.facts.status.and_then(Self::of_status))
                .or_else(|| Self::of_words(fault))
                .unwrap_or(Self::Connection),
        )
    }

    fn of_rule(fault: &Fault) -> Option<Self> {
        let rule = &fault.evidence.first()?.rule;
        RULES.iter().find(|(id, _)| rule.starts_with(id)).map(|(_, trouble)| *trouble)
    }

    fn of_status(status: u16) -> Option<Self> {
        match status {
            495 | 496 | 525 | 526 => Some(Self::Certificate),
            404 | 410 => Some(Self::Resource),
            429 | 500..=599 => Some(Self::Service),
            _ => None,
        }
    }

    fn of_words(fault: &Fault) -> Option<Self> {
        let evidence = fault.evidence.first().map_or("", |evidence| evidence.text.raw());
        let cause = fault.cause.as_ref().map_or("", |cause| cause.raw());
        let text = format!("{evidence}\n{cause}").to_ascii_lowercase();
        let said = |words: &[&str]| words.iter().any(|word| text.contains(word));
        WORDS.iter().find(|(words, _)| said(words)).map(|(_, trouble)| *trouble)
    }

    fn causes(self) -> &'static [&'static str] {
        match self {
            Self::Service => &[
                "The server is overloaded, restarting or broken",
                "A gateway in front of it cannot reach it",
            ],
            Self::NameLookup => &[
                "The host name is misspelt or does not exist",
                "The DNS server does not answer, or this machine is offline",
            ],
            Self::Certificate => &[
                "The certificate has expired, or it is for another host",
                "Its authority is not trusted on this machine",
                "The clock of this machine is wrong",
            ],
            Self::Resource => &[
                "The resource was moved, renamed or deleted",
                "The address has a typing mistake",
                "It is private, and the account cannot see it",
            ],
            Self::Connection => &[
                "Nothing listens at that address, or it refuses connections",
                "The connection was cut by the server or on its way",
                "A proxy or a firewall is in the way",
            ],
        }
    }

    fn next_steps(self) -> &'static [&'static str] {
        match self {
            Self::Service => &["Check the service's status", "Try again when it answers"],
            Self::NameLookup => {
                &["Check the host name and DNS", "Check that this machine is connected to the network"]
            }
            Self::Certificate => &[
                "Check the certificate, the clock and the trusted authorities",
                "Check whether a proxy replaces certificates",
            ],
            Self::Resource => &[
                "Check the address, and that the resource still exists",
                "Check that your account has access to it",
            ],
            Self::Connection => &[
                "Check that the service runs, and its address",
                "Check the network connection, proxy and firewall",
            ],
        }
    }
}

impl Fault {
    /// Possible causes of this fault, most likely first: those that fit what is known of it.
    pub fn causes(&self) -> &'static [&'static str] {
        match NetworkTrouble::of(self) {
            Some(trouble) => trouble.causes(),
            None => self.reason.info().causes,
        }
    }

    /// Next steps for a person, in order: those that fit what is known of the fault.
    pub fn next_steps(&self) -> &'static [&'static str] {
        let steps = match NetworkTrouble::of(self) {
            Some(trouble) if self.reason == Reason::NetworkPermanent => trouble.next_steps(),
            _ => self.reason.info().next_steps,
        };
        match self.facts.may_have_changed && steps.iter().any(|step| advises_repeating(step)) {
            true => MAY_HAVE_CHANGED,
            false => steps,
        }
    }

    /// The fault of something that may have changed the world before it failed: no step advises to
    /// repeat it.
    #[must_use]
    pub fn may_have_changed(mut self) -> Fault {
        self.facts.may_have_changed = true;
        if advises_repeating(self.suggested_action.raw()) {
            self.suggest_first_step();
        }
        self
    }

    /// Whether a name was looked up in vain, by a program that does not say whether the name does
    /// not exist or nobody answered. Nothing was sent, and the second passes by itself.
    pub fn is_unanswered_lookup(&self) -> bool {
        const UNCLEAR: &[&str] =
            &["could not resolve host", "couldn't resolve host", "unable to resolve host address"];
        let text = self.evidence.first().map_or("", |found| found.text.raw()).to_ascii_lowercase();
        NetworkTrouble::of(self) == Some(NetworkTrouble::NameLookup)
            && UNCLEAR.iter().any(|words| text.contains(words))
    }

    /// The first of the next steps, as part of a sentence.
    fn first_step(&self) -> String {
        let step = self.next_steps().first().copied().unwrap_or(self.reason.info().remedy);
        let mut chars = step.chars();
        chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
    }

    /// Sets `suggested_action` to the first of the next steps that fit what is known of the fault.
    pub fn suggest_first_step(&mut self) {
        self.suggested_action = SafeText::new(self.first_step());
    }

    /// The fault under the reason that it has once retries are used up. Cause, facts and evidence
    /// stay; the next step is that of the new reason, for what is known of the failure.
    #[must_use]
    pub fn renamed(self, reason: Reason) -> Fault {
        if reason == self.reason {
            return self;
        }
        let mut renamed = Fault {
            cause: self.cause,
            facts: self.facts,
            evidence: self.evidence,
            confidence: self.confidence,
            machine: self.machine,
            ..Fault::new(reason)
        };
        renamed.suggest_first_step();
        renamed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Evidence;

    fn fault(reason: Reason, rule: &str, text: &str, status: Option<u16>) -> Fault {
        let mut fault = Fault::new(reason);
        fault.cause = Some(text.into());
        fault.evidence.push(Evidence { rule: rule.into(), line: None, text: text.into(), stream: None });
        fault.facts.status = status;
        fault
    }

    #[test]
    fn the_next_step_depends_on_what_is_known() {
        let cases = [
            ("http.transient", "status 503", Some(503), "check the service's status"),
            ("http.line", "HTTP/1.1 502 Bad Gateway", Some(502), "check the service's status"),
            ("reported", "error type ServiceUnavailable", None, "check the service's status"),
            ("net.dns", "curl: (6) Could not resolve host: x", None, "check the host name and DNS"),
            ("net.dns_again", "getaddrinfo EAI_AGAIN", None, "check the host name and DNS"),
            ("errno.permanent", "errno ENOTFOUND", None, "check the host name and DNS"),
            (
                "net.certificate",
                "SSL certificate problem",
                None,
                "check the certificate, the clock and the trusted authorities",
            ),
            (
                "errno.permanent",
                "errno CERT_HAS_EXPIRED",
                None,
                "check the certificate, the clock and the trusted authorities",
            ),
            (
                "git.repo_not_found",
                "remote: Repository not found",
                None,
                "check the address, and that the resource still exists",
            ),
            (
                "reported",
                "error type ResourceNotFound",
                None,
                "check the address, and that the resource still exists",
            ),
            ("http.gone", "status 410", Some(410), "check the address, and that the resource still exists"),
            ("net.refused", "Connection refused", None, "check that the service runs, and its address"),
            ("net.reset", "ECONNRESET", None, "check that the service runs, and its address"),
        ];
        for (rule, text, status, want) in cases {
            let ended = fault(Reason::NetworkTransient, rule, text, status).renamed(Reason::NetworkPermanent);
            assert_eq!(ended.suggested_action.raw(), want, "{rule}: {text}");
            assert_eq!(ended.cause.as_ref().unwrap().raw(), text);
            assert!(!ended.causes().is_empty());
        }
    }

    #[test]
    fn a_missing_repository_is_no_problem_of_dns() {
        let missing = fault(Reason::NetworkPermanent, "git.repo_not_found", "Repository not found", None);
        let advice = [missing.causes(), missing.next_steps()].concat().join("; ");
        assert!(!advice.contains("DNS") && !advice.contains("host name"), "{advice}");
    }

    #[test]
    fn nobody_is_advised_to_repeat_what_may_have_changed_something() {
        for reason in Reason::all() {
            let mut fault = Fault::new(reason);
            fault.suggested_action = "wait 5 s, then try again".into();
            let fault = fault.may_have_changed();
            let advice = [fault.next_steps(), &[fault.suggested_action.raw()]].concat();
            assert!(!advice.iter().any(|step| advises_repeating(step)), "{reason}: {advice:?}");
        }
        for text in
            ["Try again when it answers", "Run it. Then run it again", "retry once the limit has reset"]
        {
            assert!(advises_repeating(text), "{text}");
        }
        for text in ["Do not try again", "repeat it only if a second time does no harm", "Log in again"] {
            assert!(!advises_repeating(text), "{text}");
        }
    }

    #[test]
    fn other_reasons_keep_the_advice_of_the_taxonomy() {
        for reason in Reason::all().filter(|reason| *reason != Reason::NetworkPermanent) {
            let fault = Fault::new(reason);
            assert_eq!(fault.next_steps(), reason.info().next_steps, "{reason}");
            assert_eq!(fault.clone().renamed(reason), fault);
        }
    }
}
