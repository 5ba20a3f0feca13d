//! Which model a rate limit is of.
//!
//! | what is said | whose limit |
//! |---|---|
//! | a model: `your Opus limit`, `limit reached for gpt-4o`, `, model: gpt-5` | that model's |
//! | `on this model`, `for this model` | that of the model that was asked for |
//! | a subscription's window: `session limit`, `weekly limit` | the account's, whatever the model |
//! | nothing | that of the model that was asked for |

use crate::provider::model_of_command;

/// The longest name of a model.
const MODEL_BYTES_MAX: usize = 80;

/// Names of Anthropic's models without a version, as Claude Code calls their weekly limits.
const FAMILIES: &[&str] = &["opus", "sonnet", "haiku", "fable"];
/// What may stand between such a name and `limit`.
const KINDS: &[&str] = &["", "weekly ", "usage ", "rate "];
/// Windows of one model in Claude Code's `rateLimitType` and in Anthropic's header.
const WINDOWS: &[(&str, &str)] = &[("seven_day_opus", "opus"), ("seven_day_sonnet", "sonnet")];
/// What stands before the name of a model whose limit it is, in lower case.
const BEFORE_NAME: &[&str] = &["limit reached for ", "limit for ", ", model: "];
/// What stands after it.
const AFTER_NAME: &[&str] = &[" quota limit"];
/// Words for the model that was asked for.
const ASKED_MODEL: &[&str] = &["on this model", "for this model"];
/// Words of limits that hold for an account, whatever model it asks for.
const ACCOUNT_LIMITS: &[&str] = &[
    "usage limit",
    "session limit",
    "weekly limit",
    "5-hour limit",
    "hour limit reached",
    "daily limit",
    "hit your limit",
    "account's rate limit",
    "model requests",
];

/// The model that a window of a subscription is of, by the window's name: `opus` of
/// `seven_day_opus`.
pub fn model_of_window(name: &str) -> Option<&'static str> {
    WINDOWS.iter().find(|(window, _)| *window == name).map(|(_, model)| *model)
}

/// Whether a refusal speaks of a limit of the account, whatever the model.
pub fn is_account_limit(refusal: &str) -> bool {
    let lower = refusal.to_ascii_lowercase();
    named(&lower).is_none() && ACCOUNT_LIMITS.iter().any(|words| lower.contains(words))
}

/// The model that a refusal names as the one whose limit it is.
pub(crate) fn named_model(refusal: &str) -> Option<String> {
    named(&refusal.to_ascii_lowercase())
}

/// The model that a refusal is about: the one that it names, none where it speaks of the account,
/// else the one that the command asks for.
pub fn limited_model(refusal: &str, command: Option<&str>) -> Option<String> {
    limited_model_of(refusal, command.and_then(model_of_command))
}

/// The same for a request that asks for the model `asked`.
pub fn limited_model_of(refusal: &str, asked: Option<String>) -> Option<String> {
    let lower = refusal.to_ascii_lowercase();
    let named = named(&lower);
    let is_of_asked = ASKED_MODEL.iter().any(|words| lower.contains(words));
    if named.is_some() || (!is_of_asked && ACCOUNT_LIMITS.iter().any(|words| lower.contains(words))) {
        return named;
    }
    asked
}

fn named(lower: &str) -> Option<String> {
    let after = BEFORE_NAME.iter().flat_map(|mark| lower.split(mark).skip(1)).find_map(first_name);
    let before = || AFTER_NAME.iter().find_map(|mark| last_name(lower.split_once(mark)?.0));
    after.or_else(before).or_else(|| family(lower))
}

fn first_name(text: &str) -> Option<String> {
    model_name(
        text.trim_start_matches(['`', '\'', '"']).split([' ', ',', ';', ':', ')', '`', '\'', '"']).next()?,
    )
}

fn last_name(text: &str) -> Option<String> {
    model_name(text.rsplit(' ').next()?)
}

/// `for requests`, `for 5-hour`: models begin with a letter and have a digit and a hyphen.
fn model_name(word: &str) -> Option<String> {
    let name = word.trim_end_matches('.');
    let is_model = name.contains('-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().any(|b| b.is_ascii_digit());
    (is_model && name.len() <= MODEL_BYTES_MAX).then(|| name.to_owned())
}

/// `your opus limit`, `opus weekly limit reached`.
fn family(lower: &str) -> Option<String> {
    let is_limit = |rest: &str| {
        KINDS.iter().any(|kind| rest.strip_prefix(kind).is_some_and(|rest| rest.starts_with("limit")))
    };
    let is_said = |name: &&&str| {
        lower.match_indices(*name).any(|(at, _)| {
            let is_word = !lower[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            is_word && lower[at + name.len()..].strip_prefix(' ').is_some_and(is_limit)
        })
    };
    FAMILIES.iter().find(is_said).map(|name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_of_the_model_that_it_names_or_of_the_account() {
        let command = Some("codex exec --model gpt-5 x");
        for (refusal, want) in [
            ("Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM)", Some("gpt-4o")),
            ("Rate limit reached for requests. Please try again in 50s.", Some("gpt-5")),
            ("You've hit your usage limit. Try again in 20 minutes.", None),
            ("You've hit your session limit · resets 3pm", None),
            ("HTTP 429 Too Many Requests", Some("gpt-5")),
            ("You've hit your Opus limit · resets Nov 25, 8am (UTC)", Some("opus")),
            ("Opus weekly limit reached ∙ resets Oct 6, 1pm", Some("opus")),
            ("You've hit your Sonnet limit · resets Nov 25, 8am (UTC)", Some("sonnet")),
            ("You've reached your Fable limit", Some("fable")),
            ("You've hit your weekly limit · resets Nov 25, 8am (UTC) · /model to switch to Sonnet", None),
            (
                "You've hit your usage limit for GPT-5.3-Codex-Spark. Try again at Apr 10th, 2026 1:11 AM.",
                Some("gpt-5.3-codex-spark"),
            ),
            (
                "* Quota exceeded for metric: generate_content_free_tier_requests, limit: 20, model: gemini-2.5-flash",
                Some("gemini-2.5-flash"),
            ),
            ("You have reached your daily gemini-2.5-pro quota limit.", Some("gemini-2.5-pro")),
            ("You have exhausted your daily quota on this model.", Some("gpt-5")),
            ("You've reached today's free usage limit for this model.", Some("gpt-5")),
            ("Usage limit reached for 5-hour windows.", None),
            ("5 hour usage limit reached. To continue using this model now, enable usage", None),
        ] {
            assert_eq!(limited_model(refusal, command).as_deref(), want, "{refusal}");
        }
    }

    #[test]
    fn a_window_of_one_model_has_its_name() {
        assert_eq!(model_of_window("seven_day_opus"), Some("opus"));
        assert_eq!(model_of_window("seven_day"), None);
    }
}
