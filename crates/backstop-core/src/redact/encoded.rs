//! The encodings in which a secret travels: base64, percent, JSON, quotes of a shell.

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The other forms of a value, those alone that differ from it.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut forms: Vec<String> = (0..3).map(|before| base64_inner(value.as_bytes(), before)).collect();
    let url_safe: Vec<String> = forms.iter().map(|f| f.replace('+', "-").replace('/', "_")).collect();
    forms.extend(url_safe);
    forms.push(percent(value));
    forms.push(percent(value).replace("%20", "+"));
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.push(hex.to_ascii_uppercase());
    forms.push(hex);
    forms.push(value.replace('\\', "\\\\").replace('"', "\\\""));
    // Of a shell: a quote in quotes.
    forms.push(value.replace('\'', "'\\''"));
    forms.push(value.replace('\'', "'\"'\"'"));
    forms.retain(|form| form != value);
    forms.dedup();
    forms
}

/// The characters of base64 that depend on the value alone, where `before` bytes of something else
/// stand in front of it in its group of three: the same whatever those are, and whatever follows.
fn base64_inner(value: &[u8], before: usize) -> String {
    let mut bits = vec![false; before * 8];
    bits.extend(value.iter().flat_map(|byte| (0..8).rev().map(move |n| byte >> n & 1 == 1)));
    let first = (before * 8).div_ceil(6);
    let groups = bits.len() / 6;
    (first..groups)
        .map(|group| {
            let index = bits[group * 6..group * 6 + 6].iter().fold(0, |n, bit| n << 1 | usize::from(*bit));
            char::from(BASE64[index])
        })
        .collect()
}

fn percent(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_wherever_it_begins() {
        assert_eq!(base64_inner(b"hunter2", 0), "aHVudGVyM"); // aHVudGVyMg==
        for whole in ["aHVudGVyMg==", "dXNlcjpodW50ZXIy", "eHg6aHVudGVyMjp4"] {
            // hunter2, user:hunter2, xx:hunter2:x
            assert!((0..3).any(|n| whole.contains(&base64_inner(b"hunter2", n))), "{whole}");
        }
    }

    #[test]
    fn other_encodings() {
        assert!(forms("p@ss/w\"x").contains(&"p%40ss%2Fw%22x".to_owned()));
        assert!(forms("p@ss/w\"x").contains(&"p@ss/w\\\"x".to_owned()));
        assert!(forms("p'ssword").contains(&"p'\\''ssword".to_owned()));
        assert!(forms("p'ssword").contains(&"p'\"'\"'ssword".to_owned()));
    }
}
