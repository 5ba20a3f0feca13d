//! Guidance about what is outside the work: requests, tools, the machine and those who share it.

use super::phrases::{Phrases, name, names};
use crate::duration;
use backstop_core::{Facts, NetworkTrouble, Reason, SafeText, Shape};
use std::time::Duration;

/// Guidance for a request that fails for good, by what is in its way.
pub(super) fn about_network(trouble: NetworkTrouble, facts: &Facts) -> String {
    let missing = names(": ", facts.missing.as_slice(), Shape::Name);
    match trouble {
        NetworkTrouble::Service => format!(
            "The server answers that it cannot serve{missing}. Repeating it now will not change that: work without it and \
             say so, and go on once it serves."
        ),
        NetworkTrouble::NameLookup => format!(
            "The host name is not known{missing}. Repeating will not change that: check how the name is written and \
             whether this machine has a network, or work without it and say so."
        ),
        NetworkTrouble::Certificate => format!(
            "The certificate is not accepted{missing}. Repeating will not change that, and the check must stay on: a \
             person has to look at the certificate, the clock and the trusted authorities."
        ),
        NetworkTrouble::Resource => format!(
            "What was asked for is not there, or is hidden from this account{missing}. Repeating will not change that: \
             check how the address is written and whether it was moved, or work without it and say so."
        ),
        NetworkTrouble::Connection => format!(
            "The address cannot be reached{missing}. Repeating will not change that: check host, proxy and certificate, \
             or work without it and say so."
        ),
    }
}

/// Guidance for requests and tools.
pub(super) fn about_request(reason: Reason, phrases: &Phrases) -> Option<String> {
    let facts = phrases.facts;
    let provider = phrases.provider();
    let wait = facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    Some(match reason {
        Reason::RateLimited => format!(
            "The limit of {provider} was reached; the wait{} is over when you read this. Go on where you were, with fewer \
             and larger requests.",
            wait.map(|wait| format!(" of {}", duration(wait))).unwrap_or_default()
        ),
        Reason::QuotaExhausted => format!(
            "The allowance of {provider} is used up, and no short wait brings it back. Stop here, and report what is done \
             and what is not{}.",
            names("; it is raised at ", facts.renewal.as_slice(), Shape::Name)
        ),
        Reason::ContentPolicy => format!(
            "{provider} refused the content. Do not send it again unchanged: leave out or reword the part it refused."
        ),
        Reason::NetworkTransient => {
            "The connection failed in passing. Repeat the step that failed; what came before it still holds.".to_owned()
        }
        Reason::NetworkPermanent => about_network(NetworkTrouble::Connection, facts),
        Reason::ServiceDown => format!(
            "A service that the work needs does not answer{}. Go on once it does; do not replace it by a stand-in.",
            names(": ", facts.provider.as_slice(), Shape::Name)
        ),
        Reason::ContextOverflow => {
            "The conversation had become too long, and its oldest part was dropped. Read again what you need from the files, \
             and ask tools for less output."
                .to_owned()
        }
        Reason::AuthError => format!(
            "{provider} did not accept the credential{}. Do not try again and do not look for another one: a person has to \
             renew it{}.",
            credential(facts),
            renewal(facts)
        ),
        Reason::PermissionDenied => format!(
            "This is not allowed here{}. Stay within the folders and scopes you were given; do not change rights to get past it.",
            names(": ", &phrases.facts.files, Shape::Path)
        ),
        Reason::Validation => format!(
            "The request was refused as it stands{}.{} Correct it before you send it again.",
            phrases.rules(),
            phrases.difference()
        ),
        Reason::InvalidParameters => format!(
            "The call's parameters do not fit{}.{} Read the tool's schema, then give every required value in its type.",
            names(": ", facts.missing.as_slice(), Shape::Name),
            phrases.difference()
        ),
        Reason::InvalidUsage => format!(
            "The command line or its configuration is wrong{}. Read the command's help before you type it again.",
            phrases.places()
        ),
        Reason::ToolNotFound => format!(
            "There is no such tool{}. Use a name from the list of tools, spelt as it is there; do not guess another.",
            names(": ", facts.missing.as_slice(), Shape::Name)
        ),
        Reason::ToolFailed => {
            "The tool reported an error. Read its message, refresh what the call refers to, and repeat it only if a second \
             time does no harm."
                .to_owned()
        }
        Reason::CacheInvalid => {
            "The list of tools could not be read and is made anew. Look up the tool again before you call it.".to_owned()
        }
        _ => return None,
    })
}

/// ` in X` for a variable, `: X` for a login by its name.
fn credential(facts: &Facts) -> String {
    let is_variable = |text: &SafeText| !text.raw().contains(' ');
    let before = if facts.credential.as_ref().is_some_and(is_variable) { " in " } else { ": " };
    names(before, facts.credential.as_slice(), Shape::Credential)
}

/// ` at ADDRESS`, or ` with COMMAND` where the renewal is a command, which stands in backticks.
fn renewal(facts: &Facts) -> String {
    let Some(renewal) = &facts.renewal else { return String::new() };
    match renewal.raw().strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        Some((command, _)) => names(" with ", &[SafeText::new(command)], Shape::Credential),
        None => names(" at ", facts.renewal.as_slice(), Shape::Name),
    }
}

/// Guidance for the machine and those who share it.
pub(super) fn about_machine(reason: Reason, phrases: &Phrases) -> Option<String> {
    Some(match reason {
        Reason::ResourceContention => format!(
            "Somebody else held what you need{}. Try again now; do not remove a lock whose owner is alive.",
            names(": ", &phrases.facts.files, Shape::Path)
        ),
        Reason::DependencyMissing => format!(
            "{} is not installed. Do not work round it: it has to be installed first{}.",
            name(phrases.facts.missing.as_ref(), Shape::Name, "Something the work needs"),
            match &phrases.context.fix {
                Some(command) => names(", with ", std::slice::from_ref(command), Shape::Command),
                None => String::new(),
            }
        ),
        Reason::OutOfMemory => {
            "Memory ran out. Do less at once: fewer parallel jobs, smaller inputs, one test file at a time.".to_owned()
        }
        Reason::DiskFull => format!(
            "The disk is full{}. Write nothing large, and remove only files that you made yourself in this attempt.",
            names(": ", &phrases.facts.files, Shape::Path)
        ),
        Reason::ResourceExhausted => {
            "A limit of the system was reached. Do less at once, and close what you no longer use.".to_owned()
        }
        Reason::SecurityBreach => {
            "A breach of security was reported. Do nothing further, change nothing, and wait for a person.".to_owned()
        }
        Reason::DataLoss => {
            "A loss of data was reported. Do nothing further, leave what remains as it is, and wait for a person.".to_owned()
        }
        Reason::Interrupted => {
            "The last attempt was stopped from outside, not by a mistake. Look at what is already there, then finish it."
                .to_owned()
        }
        Reason::FileConflict => format!(
            "Your change meets another one{}. Keep both intentions: start from the version that is there now, and make your \
             change again on top of it.",
            phrases.places()
        ),
        Reason::VcsError => {
            "Git refused. Run `git status`, do what it names, and neither force nor discard anything that is not yours."
                .to_owned()
        }
        Reason::StateInvalid => format!(
            "The record {} cannot be read. Do not repair it by guessing; a person corrects it or starts fresh.",
            phrases.first_file("of this run")
        ),
        _ => return None,
    })
}
