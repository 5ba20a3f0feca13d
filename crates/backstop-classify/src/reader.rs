//! Commands that only read and show text: what stands in it happened elsewhere, and to somebody
//! else.

use crate::program::all_calls;

/// Programs that show, search or compare text.
const READERS: &[&str] = &[
    "ag", "awk", "bat", "batcat", "cat", "cmp", "column", "comm", "cut", "diff", "egrep", "fgrep", "gawk",
    "grep", "head", "hexdump", "jq", "less", "mawk", "more", "nl", "od", "rg", "sed", "sort", "strings",
    "tac", "tail", "tr", "uniq", "wc", "xxd", "yq", "zcat", "zgrep", "zless",
];
/// Commands of git that read its history on this machine.
const GIT_READERS: &[&str] =
    &["blame", "cat-file", "diff", "grep", "log", "reflog", "shortlog", "show", "status", "stash"];
/// What a shell does around them.
const SHELL_WORDS: &[&str] = &["cd", "exit", "export", "false", "set", "sleep", "test", "true", "[", ":"];

/// Whether a command line does nothing but read text.
pub(crate) fn only_reads(command: &str) -> bool {
    let calls: Vec<_> = all_calls(command).calls.into_iter().filter(|call| !call.is_wrapper).collect();
    let reads = |name: &str, words: &[String]| {
        let first = words.iter().find(|word| !word.starts_with('-'));
        READERS.contains(&name)
            || (name == "git" && first.is_some_and(|word| GIT_READERS.contains(&word.as_str())))
    };
    calls.iter().any(|call| reads(&call.name, &call.words))
        && calls
            .iter()
            .all(|call| reads(&call.name, &call.words) || SHELL_WORDS.contains(&call.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_text_are_told_from_clients() {
        for command in [
            "cat run.log",
            "grep -rn limit logs | head -3",
            "sh -c 'tail -n 5 run.log; exit 1'",
            "git log --oneline",
            "timeout 5 jq . x",
        ] {
            assert!(only_reads(command), "{command}");
        }
        for command in [
            "curl x | jq .",
            "claude -p hi",
            "echo hi",
            "git fetch",
            "sh -c 'exit 1'",
            "",
            "cat x | codex exec -",
        ] {
            assert!(!only_reads(command), "{command}");
        }
    }
}
