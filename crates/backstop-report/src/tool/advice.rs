//! Advice by the kind of tool and its message: browser, GitHub, GraphQL and docs tools. The advice
//! itself is data with examples and near misses, `advice/tools.toml`; this reads it.
//!
//! Ids and messages come from outside. They are only compared here, never shown.

use backstop_core::{Reason, SafeText};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What to do about a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The first step, as part of a sentence.
    pub next: &'static str,
    /// All steps, in order.
    pub actions: &'static [&'static str],
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    words: HashMap<String, Vec<String>>,
    kind: Vec<Kind>,
    advice: Vec<Entry>,
}

/// A kind of tool that has advice of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    /// Words of an id or a category that name it.
    words: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test of the examples"))]
    id: String,
    kind: String,
    next: String,
    actions: Vec<String>,
    when: Vec<Condition>,
    #[serde(rename = "match")]
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test of the examples"))]
    matches: Vec<Example>,
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test of the examples"))]
    miss: Vec<Example>,
}

/// When an entry holds: everything that is given has to fit.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Condition {
    tool: Vec<String>,
    about: Vec<String>,
    says: Vec<Vec<String>>,
    reasons: Vec<String>,
    failures: u32,
}

/// A call that failed, as an example.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "read by the test of the examples"))]
struct Example {
    tool: String,
    says: String,
    #[serde(default = "once")]
    failures: u32,
}

fn once() -> u32 {
    1
}

struct Table {
    kinds: Vec<Kind>,
    entries: Vec<(Entry, Advice)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // A test reads the file: one that cannot be read gives no advice.
    let Ok(file) = toml::from_str::<File>(include_str!("../../advice/tools.toml")) else {
        return Table { kinds: Vec::new(), entries: Vec::new() };
    };
    Table { kinds: file.kind, entries: file.advice.into_iter().map(|one| entry(one, &file.words)).collect() }
});

/// An entry with its lists of words put in, and its advice, which lives as long as the process.
fn entry(mut entry: Entry, words: &HashMap<String, Vec<String>>) -> (Entry, Advice) {
    for group in entry.when.iter_mut().flat_map(|when| &mut when.says) {
        let put_in = |word: String| match word.strip_prefix('@').and_then(|name| words.get(name)) {
            Some(list) => list.clone(),
            None => vec![word],
        };
        *group = std::mem::take(group).into_iter().flat_map(put_in).collect();
    }
    let text = |text: &String| -> &'static str { Box::leak(text.clone().into_boxed_str()) };
    let actions: Vec<&'static str> = entry.actions.iter().map(text).collect();
    let advice = Advice { next: text(&entry.next), actions: Box::leak(actions.into_boxed_slice()) };
    (entry, advice)
}

impl Condition {
    fn fits(&self, id: &str, text: &str, reason: Reason, failures: u32) -> bool {
        let one_of = |words: &[String], within: &[&str]| {
            words.is_empty()
                || words.iter().any(|word| within.iter().any(|text| text.contains(word.as_str())))
        };
        one_of(&self.tool, &[id])
            && one_of(&self.about, &[id, text])
            && self.says.iter().all(|group| one_of(group, &[text]))
            && (self.reasons.is_empty() || self.reasons.iter().any(|code| code == reason.code()))
            && failures >= self.failures
    }
}

/// The kind of a tool, where it has advice of its own: by its category, else by the words of its
/// id.
pub fn tool_kind(tool: &SafeText, category: Option<&SafeText>) -> Option<&'static str> {
    let of = |text: &SafeText| {
        let text = text.raw().to_ascii_lowercase();
        let has = |word: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word);
        let kind = TABLE.kinds.iter().find(|kind| kind.words.iter().any(|word| has(word)));
        kind.map(|kind| kind.name.as_str())
    };
    category.and_then(of).or_else(|| of(tool))
}

/// The advice for a failed call, where the tool's kind has some. `failures` is how often the call
/// has failed.
pub fn tool_advice(
    tool: &SafeText,
    category: Option<&SafeText>,
    reason: Reason,
    message: &SafeText,
    failures: u32,
) -> Option<Advice> {
    find_advice(tool, category, reason, message, failures).map(|(_, advice)| *advice)
}

fn find_advice(
    tool: &SafeText,
    category: Option<&SafeText>,
    reason: Reason,
    message: &SafeText,
    failures: u32,
) -> Option<&'static (Entry, Advice)> {
    let kind = tool_kind(tool, category)?;
    let (id, text) = (tool.raw().to_ascii_lowercase(), message.raw().to_ascii_lowercase());
    let holds = |entry: &Entry| entry.when.iter().any(|when| when.fits(&id, &text, reason, failures));
    TABLE.entries.iter().find(|(entry, _)| entry.kind == kind && holds(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_table_gets_its_advice_and_no_near_miss_does() {
        let file = toml::from_str::<File>(include_str!("../../advice/tools.toml")).unwrap();
        assert!(file.advice.len() >= 10 && file.kind.len() == 4);
        for entry in &file.advice {
            assert!(!entry.matches.is_empty() && !entry.miss.is_empty(), "{} has no example", entry.id);
            assert!(!entry.when.is_empty() && !entry.actions.is_empty(), "{}", entry.id);
            assert!(file.kind.iter().any(|kind| kind.name == entry.kind), "{}: {}", entry.id, entry.kind);
            for code in entry.when.iter().flat_map(|when| &when.reasons) {
                assert!(Reason::from_code(code).is_some(), "{}: {code}", entry.id);
            }
            let lists = entry.when.iter().flat_map(|when| &when.says).flatten();
            for name in lists.filter_map(|word| word.strip_prefix('@')) {
                assert!(file.words.contains_key(name), "{}: @{name}", entry.id);
            }
            let of = |example: &Example| {
                let (tool, says) = (example.tool.as_str().into(), example.says.as_str().into());
                let found = find_advice(&tool, None, Reason::ToolFailed, &says, example.failures);
                found.map(|(entry, _)| entry.id.as_str())
            };
            for example in &entry.matches {
                assert_eq!(of(example), Some(entry.id.as_str()), "{example:?}");
            }
            for example in &entry.miss {
                assert_ne!(of(example), Some(entry.id.as_str()), "{example:?}");
            }
        }
    }

    #[test]
    fn a_category_beats_the_id() {
        assert_eq!(tool_kind(&"github__read".into(), Some(&"Docs".into())), Some("docs"));
        assert_eq!(tool_kind(&"github__read".into(), Some(&"misc".into())), Some("github"));
        assert_eq!(tool_kind(&"githubish__docstring".into(), None), None);
    }

    #[test]
    fn a_reason_alone_can_say_it() {
        let advice = |tool: &str, reason| tool_advice(&tool.into(), None, reason, &"no".into(), 1);
        assert!(advice("github__search", Reason::RateLimited).unwrap().next.contains("less often"));
        assert!(advice("graphql__query", Reason::AuthError).unwrap().next.contains("credential"));
        assert_eq!(advice("github__search", Reason::ToolFailed), None);
    }
}
