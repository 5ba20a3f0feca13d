//! Advice by the kind of tool and its message: browser, GitHub, GraphQL and docs tools.
//!
//! Ids and messages come from outside. They are only compared here, never shown.

use backstop_core::{Reason, SafeText};

/// A kind of tool that has advice of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Drives a browser.
    Browser,
    /// Talks to a code host.
    GitHub,
    /// Explores a GraphQL schema.
    GraphQl,
    /// Looks up the documentation of libraries.
    Docs,
}

/// What to do about a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The first step, as part of a sentence.
    pub next: &'static str,
    /// All steps, in order.
    pub actions: &'static [&'static str],
}

/// Words of an id or a category that name a kind.
const KINDS: &[(ToolKind, &[&str])] = &[
    (ToolKind::GraphQl, &["graphql"]),
    (ToolKind::Browser, &["browser", "chrome", "devtools", "playwright", "puppeteer", "webdriver"]),
    (ToolKind::GitHub, &["github"]),
    (ToolKind::Docs, &["context7", "docs", "documentation", "deepwiki"]),
];

/// The kind of a tool: by its category, else by the words of its id.
pub fn tool_kind(tool: &SafeText, category: Option<&SafeText>) -> Option<ToolKind> {
    let of = |text: &SafeText| {
        let text = text.raw().to_ascii_lowercase();
        let has = |word: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word);
        KINDS.iter().find(|(_, words)| words.iter().any(|word| has(word))).map(|(kind, _)| *kind)
    };
    category.and_then(of).or_else(|| of(tool))
}

/// The advice for a failed call, where the tool's kind has some. `attempts` is how often the call
/// has failed.
pub fn tool_advice(
    tool: &SafeText,
    category: Option<&SafeText>,
    reason: Reason,
    message: &SafeText,
    attempts: u32,
) -> Option<Advice> {
    let text = message.raw().to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let id = tool.raw().to_ascii_lowercase();
    let gone = says(&[
        "not found",
        "no such",
        "not exist",
        "doesn't exist",
        "unknown",
        "cannot",
        "could not",
        "unable",
    ]);
    Some(match tool_kind(tool, category)? {
        ToolKind::Browser => {
            let click = id.contains("click") || says(&["click"]);
            let covered = says(&["not clickable", "intercept", "not visible", "obscured", "viewport"]);
            let stale = says(&["stale", "detached"])
                || gone && says(&["element", "uid", "selector", "node", "ref ", "snapshot"]);
            match (click && (covered || attempts > 1), stale) {
                (true, _) => CLICK,
                (false, true) if id.contains("playwright") => SNAPSHOT_PLAYWRIGHT,
                (false, true) => SNAPSHOT,
                (false, false) => return None,
            }
        }
        ToolKind::GitHub if reason == Reason::RateLimited || says(&["rate limit", "429", "abuse"]) => SLOWER,
        ToolKind::GitHub if gone || says(&["404", "not accessible", "403"]) => REPOSITORY,
        ToolKind::GraphQl if gone && says(&["field"]) => FIELD,
        ToolKind::GraphQl if says(&["schema", "introspect"]) || reason == Reason::AuthError => SCHEMA,
        ToolKind::GraphQl if gone && says(&["type"]) => TYPE,
        ToolKind::Docs if says(&["no match", "no result", "nothing found", "0 results"]) => BROADER,
        ToolKind::Docs if gone || says(&["not resolved", "resolution", "resolve"]) => LIBRARY,
        ToolKind::GitHub | ToolKind::GraphQl | ToolKind::Docs => return None,
    })
}

const SNAPSHOT: Advice = Advice {
    next: "call `take_snapshot` for fresh uids, then repeat with one of those",
    actions: &[
        "Call `take_snapshot`: the uids of an older snapshot are void once the page changes",
        "Repeat with the uid that the new snapshot shows",
    ],
};

const SNAPSHOT_PLAYWRIGHT: Advice = Advice {
    next: "call `browser_snapshot` for fresh refs, then repeat with one of those",
    actions: &[
        "Call `browser_snapshot`: the refs of an older snapshot are void once the page changes",
        "Repeat with the ref that the new snapshot shows",
    ],
};

const CLICK: Advice = Advice {
    next: "scroll the element into view or hover over it, then click",
    actions: &[
        "Scroll the element into view, or hover over it, before the click",
        "Take a snapshot: something else may lie over the element",
    ],
};

const REPOSITORY: Advice = Advice {
    next: "check how owner and repo are spelt, and that the token may see the repository",
    actions: &[
        "Check how owner and repo are spelt",
        "Check that the token may see it: a private repository looks like a missing one",
    ],
};

const SLOWER: Advice = Advice {
    next: "ask less often, and go on once the limit has reset",
    actions: &["Ask less often: fewer calls, more results a page", "Go on once the limit has reset"],
};

const SCHEMA: Advice = Advice {
    next: "check the endpoint's address and its credential",
    actions: &["Check the endpoint's address", "Check its credential, and that introspection is allowed"],
};

const FIELD: Advice = Advice {
    next: "list the fields that exist with `filter_queries`",
    actions: &[
        "List the fields that exist with `filter_queries`",
        "Repeat with the name as it is listed there",
    ],
};

const TYPE: Advice = Advice {
    next: "look again at what `filter_types` lists",
    actions: &["Look again at what `filter_types` lists", "Repeat with the name as it is listed there"],
};

const LIBRARY: Advice = Advice {
    next: "give the full package name, or the repository as owner/repo",
    actions: &[
        "Give the full package name, scope included",
        "Give the repository as owner/repo where several packages share the name",
    ],
};

const BROADER: Advice = Advice {
    next: "ask in broader terms",
    actions: &["Use fewer and more general words", "Check that the library is the one you mean"],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn next(tool: &str, message: &str, attempts: u32) -> Option<&'static str> {
        let advice = tool_advice(&tool.into(), None, Reason::ToolFailed, &message.into(), attempts);
        advice.map(|advice| advice.next)
    }

    #[test]
    fn the_seeds_variants_are_told_apart() {
        let click = "MetaMCP_chrome-devtools__click";
        assert_eq!(next(click, "element not found", 1), Some(SNAPSHOT.next));
        assert_eq!(next(click, "element is not clickable at (3, 4)", 1), Some(CLICK.next));
        assert_eq!(next(click, "it failed", 3), Some(CLICK.next));
        assert_eq!(
            next("mcp__playwright__browser_type", "Ref e3 not found", 1),
            Some(SNAPSHOT_PLAYWRIGHT.next)
        );
        let github = "MetaMCP_github-zengaming__get_pull_request";
        assert_eq!(next(github, "404 repository not found", 1), Some(REPOSITORY.next));
        assert_eq!(next(github, "403 API rate limit exceeded", 1), Some(SLOWER.next));
        let graphql = "MetaMCP_graphql-tools__get_field_details";
        assert_eq!(next(graphql, "field not found", 1), Some(FIELD.next));
        assert_eq!(next(graphql, "type User not found", 1), Some(TYPE.next));
        assert_eq!(next(graphql, "schema fetch failed", 1), Some(SCHEMA.next));
        let docs = "MetaMCP_context7__resolve-library-id";
        assert_eq!(next(docs, "library not resolved", 1), Some(LIBRARY.next));
        assert_eq!(next(docs, "the query has no matches", 1), Some(BROADER.next));
        assert_eq!(next("fs__read_file", "element not found", 1), None);
        for tool in ["MetaMCP_chrome-devtools__navigate", github, graphql, docs] {
            assert_eq!(next(tool, "502 bad gateway", 1), None, "{tool}");
        }
    }

    #[test]
    fn a_category_beats_the_id() {
        assert_eq!(tool_kind(&"github__read".into(), Some(&"Docs".into())), Some(ToolKind::Docs));
        assert_eq!(tool_kind(&"github__read".into(), Some(&"misc".into())), Some(ToolKind::GitHub));
        assert_eq!(tool_kind(&"githubish__docstring".into(), None), None);
    }
}
