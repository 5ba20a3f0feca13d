//! Guidance about the work itself, and about the agent's result.

use super::phrases::{Phrases, name, names, still_open};
use crate::duration;
use backstop_core::{Reason, Shape};

/// Guidance for what gates find.
pub(super) fn about_work(reason: Reason, phrases: &Phrases) -> Option<String> {
    let (places, check, fix) = (phrases.places(), phrases.check(), phrases.fix());
    Some(match reason {
        Reason::TestFailure => format!(
            "Make the failing tests pass{}{places}.{} Look at the first failing assertion, and decide whether the code or \
             the test is wrong: stale assertions, missing mocks and work that is not awaited are common.{check}",
            phrases.tests(),
            phrases.difference()
        ),
        Reason::FlakyTest => format!(
            "A test failed and then passed with nothing changed{}{places}. Leave the code under test as it is; if you touch \
             the test, take away what it takes from the clock, the network or the order of tests.",
            phrases.tests()
        ),
        Reason::LintError => {
            format!(
                "Put right what the linter reports{places}{}.{fix}{check} Do not silence a rule to get past it.",
                phrases.rules()
            )
        }
        Reason::TypecheckError => format!(
            "Put right the type errors{places}{}.{} Compare each signature with its callers before you change \
             either.{fix}{check}",
            phrases.rules(),
            phrases.difference()
        ),
        Reason::FormatError => {
            let over = names(" over ", &phrases.facts.files, Shape::Path);
            format!("Run the formatter{over}, and change nothing else.{fix}{check}")
        }
        Reason::CompileError => format!(
            "Put right the compile errors{places}{}.{} Begin with the first error: later ones often follow from it.{fix}{check}",
            phrases.rules(),
            phrases.difference()
        ),
        Reason::IdiomViolation => format!(
            "The code breaks an idiom of the framework{}{places}. Rework it within that idiom; do not argue with the \
             check.{check}",
            phrases.rules()
        ),
        Reason::Crash => format!(
            "The program ended abnormally{}. Reproduce it with the same input, then mend the innermost frame that is \
             yours.{check}",
            match &phrases.facts.exception {
                Some(exception) => format!(
                    " with {}{}",
                    name(Some(&exception.kind), Shape::Name, "an exception"),
                    names(" in ", exception.file.as_slice(), Shape::Path)
                ),
                None => places,
            }
        ),
        _ => return None,
    })
}

/// Guidance for the agent's result.
pub(super) fn about_result(reason: Reason, phrases: &Phrases) -> Option<String> {
    let (context, check) = (phrases.context, phrases.check());
    Some(match reason {
        Reason::TaskIncomplete => format!(
            "Not everything was done{}. Do what is left, keep what is finished, and report a task as done only when it is.",
            still_open(&context.remaining)
        ),
        Reason::VerificationMismatch => format!(
            "The agent claimed success{}. A fresh check disagrees{}. Run every gate after your last change, not only along \
             the way, and report what they say.{check}",
            names(": ", context.claimed.as_slice(), Shape::Name),
            names(": ", context.found.as_slice(), Shape::Name)
        ),
        Reason::ParseError => {
            "Your result could not be read. End with the agreed form and nothing after it; the work itself may be fine, \
             so do not redo it without need."
                .to_owned()
        }
        Reason::VerifyFailed => format!(
            "The task's own verification fails{}. Trying the same again will not pass it: change the approach, or report \
             why it cannot be met.{check}",
            phrases.tests()
        ),
        Reason::DecisionUnknown => {
            "Your answer holds no decision that is known. Name exactly one of the decisions you were offered, in the agreed form."
                .to_owned()
        }
        Reason::PartialSuccess => format!(
            "Some items failed{}. Repeat those alone; what succeeded is kept and must not be done twice.",
            still_open(&context.remaining)
        ),
        Reason::AggregationFailed => format!(
            "The results could not be put together{}. Put them together once more, and name the one that does not fit.",
            names("; look at ", &phrases.facts.files, Shape::Path)
        ),
        Reason::Timeout => format!(
            "The last attempt ran out of time{}{}. Do the most important part first, run only the tests that your change \
             touches, and start nothing that waits for input.",
            context.ran_for.map(|ran| format!(" after {}", duration(ran))).unwrap_or_default(),
            names("; the last it did was ", phrases.facts.last_activity.as_slice(), Shape::Name)
        ),
        _ => return None,
    })
}
