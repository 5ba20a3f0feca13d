//! What a narrowed run must have written for its pass to count.
//!
//! Most runners exit with 0 when no test has the name that they were given. That is no pass.

/// What the output must show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Proof {
    /// Nothing: the runner fails where it finds no test.
    None,
    /// `test NAME ... ok` for each.
    CargoOk(Vec<String>),
    /// `PASS [ 0.004s] binary NAME` for each.
    NextestPass(Vec<String>),
    /// `--- PASS: NAME (0.00s)` for each.
    GoPass(Vec<String>),
    /// `Tests: 2 passed, 2 total`: at least so many (jest, vitest).
    TestsPassed(usize),
    /// `2 passing`: at least so many (mocha).
    Passing(usize),
}

impl Proof {
    /// Whether this output shows it.
    pub(in super::super) fn holds(&self, text: &[u8]) -> bool {
        let text = without_colours(&String::from_utf8_lossy(text));
        let any = |fits: &dyn Fn(&str) -> bool| text.lines().map(str::trim).any(fits);
        match self {
            Proof::None => true,
            Proof::CargoOk(names) => names.iter().all(|name| {
                any(&|line| {
                    let rest = line.strip_prefix("test ").and_then(|rest| rest.strip_prefix(name.as_str()));
                    rest.is_some_and(|rest| rest.starts_with(" ... ok") || is_marked_ok(rest))
                })
            }),
            Proof::NextestPass(names) => names.iter().all(|name| {
                any(&|line| line.starts_with("PASS [") && line.split_whitespace().next_back() == Some(name))
            }),
            Proof::GoPass(names) => names.iter().all(|name| {
                any(&|line| {
                    let rest =
                        line.strip_prefix("--- PASS: ").and_then(|rest| rest.strip_prefix(name.as_str()));
                    rest.is_some_and(|rest| rest.starts_with(" ("))
                })
            }),
            Proof::TestsPassed(least) => any(&|line| {
                line.starts_with("Tests") && before(line, " passed").is_some_and(|count| count >= *least)
            }),
            Proof::Passing(least) => {
                any(&|line| before(line, " passing").is_some_and(|count| count >= *least))
            }
        }
    }
}

/// ` - should panic ... ok`, ` - compile ... ok`.
fn is_marked_ok(rest: &str) -> bool {
    rest.starts_with(" - ") && rest.contains(" ... ok")
}

/// The number that stands before a word.
pub(super) fn before(line: &str, word: &str) -> Option<usize> {
    let (head, _) = line.split_once(word)?;
    let from = head.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    head.get(from..)?.parse().ok()
}

/// The text without colours.
pub(super) fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split("\x1b[");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        out.push_str(&part[end..]);
    }
    out
}
