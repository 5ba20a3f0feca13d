//! Names of exceptions, read as words, in any language: `ConnectionRefusedError`,
//! `java.nio.file.NoSuchFileException`, `Errno::ECONNREFUSED`, `no_such_table_error`.

use super::words::of_name;
use backstop_core::Reason;

/// How the last word of such a name reads.
const LAST_WORDS: &[&str] = &["error", "exception", "fault", "failure", "err", "errno"];

/// Words of which all must be in the name, what was recognised, and the reason. The first that fits
/// decides.
const MEANINGS: &[(&[&str], &str, Option<Reason>)] = &[
    (&["connection", "refused"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["connection", "reset"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["connection", "aborted"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["connect"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["connect", "timeout"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["read", "timeout"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["socket", "timeout"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["remote", "protocol"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["remote", "disconnected"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["incomplete", "read"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["unknown", "host"], "grammar.exception_dns", Some(Reason::NetworkPermanent)),
    (&["name", "resolution"], "grammar.exception_dns", Some(Reason::NetworkPermanent)),
    (&["gai"], "grammar.exception_dns", Some(Reason::NetworkPermanent)),
    (&["ssl"], "grammar.exception_tls", Some(Reason::NetworkPermanent)),
    (&["certificate"], "grammar.exception_tls", Some(Reason::NetworkPermanent)),
    (&["rate", "limit"], "grammar.exception_rate", Some(Reason::RateLimited)),
    (&["too", "many", "requests"], "grammar.exception_rate", Some(Reason::RateLimited)),
    (&["throttling"], "grammar.exception_rate", Some(Reason::RateLimited)),
    (&["quota"], "grammar.exception_quota", Some(Reason::QuotaExhausted)),
    (&["authentication"], "grammar.exception_auth", Some(Reason::AuthError)),
    (&["authorization"], "grammar.exception_auth", Some(Reason::AuthError)),
    (&["unauthorized"], "grammar.exception_auth", Some(Reason::AuthError)),
    (&["credentials"], "grammar.exception_auth", Some(Reason::AuthError)),
    (&["forbidden"], "grammar.exception_auth", Some(Reason::AuthError)),
    (&["permission"], "grammar.exception_permission", Some(Reason::PermissionDenied)),
    (&["access", "denied"], "grammar.exception_permission", Some(Reason::PermissionDenied)),
    (&["module", "not", "found"], "grammar.exception_dependency", Some(Reason::DependencyMissing)),
    (&["class", "not", "found"], "grammar.exception_dependency", Some(Reason::DependencyMissing)),
    (&["class", "def", "found"], "grammar.exception_dependency", Some(Reason::DependencyMissing)),
    (&["import"], "grammar.exception_dependency", Some(Reason::DependencyMissing)),
    (&["distribution"], "grammar.exception_dependency", Some(Reason::DependencyMissing)),
    (&["dependency"], "grammar.exception_dependency", Some(Reason::DependencyMissing)),
    (&["no", "such", "file"], "grammar.exception_file", Some(Reason::InvalidUsage)),
    (&["file", "not", "found"], "grammar.exception_file", Some(Reason::InvalidUsage)),
    (&["not", "a", "directory"], "grammar.exception_file", Some(Reason::InvalidUsage)),
    (&["is", "a", "directory"], "grammar.exception_file", Some(Reason::InvalidUsage)),
    (&["out", "of", "memory"], "grammar.exception_memory", Some(Reason::OutOfMemory)),
    (&["memory"], "grammar.exception_memory", Some(Reason::OutOfMemory)),
    (&["database", "locked"], "grammar.exception_lock", Some(Reason::ResourceContention)),
    (&["lock"], "grammar.exception_lock", Some(Reason::ResourceContention)),
    (&["lock", "timeout"], "grammar.exception_lock", Some(Reason::ResourceContention)),
    (&["json"], "grammar.exception_data", Some(Reason::Validation)),
    (&["yaml"], "grammar.exception_data", Some(Reason::Validation)),
    (&["xml"], "grammar.exception_data", Some(Reason::Validation)),
    (&["toml"], "grammar.exception_data", Some(Reason::Validation)),
    (&["decode"], "grammar.exception_data", Some(Reason::Validation)),
    (&["schema"], "grammar.exception_data", Some(Reason::Validation)),
    (&["validation"], "grammar.exception_data", Some(Reason::Validation)),
    (&["scanner"], "grammar.exception_data", Some(Reason::Validation)),
    (&["parser"], "grammar.exception_data", Some(Reason::Validation)),
    (&["parse"], "grammar.exception_data", Some(Reason::Validation)),
    (&["bad", "zip"], "grammar.exception_data", Some(Reason::Validation)),
    (&["integrity"], "grammar.exception_data", Some(Reason::Validation)),
    (&["operational"], "grammar.exception_data", Some(Reason::Validation)),
    (&["programming"], "grammar.exception_data", Some(Reason::Validation)),
    (&["config"], "grammar.exception_config", Some(Reason::InvalidUsage)),
    (&["configuration"], "grammar.exception_config", Some(Reason::InvalidUsage)),
    (&["usage"], "grammar.exception_config", Some(Reason::InvalidUsage)),
    (&["argument"], "grammar.exception_config", Some(Reason::InvalidUsage)),
    (&["syntax"], "grammar.exception_syntax", Some(Reason::CompileError)),
    (&["compile"], "grammar.exception_syntax", Some(Reason::CompileError)),
    (&["indentation"], "grammar.exception_syntax", Some(Reason::CompileError)),
    (&["assertion"], "grammar.exception_assertion", None),
    (&["timeout"], "grammar.exception_network", Some(Reason::NetworkTransient)),
    (&["http"], "grammar.exception_http", None),
    (&["null", "pointer"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["zero", "division"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["type"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["key"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["index"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["attribute"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["name"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["runtime"], "grammar.exception_crash", Some(Reason::Crash)),
    (&["illegal", "state"], "grammar.exception_crash", Some(Reason::Crash)),
];

/// Names that stand on a line for their errno.
const ERRNOS: &[(&str, &str, Reason)] = &[
    ("ECONNREFUSED", "grammar.errno_network", Reason::NetworkTransient),
    ("ECONNRESET", "grammar.errno_network", Reason::NetworkTransient),
    ("ETIMEDOUT", "grammar.errno_network", Reason::NetworkTransient),
    ("EHOSTUNREACH", "grammar.errno_network", Reason::NetworkTransient),
    ("ENETUNREACH", "grammar.errno_network", Reason::NetworkTransient),
    ("EAI_AGAIN", "grammar.errno_network", Reason::NetworkTransient),
    ("ENOTFOUND", "grammar.errno_dns", Reason::NetworkPermanent),
    ("EACCES", "grammar.errno_permission", Reason::PermissionDenied),
    ("EPERM", "grammar.errno_permission", Reason::PermissionDenied),
    ("EROFS", "grammar.errno_permission", Reason::PermissionDenied),
    ("ENOENT", "grammar.errno_file", Reason::InvalidUsage),
    ("EISDIR", "grammar.errno_file", Reason::InvalidUsage),
    ("ENOTDIR", "grammar.errno_file", Reason::InvalidUsage),
    ("ENOSPC", "grammar.errno_disk", Reason::DiskFull),
    ("EMFILE", "grammar.errno_resource", Reason::ResourceExhausted),
    ("ENOMEM", "grammar.errno_resource", Reason::OutOfMemory),
    ("EADDRINUSE", "grammar.errno_lock", Reason::ResourceContention),
    ("EBUSY", "grammar.errno_lock", Reason::ResourceContention),
];

/// What the first name of an exception on a line says.
pub(super) fn read(line: &str) -> Option<(&'static str, Option<Reason>)> {
    let names = line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':')));
    for name in names.filter(|name| name.len() >= 5 && name.len() <= 120) {
        let last = name.trim_end_matches([':', '.']);
        let last = last.rsplit(['.', ':']).next().unwrap_or(last);
        if let Some((_, kind, reason)) = ERRNOS.iter().find(|(errno, ..)| *errno == last) {
            return Some((kind, Some(*reason)));
        }
        // A lone word such as `Error` is no name of an exception.
        let is_name = last.contains('_') || last.chars().skip(1).any(|c| c.is_ascii_uppercase());
        if !is_name {
            continue;
        }
        let words = of_name(last);
        let Some(end) = words.last() else { continue };
        if words.len() < 2 || !LAST_WORDS.contains(&end.as_str()) {
            continue;
        }
        let said = |wanted: &[&str]| wanted.iter().all(|word| words.iter().any(|known| known == word));
        let meaning = MEANINGS.iter().find(|(wanted, ..)| said(wanted));
        return Some(meaning.map_or(("grammar.exception", None), |(_, kind, reason)| (*kind, *reason)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_happened_in_any_language() {
        let reason = |line: &str| read(line).and_then(|(_, reason)| reason);
        assert_eq!(reason("ConnectionRefusedError: [Errno 111]"), Some(Reason::NetworkTransient));
        assert_eq!(reason("java.nio.file.NoSuchFileException: a"), Some(Reason::InvalidUsage));
        assert_eq!(reason("System.UnauthorizedAccessException: x"), Some(Reason::AuthError));
        assert_eq!(reason("Errno::ECONNREFUSED at x"), Some(Reason::NetworkTransient));
        assert_eq!(reason("json.decoder.JSONDecodeError: Expecting value"), Some(Reason::Validation));
        assert_eq!(reason("** (Postgrex.query_error) syntax"), None);
        assert_eq!(read("ERROR: nothing"), None);
        assert_eq!(read("an error occurred"), None);
    }
}
