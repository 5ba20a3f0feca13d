//! Credentials in addresses: `://user:password@host`, and addresses that are secrets themselves.

use super::{run, run_within};
use std::ops::Range;

/// How much of an address is looked at.
const ADDRESS_BYTES_MAX: usize = 512;
/// A name alone that is this long is a token.
const TOKEN_BYTES_MIN: usize = 20;

fn is_address_byte(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`')
}

/// The password, or the whole of what stands before the host where that is a token. `end` is where
/// `://` ends.
pub(super) fn user_info(text: &[u8], end: usize) -> Option<Range<usize>> {
    let rest = &text[end..];
    let rest = &rest[..run_within(rest, ADDRESS_BYTES_MAX, is_address_byte)];
    let authority = run(rest, |byte| !matches!(byte, b'/' | b'?' | b'#'));
    let colon = memchr::memchr(b':', &rest[..authority]);
    let at = memchr::memrchr(b'@', &rest[..authority]).or_else(|| {
        // A password may hold a slash: then what follows the colon is no port.
        let after = &rest[colon? + 1..];
        let is_port = run(after, |byte| byte.is_ascii_digit()) == authority - colon? - 1;
        let at = memchr::memrchr(b'@', rest)?;
        let host = rest.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        (!is_port && host && memchr::memmem::find(rest, b"://").is_none()).then_some(at)
    })?;
    match colon.filter(|colon| *colon < at) {
        Some(colon) if is_placeholder(&rest[colon + 1..at]) => None,
        Some(colon) => Some(end + colon + 1..end + at),
        None => (at >= TOKEN_BYTES_MIN).then(|| end..end + at),
    }
}

fn is_placeholder(password: &[u8]) -> bool {
    password.is_empty() || super::value::is_placeholder(password)
}

/// What follows in an address that is a secret: whoever knows it may send.
pub(super) fn secret_path(text: &[u8], end: usize) -> Option<Range<usize>> {
    const PATH_BYTES_MIN: usize = 12;
    let rest = &text[end..];
    let is_path = |byte: u8| is_address_byte(byte) && !matches!(byte, b')' | b']' | b',' | b'|' | b'\\');
    let length = run_within(rest, PATH_BYTES_MIN, is_path);
    (length >= PATH_BYTES_MIN).then(|| end..end + run(rest, is_path))
}
