//! Words of lines and of names.

/// Whether `word` stands in a lower-case line with no letter before or after it.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    position(line, word).is_some()
}

/// Where `word` stands in a lower-case line, with no letter before or after it.
pub(super) fn position(line: &str, word: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    line.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = at.checked_sub(1).and_then(|n| bytes.get(n));
        let after = bytes.get(at + word.len());
        !before.is_some_and(u8::is_ascii_alphanumeric) && !after.is_some_and(u8::is_ascii_alphanumeric)
    })
}

/// Whether any of these words is there.
pub(super) fn has_any(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| has_word(line, word))
}

/// The words of a name in camel case or snake case, in lower case: `NoSuchFileException` and
/// `no_such_file_exception` are the same.
pub(super) fn of_name(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let starts = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || letters.peek().is_some_and(char::is_ascii_lowercase));
        if !letter.is_ascii_alphanumeric() {
            before = ' ';
            continue;
        }
        if starts || !before.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    words
}

/// The number that begins at `text`, and what follows it.
pub(super) fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        assert_eq!(of_name("NoSuchFileException"), ["no", "such", "file", "exception"]);
        assert_eq!(of_name("SSLCertVerificationError"), ["ssl", "cert", "verification", "error"]);
        assert_eq!(of_name("connection_refused_error"), ["connection", "refused", "error"]);
        assert_eq!(of_name("java.net.UnknownHostException").last().unwrap(), "exception");
        assert!(of_name("").is_empty());
    }

    #[test]
    fn a_word_is_not_a_part_of_one() {
        assert!(has_word("no such file", "file") && !has_word("profiles", "file"));
        assert_eq!(number("127: x"), Some((127, ": x")));
        assert_eq!(number("x"), None);
    }
}
