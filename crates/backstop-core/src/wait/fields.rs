//! Fields in a line of text: `retry-after: 5` in curl's headers, `'retry-after': '17'` in an object
//! that a program printed, `retry_after=33` in a log.

/// How many fields of a line are read.
const FIELDS_MAX: usize = 64;
/// Parts of names that make a field worth reading, in lower case.
const PARTS: &[&str] = &["retry", "reset", "ratelimit", "rate-limit", "x-codex"];

/// The fields of a line that may speak of a wait, as names and values.
pub(super) fn read(line: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let trimmed = line.trim_start_matches(['<', '>', ' ', '\t', '*', '|', '│']);
    // An item of a list in a document.
    if trimmed.starts_with("- ") {
        return fields;
    }
    let lower = trimmed.to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut from = 0;
    // Where each part stands next: a line is searched once for each of them, however many there are
    // of another.
    let mut places: Vec<_> = PARTS.iter().map(|part| lower.match_indices(part).peekable()).collect();
    while fields.len() < FIELDS_MAX {
        let next = places.iter_mut().filter_map(|places| {
            while places.next_if(|(at, _)| *at < from).is_some() {}
            places.peek().map(|(at, _)| *at)
        });
        let Some(at) = next.min() else { break };
        let start = lower[..at]
            .rfind(|c| !is_name(c))
            .map_or(0, |before| before + lower[before..].chars().next().map_or(1, char::len_utf8));
        let end = lower[at..].find(|c| !is_name(c)).map_or(lower.len(), |len| at + len);
        from = end;
        if let Some(value) = value(&trimmed[end..], start == 0) {
            fields.push((lower[start..end].to_owned(), value.to_owned()));
        }
    }
    fields
}

/// The value after a name. A header has the rest of its line; what stands among others ends with a
/// sign that cannot be a part of it.
fn value(rest: &str, is_header: bool) -> Option<&str> {
    let unquoted = rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start();
    let after = unquoted.strip_prefix(':').or_else(|| unquoted.strip_prefix('='))?;
    if after.starts_with(['=', ':']) {
        return None;
    }
    let after = after.trim_start();
    if let Some(quote) = after.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let inner = &after[1..];
        return Some(&inner[..inner.find(quote).unwrap_or(inner.len())]);
    }
    let end = if is_header && !rest.starts_with(['"', '\'']) {
        after.len()
    } else {
        after
            .find(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | '}' | ']' | ';'))
            .unwrap_or(after.len())
    };
    let value = after[..end].trim_end().trim_end_matches(',');
    (!value.is_empty()).then_some(value)
}
