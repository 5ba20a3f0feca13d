//! Things that are not there: what is missing decides the reason.

use super::words::{has_any, has_word};
use backstop_core::Reason;

/// How a tool says that something is not there.
const PHRASES: &[&str] = &[
    "not found",
    "no such",
    "cannot find",
    "can't find",
    "can not find",
    "could not find",
    "couldn't find",
    "couldn't locate",
    "could not locate",
    "unable to find",
    "unable to locate",
    "unable to resolve",
    "could not resolve",
    "cannot resolve",
    "cannot locate",
    "does not exist",
    "doesn't exist",
    "do not exist",
    "not exist",
    "non-existent",
    "nonexistent",
    "is missing",
    "not installed",
    "not available",
    "failed to find",
    "failed to locate",
    "found no",
    "no matching",
    "cannot open",
    "can't open",
    "could not open",
    "couldn't open",
    "unable to open",
    "failed to open",
    "cannot read",
    "can't read",
    "unable to read",
    "could not read",
    "cannot load",
    "could not load",
    "unable to load",
    "failed to load",
    "unknown module",
    "undefined module",
    "bad hostname",
    "unknown host",
    "is required",
];

const HOSTS: &[&str] =
    &["host", "hostname", "domain", "name or service", "nodename", "servname", "remote host", "dns"];
const DEPENDENCIES: &[&str] = &[
    "module",
    "modules",
    "package",
    "packages",
    "library",
    "libraries",
    "crate",
    "gem",
    "header",
    "plugin",
    "plugins",
    "dependency",
    "dependencies",
    "toolchain",
    "interpreter",
    "compiler",
    "executable",
    "binary",
    "driver",
    "backend",
    "engine",
    "dictionary",
    "include file",
    "import",
    "extension",
    "runtime",
    "installed",
    "in path",
    "on path",
    "in your path",
    "in $path",
    "shared object",
    "program",
    "preset",
];
const RECORDS: &[&str] = &[
    "table",
    "column",
    "record",
    "row",
    "object",
    "user",
    "role",
    "database",
    "relation",
    "attribute",
    "element",
    "entity",
    "resource",
    "collection",
    "index",
    "topic",
    "queue",
    "bucket",
    "namespace",
    "field",
    "property",
    "schema",
    "key",
    "document",
    "page",
    "url",
    "entry",
    "lease",
    "account",
    "reference",
];
const NAMES_OF_CODE: &[&str] =
    &["variable", "function", "symbol", "method", "identifier", "class", "constant", "type"];
const CALLED: &[&str] = &[
    "option",
    "command",
    "subcommand",
    "argument",
    "flag",
    "action",
    "task",
    "target",
    "recipe",
    "rule",
    "job",
    "script",
    "profile",
];
const FILES: &[&str] = &[
    "file",
    "files",
    "directory",
    "folder",
    "path",
    "input",
    "config",
    "configuration",
    "makefile",
    "project",
    "workspace",
    "manifest",
    "device",
];

/// What is missing, and the reason for that.
pub(super) fn read(line: &str) -> Option<(&'static str, Reason)> {
    if !PHRASES.iter().any(|phrase| line.contains(phrase)) {
        return None;
    }
    if has_any(line, HOSTS) && !has_any(line, FILES) {
        return Some(("grammar.missing_host", Reason::NetworkPermanent));
    }
    if has_any(line, DEPENDENCIES) {
        return Some(("grammar.missing_dependency", Reason::DependencyMissing));
    }
    if has_any(line, CALLED) {
        return Some(("grammar.missing_command", Reason::InvalidUsage));
    }
    if has_any(line, NAMES_OF_CODE) {
        return Some(("grammar.missing_name", Reason::CompileError));
    }
    if has_any(line, FILES) || names_a_file(line) || has_word(line, "open") || has_word(line, "read") {
        return Some(("grammar.missing_file", Reason::InvalidUsage));
    }
    if has_any(line, RECORDS) {
        return Some(("grammar.missing_record", Reason::Validation));
    }
    Some(("grammar.missing", Reason::InvalidUsage))
}

fn names_a_file(line: &str) -> bool {
    crate::mentioned::files(line).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_decides() {
        let kind = |line: &str| read(line).map(|(kind, _)| kind);
        assert_eq!(kind("unable to locate remote host www.example"), Some("grammar.missing_host"));
        assert_eq!(kind("could not find compiler \"ppc-gcc\" in path"), Some("grammar.missing_dependency"));
        assert_eq!(kind("no such file: a.c"), Some("grammar.missing_file"));
        assert_eq!(kind("role \"x\" does not exist"), Some("grammar.missing_record"));
        assert_eq!(kind("no such subcommand: frob"), Some("grammar.missing_command"));
        assert_eq!(kind("everything was found"), None);
    }
}
