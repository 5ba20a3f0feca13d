//! Which tools somebody may have meant who named one that is not there.

use crate::catalogue::{Catalogue, Tool};
use crate::names::SEPARATOR;
use std::collections::HashSet;

/// How many names are suggested.
const SUGGESTIONS_MAX: usize = 5;
/// How alike two names must be, in percent, to be suggested across servers.
const ALIKE_PERCENT_MIN: u32 = 45;
/// How alike they must be within the server that was named.
const ALIKE_WITHIN_PERCENT_MIN: u32 = 20;

/// Suggestions for a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Suggestions {
    /// The nearest tools: those of its server and category first, then by spelling.
    pub(crate) nearest: Vec<String>,
    /// The known servers, where the one that was named is not among them.
    pub(crate) prefixes: Vec<String>,
}

/// What may have been meant.
pub(crate) fn suggest(given: &str, catalogue: &Catalogue) -> Suggestions {
    let (prefix, bare) = given.split_once(SEPARATOR).map_or((None, given), |(p, b)| (Some(p), b));
    let servers = catalogue.servers();
    // Where there is one server, its tools may be offered without its name.
    let prefix = match servers.as_slice() {
        [only] if prefix.is_none() => Some(only.as_str()),
        _ => prefix,
    };
    let known = prefix.is_some_and(|prefix| servers.iter().any(|server| server == prefix));
    let category =
        catalogue.tools().find(|tool| Some(tool.server.as_str()) == prefix).and_then(|t| t.category());
    let mut scored: Vec<(bool, u32, &str)> = catalogue
        .tools()
        .filter_map(|tool| {
            let near = is_near(tool, prefix, category);
            let alike = alike(bare, &tool.tool).max(alike(given, &tool.name));
            let needed = if near { ALIKE_WITHIN_PERCENT_MIN } else { ALIKE_PERCENT_MIN };
            (alike >= needed).then_some((near, alike, tool.name.as_str()))
        })
        .collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(b.2)));
    let mut nearest: Vec<String> = scored.into_iter().map(|(_, _, name)| name.to_owned()).collect();
    if known {
        // A short list of what the server has, where the spelling says little.
        let rest = catalogue.tools().filter(|tool| Some(tool.server.as_str()) == prefix);
        for tool in rest {
            if nearest.len() >= 3 {
                break;
            }
            if !nearest.contains(&tool.name) {
                nearest.push(tool.name.clone());
            }
        }
    }
    nearest.truncate(SUGGESTIONS_MAX);
    let prefixes = if prefix.is_some() && !known { servers } else { Vec::new() };
    Suggestions { nearest, prefixes }
}

fn is_near(tool: &Tool, prefix: Option<&str>, category: Option<&str>) -> bool {
    Some(tool.server.as_str()) == prefix || (category.is_some() && tool.category() == category)
}

/// How alike two names are, in percent: pairs of letters that they have in common.
fn alike(a: &str, b: &str) -> u32 {
    let pairs = |text: &str| -> HashSet<(char, char)> {
        let letters: Vec<char> = text.chars().take(128).flat_map(char::to_lowercase).collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let (a, b) = (pairs(a), pairs(b));
    let all = a.len() + b.len();
    if all == 0 {
        return 0;
    }
    u32::try_from(200 * a.intersection(&b).count() / all).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalogue() -> Catalogue {
        let tools = |names: &[&str]| names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>();
        Catalogue::of_lists(&[
            ("github", tools(&["create_issue", "create_pull_request", "get_issue", "list_commits"])),
            ("chrome-devtools", tools(&["click", "hover", "take_snapshot", "navigate_page"])),
        ])
    }

    #[test]
    fn a_misspelling_finds_its_own_server_first() {
        let found = suggest("github__crate_issue", &catalogue());
        assert_eq!(found.nearest[0], "github__create_issue");
        assert!((3..=5).contains(&found.nearest.len()) && found.prefixes.is_empty(), "{found:?}");
    }

    #[test]
    fn an_unknown_prefix_names_the_known_ones() {
        let found = suggest("gitlab__zzz", &catalogue());
        assert_eq!(found.prefixes, ["chrome-devtools", "github"]);
        let found = suggest("gihtub__create_issue", &catalogue());
        assert_eq!((found.nearest[0].as_str(), found.prefixes.len()), ("github__create_issue", 2));
    }

    #[test]
    fn a_name_without_a_prefix_is_looked_for_everywhere() {
        assert_eq!(suggest("take_snapshots", &catalogue()).nearest[0], "chrome-devtools__take_snapshot");
        assert_eq!(suggest("", &catalogue()), Suggestions::default());
        assert_eq!(suggest("zzz", &catalogue()), Suggestions::default());
    }

    #[test]
    fn a_single_server_needs_no_prefix() {
        let tools = ["read", "write", "remove", "list"].map(|name| json!({ "name": name })).to_vec();
        let found = suggest("zzz", &Catalogue::of_lists(&[("files", tools)]));
        assert_eq!((found.nearest.len(), found.prefixes.len()), (3, 0), "{found:?}");
    }
}
