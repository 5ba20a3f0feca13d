//! Quotes the words of a command for a POSIX shell, and splits such lines again.
//!
//! For commands that people copy from a summary, lines that we recorded ourselves, and an agent's
//! command in one argument. It must not run anything: variables, globs and operators are text.

/// A word, quoted where needed.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+~".contains(c);
    // A tilde at the beginning would be expanded to a home folder.
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('~') {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A command line of quoted words.
pub fn line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The words of a line, quoted as a shell reads it: what [`line()`] wrote is read back. `None`
/// where a quote is not closed.
pub fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            c @ ('$' | '`' | '"' | '\\') => word.push(c),
                            '\n' => {}
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shell_would_read_the_same() {
        assert_eq!(line(["run", "a b.md", "it's", "", "--x=1"]), "run 'a b.md' 'it'\\''s' '' --x=1");
        assert_eq!(quoted("~/x"), "'~/x'");
        assert_eq!(words("'open"), None);
        assert_eq!(words("\"open"), None);
        let script = r#"sh -c "echo \"a b\" > \$X\n; it's" --x="1 2""#;
        assert_eq!(words(script).unwrap(), ["sh", "-c", r#"echo "a b" > $X\n; it's"#, "--x=1 2"]);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(given in prop::collection::vec(any::<String>(), 0..6)) {
            prop_assert_eq!(words(&line(&given)), Some(given));
        }
    }
}
