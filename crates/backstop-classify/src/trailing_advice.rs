//! Lines that tools print after an error to say where to look or what to type: never the cause.

/// What may stand before such a line: the tool's mark for an error. Several may follow each other.
const MARKS: &[&str] = &[
    "npm error",
    "npm ERR!",
    "[ERROR]",
    "[error]",
    "ERROR:",
    "Error:",
    "error:",
    "error",
    "ERR!",
    "fatal:",
    "hint:",
    "Hint:",
    "note:",
    "help:",
    "tip:",
    ">",
    "|",
    "=",
    "-",
    "*",
    "•",
    "→",
    "ℹ",
    "!",
    "i",
];

/// How such a line begins, in lower case, without the marks before it.
const BEGINNINGS: &[&str] = &[
    "a complete log of this run",
    "to see a list of",
    "to see the full",
    "to see all",
    "for more information",
    "for more details",
    "for more info",
    "for help",
    "for usage",
    "for further",
    "for a list of",
    "for additional",
    "more information",
    "more info",
    "learn more",
    "read more",
    "re-run maven",
    "re-run with",
    "rerun with",
    "run with `",
    "run with --",
    "run with '",
    "run `npm help",
    "run \"npm help",
    "run npm help",
    "run again with",
    "try running with",
    "try 'npm help",
    "try `",
    "try '",
    "try \"",
    "try --help",
    "use --help",
    "use -h",
    "use `--help",
    "use \"",
    "see '",
    "see `",
    "see \"",
    "see --help",
    "see above",
    "see the above",
    "see http",
    "see log",
    "see the log",
    "see the full",
    "see the docs",
    "see the documentation",
    "see documentation",
    "full log",
    "full logs",
    "log file",
    "logs can be found",
    "did you mean",
    "perhaps you meant",
    "maybe you meant",
    "visit http",
    "please visit",
    "please see",
    "please refer",
    "refer to",
    "documentation:",
    "usage:",
    "[help 1]",
    "get more help at",
    "this error originates from a subprocess",
    "this is an issue with the package",
    "if you believe this",
    "if this is a bug",
    "if you think this",
    "report this",
    "to fix this",
    "if you need help",
    "set the environment variable",
];

/// Whether a line only says where to look or what to type after an error.
pub(crate) fn is_trailing_advice(line: &str) -> bool {
    let mut rest = line.trim_start();
    while let Some(after) = MARKS.iter().find_map(|mark| rest.strip_prefix(mark)) {
        // A mark is a word of its own: `information` begins with an i.
        if !after.starts_with(char::is_whitespace) {
            break;
        }
        rest = after.trim_start();
    }
    BEGINNINGS.iter().any(|beginning| {
        rest.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    })
}

#[cfg(test)]
mod tests {
    use super::is_trailing_advice;

    #[test]
    fn advice_is_told_from_causes() {
        for advice in [
            "npm error To see a list of scripts, run:",
            "npm ERR! A complete log of this run can be found in: /x/_logs/1-debug-0.log",
            "npm error Did you mean this?",
            "Did you mean `deploy`?",
            "[ERROR] Re-run Maven using the -X switch to enable full debug logging.",
            "[ERROR] [Help 1] http://cwiki.apache.org/confluence/x",
            "[ERROR] For more information about the errors and possible solutions, please read:",
            "For more information about this error, try `rustc --explain E0308`.",
            "> Run with --stacktrace option to get the stack trace.",
            "See 'docker run --help'.",
            "hint: See above for details.",
            "note: This error originates from a subprocess, and is likely not a problem with pip.",
            "Try 'ls --help' for more information.",
        ] {
            assert!(is_trailing_advice(advice), "{advice}");
        }
        for cause in [
            "npm error Missing script: \"nosuch\"",
            "error: could not compile `x` (bin \"x\") due to 1 previous error",
            "Error: Cannot find module 'information'",
            "error: run failed",
            "see is not defined",
            "Try-catch without a body",
            "",
            "i",
            "-",
            "fatal: repository 'x' not found",
        ] {
            assert!(!is_trailing_advice(cause), "{cause}");
        }
    }
}
