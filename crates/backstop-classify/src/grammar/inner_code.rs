//! Exit codes of inner commands and statuses of answers that a line tells.

use super::words::number;
use backstop_core::Reason;

/// What stands before the exit code of an inner command.
const EXITS: &[&str] = &[
    "exit code ",
    "exit code: ",
    "exit status ",
    "exit status: ",
    "exited with code ",
    "exited with status ",
    "exited with ",
    "exited ",
    "returned code ",
    "return code ",
    "returncode ",
    "status code ",
    "failed with code ",
    "failed with error ",
    "*** [",
    "error ",
    "code ",
];

/// What stands before the status of an answer.
const STATUSES: &[&str] = &[
    "http ",
    "http/1.1 ",
    "http/1.0 ",
    "http/2 ",
    "http error ",
    "http status ",
    "http code ",
    "status ",
    "status: ",
    "status code ",
    "status code: ",
    "status=",
    "statuscode=",
    "response ",
    "response code ",
    "response: ",
    "got ",
    "returned ",
    "error ",
    "error: ",
    "error code: ",
    "code: ",
    "code=",
    "(",
];

/// The inner code on a lower-case line, and what it stands for.
pub(super) fn read(line: &str, status: &dyn Fn(u16) -> Option<Reason>) -> Option<(&'static str, Reason)> {
    for before in EXITS {
        let Some(at) = line.rfind(before) else { continue };
        let mut rest = &line[at + before.len()..];
        if *before == "*** [" {
            let Some(close) = rest.find("] error ") else { continue };
            rest = &rest[close + 8..];
        }
        let Some((code, after)) = number(rest) else { continue };
        if after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.' && after.len() > 1) {
            continue;
        }
        let reason = match code {
            126 => Reason::PermissionDenied,
            127 => Reason::DependencyMissing,
            124 => Reason::Timeout,
            130 => Reason::Interrupted,
            137 => Reason::ResourceExhausted,
            132 | 134 | 135 | 136 | 139 => Reason::Crash,
            _ => continue,
        };
        return Some(("grammar.inner_exit", reason));
    }
    let reason = statuses(line).find_map(status)?;
    Some(("grammar.inner_status", reason))
}

/// The HTTP statuses of errors that a lower-case line names.
pub(super) fn statuses(line: &str) -> impl Iterator<Item = u16> {
    let named = STATUSES.iter().flat_map(move |before| {
        line.match_indices(before).filter_map(|(at, before)| number(&line[at + before.len()..]))
    });
    named.filter_map(|(code, after)| {
        let fits = (400..600).contains(&code) && !after.starts_with(|c: char| c.is_ascii_alphanumeric());
        u16::try_from(code).ok().filter(|_| fits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_codes_mean_what_outer_ones_mean() {
        let status = |code| (code == 403).then_some(Reason::AuthError);
        let reason = |line: &str| read(line, &status).map(|(_, reason)| reason);
        assert_eq!(reason("make: *** [build] error 127"), Some(Reason::DependencyMissing));
        assert_eq!(reason("step \"a\" exited with code 137"), Some(Reason::ResourceExhausted));
        assert_eq!(reason("upload failed, got 403"), Some(Reason::AuthError));
        assert_eq!(reason("the answer was http 403 forbidden"), Some(Reason::AuthError));
        assert_eq!(reason("exited with code 3"), None);
        assert_eq!(reason("error 1271: x"), None);
        assert_eq!(reason("got 4031 rows"), None);
    }
}
