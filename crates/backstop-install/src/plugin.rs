//! Our plugin for OpenCode: a file that is ours as a whole.

/// The plugin.
pub(crate) const PLUGIN: &str = include_str!("plugin.js");

/// How a file of ours begins, in this version and all others.
const MARK: &str = "// Made by `backstop init --opencode`.";

/// Whether a file is ours.
pub(crate) fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_has_the_mark() {
        assert!(is_ours(PLUGIN) && !is_ours("") && !is_ours("export const X = 1\n"));
        assert!(PLUGIN.lines().all(|line| line.len() <= 120));
    }
}
