//! Usage texts and complaints about arguments.

/// Complaints about how a command was called.
const COMPLAINTS: &[&str] = &[
    "unrecognized option",
    "unrecognised option",
    "unrecognized argument",
    "unknown option",
    "unknown flag",
    "unknown command",
    "unknown subcommand",
    "unknown argument",
    "unknown switch",
    "unknown shorthand flag",
    "unknown parameter",
    "invalid option",
    "invalid argument",
    "invalid choice",
    "invalid flag",
    "illegal option",
    "bad option",
    "no such option",
    "no such command",
    "is not a valid command",
    "not a recognized",
    "not recognized as",
    "not recognized (",
    "is not a command",
    "unexpected argument",
    "unexpected option",
    "requires an argument",
    "requires a value",
    "requires at least",
    "requires exactly",
    "option requires",
    "expects an argument",
    "expected one argument",
    "expected at least one argument",
    "expected argument",
    "needs an argument",
    "needs 1 argument",
    "missing argument",
    "missing required",
    "missing operand",
    "missing option",
    "too many arguments",
    "too few arguments",
    "not enough arguments",
    "wrong number of arguments",
    "the following arguments are required",
    "flag provided but not defined",
    "mutually exclusive",
    "cannot be used with",
    "can't be used with",
    "must be followed by",
    "must specify",
    "you must provide",
    "please provide",
    "no input file",
    "nothing to do",
    "extra operand",
    "command line option",
    "parsing options",
    "did you mean",
    "option -",
    "option '-",
    "option `-",
    "option \"-",
];

/// What goes before the name of an option that shows all others.
const HELP: &[&str] = &[
    "try '",
    "try `",
    "try \"",
    "see '",
    "see `",
    "run '",
    "run `",
    "use '",
    "use `",
    "for help",
    "for more information",
    "for a list of",
    "for usage",
];

/// How many lines without an option or an indent end a usage text.
const PLAIN_LINES_MAX: u32 = 2;

/// Follows a usage text through the lines.
#[derive(Debug, Default)]
pub(super) struct Usage {
    open: bool,
    plain: u32,
}

impl Usage {
    /// What a lower-case line says about the call.
    pub(super) fn read(&mut self, line: &str) -> Option<&'static str> {
        let trimmed = line.trim_start();
        if self.open {
            let belongs = line.starts_with([' ', '\t', '-', '[']) || trimmed.ends_with(':');
            self.plain = if belongs { 0 } else { self.plain + 1 };
            self.open = self.plain < PLAIN_LINES_MAX;
        }
        let begins = trimmed
            .strip_prefix("usage")
            .is_some_and(|rest| rest.trim_start().starts_with(':') || rest.is_empty());
        if begins {
            (self.open, self.plain) = (true, 0);
            return Some("grammar.usage");
        }
        if COMPLAINTS.iter().any(|words| line.contains(words)) && !line.starts_with([' ', '\t']) {
            return Some("grammar.bad_argument");
        }
        let helps = line.contains("--help") || line.contains("-h ") || line.contains(" help");
        (helps && HELP.iter().any(|words| line.contains(words))).then_some("grammar.see_help")
    }

    /// Whether the lines belong to a usage text.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_wrong_are_told() {
        let one = |line: &str| Usage::default().read(line);
        assert_eq!(one("usage: frob [-x]"), Some("grammar.usage"));
        assert_eq!(one("frob: unknown option --x"), Some("grammar.bad_argument"));
        assert_eq!(one("try 'frob --help' for more information."), Some("grammar.see_help"));
        assert_eq!(one("memory usage is high"), None);
    }

    #[test]
    fn a_usage_text_ends() {
        let mut usage = Usage::default();
        for line in ["usage: frob", "  -x   timeout", "--y  z", "frob: cannot open a", "done"] {
            usage.read(line);
        }
        assert!(!usage.is_open());
    }
}
