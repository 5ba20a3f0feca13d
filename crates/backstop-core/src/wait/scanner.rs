//! A reader that walks over one line: numbers, words and signs, each taken only where it fits.

/// A place in a text. Copying it remembers the place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next character, which stays.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes this character if it is next.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes a word of letters, whole.
    pub(super) fn letters(&mut self) -> Option<&'t str> {
        let end = self.rest.find(|c: char| !c.is_alphabetic()).unwrap_or(self.rest.len());
        (end > 0).then(|| self.take(end))
    }

    /// Takes the next word, after spaces, if it is one of these, in any case.
    pub(super) fn word(&mut self, wanted: &[&str]) -> bool {
        let mut ahead = *self;
        ahead.spaces();
        let found = ahead.letters().is_some_and(|word| wanted.iter().any(|w| w.eq_ignore_ascii_case(word)));
        if found {
            *self = ahead;
        }
        found
    }

    /// Takes digits, with their number.
    pub(super) fn digits(&mut self) -> Option<&'t str> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        (end > 0).then(|| self.take(end))
    }

    /// Takes a number of at most `len` digits.
    pub(super) fn integer(&mut self, len: usize) -> Option<i64> {
        let mut ahead = *self;
        let value = ahead.digits().filter(|digits| digits.len() <= len)?.parse().ok()?;
        *self = ahead;
        Some(value)
    }

    /// Takes a number with or without a fraction.
    pub(super) fn number(&mut self) -> Option<f64> {
        let from = self.rest;
        let whole = self.digits()?.len();
        let mut len = whole;
        let mut ahead = *self;
        if ahead.eat('.')
            && let Some(fraction) = ahead.digits()
        {
            len += 1 + fraction.len();
            *self = ahead;
        }
        from[..len].parse().ok()
    }

    fn take(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }
}
