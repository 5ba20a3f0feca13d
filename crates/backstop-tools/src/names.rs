//! The names under which tools are offered: `server__tool`, at most 64 characters, of letters,
//! digits, `_` and `-`, because clients refuse others.

use backstop_core::Sha256;
use std::collections::HashSet;

/// The longest name, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// What stands between the server and the tool.
pub(crate) const SEPARATOR: &str = "__";
/// How many characters of a hash make a name unique.
const HASH_CHARS: usize = 6;

/// The name of a tool for callers. It depends on the server and the tool alone.
pub(crate) fn public_name(server: Option<&str>, tool: &str) -> String {
    let whole = match server {
        Some(server) => format!("{server}{SEPARATOR}{tool}"),
        None => tool.to_owned(),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let clean: String = whole.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if clean == whole && clean.len() <= NAME_CHARS_MAX && !clean.is_empty() {
        return clean;
    }
    with_hash(&clean, &whole)
}

/// The longest of these servers' names that a tool's name begins with: a server may have the
/// separator in its own name.
pub(crate) fn longest_prefix<'s>(tool: &str, servers: impl Iterator<Item = &'s str>) -> Option<&'s str> {
    let has = |server: &&str| tool.strip_prefix(*server).is_some_and(|rest| rest.starts_with(SEPARATOR));
    servers.filter(has).max_by_key(|server| server.len())
}

/// A name that is in use already, made unique by what it stands for.
pub(crate) fn with_hash(clean: &str, whole: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(whole.as_bytes());
    let hash = hasher.hex();
    let kept: String = clean.chars().take(NAME_CHARS_MAX - HASH_CHARS - 1).collect();
    format!("{kept}_{}", &hash[..HASH_CHARS])
}

/// Gives each of these its name: the server, where names have one, and the tool.
pub(crate) fn unique_names<'t>(tools: impl Iterator<Item = (Option<&'t str>, &'t str)>) -> Vec<String> {
    let mut used = HashSet::new();
    let mut named = Vec::new();
    for (server, tool) in tools {
        let mut name = public_name(server, tool);
        let mut whole = format!("{}{SEPARATOR}{tool}", server.unwrap_or_default());
        while !used.insert(name.clone()) {
            whole.push('+');
            name = with_hash(&name, &whole);
        }
        named.push(name);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_says_where_its_tool_is() {
        assert_eq!(public_name(Some("github"), "create_issue"), "github__create_issue");
        assert_eq!(public_name(None, "create_issue"), "create_issue");
        let long = public_name(Some("github"), &"x".repeat(100));
        assert_eq!(long.len(), NAME_CHARS_MAX);
        assert!(long.starts_with("github__xxx"));
        assert_ne!(long, public_name(Some("github"), &"x".repeat(101)));
        assert_ne!(public_name(Some("a"), "b.c"), public_name(Some("a"), "b/c"));
    }

    proptest! {
        #[test]
        fn names_are_short_clean_unique_and_stable(tools in prop::collection::vec(("[a-z]{1,70}", ".{0,70}"), 0..12)) {
            let given = || tools.iter().map(|(server, tool)| (Some(server.as_str()), tool.as_str()));
            let names = unique_names(given());
            prop_assert_eq!(&names, &unique_names(given()));
            for name in &names {
                prop_assert!(!name.is_empty() && name.len() <= NAME_CHARS_MAX, "{}", name);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')));
            }
            let unique: HashSet<&String> = names.iter().collect();
            prop_assert_eq!(unique.len(), names.len());
        }
    }
}
