//! Addresses of requests: which words are one, and whether one is that of a pattern.

use super::glob;

/// The host of a pattern that stands for this machine: `@local/v1/chat/completions`.
const LOCAL: &str = "@local";

/// Whether a word is an address: `https://host/path`, `host.example/path`, `localhost:8080/path`.
pub(super) fn is_url(word: &str) -> bool {
    if word.starts_with("http://") || word.starts_with("https://") {
        return true;
    }
    let host = word.split(['/', '?']).next().unwrap_or(word);
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    let variable = word.starts_with('$') && word.contains('/');
    variable
        || (!host.is_empty()
            && host.len() < word.len()
            && !host.starts_with(['.', '-'])
            && host.chars().all(plain)
            && (host.contains('.') || host.contains(':')))
}

/// Whether an address is this one: `api.openai.com/v1/embeddings`, `@local/*`, `*:11434/api/chat`.
/// A `*` of the host stays within the host.
pub(super) fn is_at(pattern: &str, word: &str) -> bool {
    let address = word.strip_prefix("https://").or_else(|| word.strip_prefix("http://")).unwrap_or(word);
    let address = address.split(['?', '#']).next().unwrap_or(address).trim_end_matches('/');
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    // What is before an `@` in the host is no part of it, and could pretend to be one. Neither does
    // a path that climbs out of itself prove anything.
    let host = host.rsplit('@').next().unwrap_or(host);
    if path.split('/').any(|part| part == "..") || address.contains(['\\', '%']) {
        return false;
    }
    let Some((wanted_host, wanted_path)) = pattern.split_once('/') else { return glob(pattern, address) };
    let is_host = match wanted_host {
        LOCAL => is_this_machine(host),
        wanted => glob(wanted, host),
    };
    is_host && glob(wanted_path, path)
}

/// Whether a host is this machine, on any port.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    let is_loopback =
        name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified());
    is_loopback || matches!(name, "localhost" | "host.docker.internal")
}
