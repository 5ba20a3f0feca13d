//! The plugin for OpenCode: a file that belongs to Backstop as a whole.

/// The source of the plugin.
pub(crate) const PLUGIN: &str = include_str!("plugin.js");

/// The first line of the plugin, in every version.
const MARK: &str = "// Made by `backstop init --opencode`.";

/// Whether a file is our plugin, of any version.
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
