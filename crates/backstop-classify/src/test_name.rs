//! The name of a failed test without what its runner prints around it, so that a test that is
//! printed several times is listed once.

/// What follows a name on the lines that belong to it.
const AFTER: &[&str] = &[" Failure/Error: ", " Assertion with ", " # features/"];
/// What stands before a name.
const BEFORE: &[&str] = &["Scenario: ", "Scenario Outline: "];

/// The name itself.
pub(crate) fn plain(name: &str) -> &str {
    let mut name = name.trim().trim_end_matches('─').trim_end();
    name = without_place(name);
    for before in BEFORE {
        name = name.strip_prefix(before).unwrap_or(name);
    }
    for after in AFTER {
        name = name.split_once(after).map_or(name, |(name, _)| name);
    }
    name = without_progress(without_location(name));
    // Some runners quote it in one place and not in the other.
    let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    quoted.filter(|name| !name.is_empty() && !name.contains('"')).unwrap_or(name).trim()
}

/// Without Playwright's `[chromium] > a.spec.ts:3:5 > ` before a name.
fn without_place(name: &str) -> &str {
    let is_project = |part: &str| part.starts_with('[') && part.ends_with(']');
    let rest = name.split_once(" > ").filter(|(first, _)| is_project(first)).map_or(name, |(_, rest)| rest);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_place = |part: &str| {
        let mut parts = part.rsplitn(3, ':');
        parts.next().is_some_and(is_number)
            && parts.next().is_some_and(is_number)
            && parts.next().is_some_and(|file| file.contains('.') && !file.contains(' '))
    };
    match rest.split_once(" > ") {
        Some((place, test)) if is_place(place) => test,
        _ => name,
    }
}

/// Without ExUnit's `test/x_test.exs:3 …` and Cucumber's `# pay.feature:6`, which follow a name.
fn without_location(name: &str) -> &str {
    for (mark, ending) in [(" ", ".exs:"), (" # ", ".feature:")] {
        if let Some(at) = name.find(ending)
            && let Some(start) = name[..at].rfind(mark)
            && name[at + ending.len()..].starts_with(|c: char| c.is_ascii_digit())
            && start > 0
        {
            return &name[..start];
        }
    }
    name
}

/// Without pytest's `FAILED   [ 50%]`.
fn without_progress(name: &str) -> &str {
    match name.rsplit_once(" FAILED ") {
        Some((before, after)) if after.trim().starts_with('[') && after.trim().ends_with("%]") => {
            before.trim_end()
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn one_test_has_one_name() {
        for (given, want) in [
            (
                "Calc.slug handles nil Failure/Error: expect(Calc.slug(nil)).to eq(\"\")",
                "Calc.slug handles nil",
            ),
            ("test raises (XTest) test/x_test.exs:6 ** (ArgumentError) bad", "test raises (XTest)"),
            ("\"mean\"", "mean"),
            ("home page > has title ─────────", "home page > has title"),
            ("[chromium] > a.spec.ts:3:5 > cart > adds", "cart > adds"),
            ("tests/a.spec.js:2:1 > lists items ────", "lists items"),
            ("Scenario: Voucher # features/pay.feature:6", "Voucher"),
            ("tests/a.py::test_div[9-3-4] FAILED                  [ 50%]", "tests/a.py::test_div[9-3-4]"),
        ] {
            assert_eq!(plain(given), want);
        }
        for same in [
            "says \"hi\" to \"you\"",
            "\"a\" and \"b\"",
            "TestTable/negative",
            "[slow] > adds",
            "a.test.ts > adds",
            "math::adds",
            "reads x.exs",
            "",
            "\"\"",
            "─ x",
            "it FAILED once",
        ] {
            assert_eq!(plain(same), same);
        }
    }
}
