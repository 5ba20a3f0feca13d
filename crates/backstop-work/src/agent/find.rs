//! Finds the result in whatever an agent wrote.
//!
//! One pass over the text, however hostile it is, remembers where objects with a `phase_id` begin
//! and end. Only the last few of them are read as JSON, last first. So prose with braces, an echoed
//! template, another phase's result and trailing braces do no harm, and `{{{{…` costs no more than
//! any other text.

use super::envelope::Envelope;
use super::trouble::ResultTrouble;
use serde_json::Value;
use std::collections::VecDeque;

/// The largest object that is read.
pub const OBJECT_BYTES_MAX: usize = 1 << 20;
/// How deep objects may lie in each other; of deeper ones, the innermost are seen.
const DEPTH_MAX: usize = 64;
/// How many objects are read, counted from the last: what bounds the work whatever the text.
const CANDIDATES_MAX: usize = 16;
/// The key that makes an object worth reading.
const KEY: &[u8] = b"phase_id";

/// The last object of the text that is a valid result of this phase, or what is wrong with the
/// closest to one.
pub fn find_result(text: &[u8], phase_key: &str) -> Result<Envelope, ResultTrouble> {
    let mut trouble = ResultTrouble::Missing;
    for (from, to) in candidates(text).into_iter().rev() {
        let found = match &text[from..to] {
            large if large.len() > OBJECT_BYTES_MAX => {
                Err(ResultTrouble::invalid("result", format!("is larger than {OBJECT_BYTES_MAX} bytes")))
            }
            object => read(object, phase_key),
        };
        match found {
            Ok(envelope) => return Ok(envelope),
            // The last of those that are equally close.
            Err(other) if other.closeness() > trouble.closeness() => trouble = other,
            Err(_) => {}
        }
    }
    Err(trouble)
}

fn read(object: &[u8], phase_key: &str) -> Result<Envelope, ResultTrouble> {
    match serde_json::from_slice(object) {
        Ok(Value::Object(fields)) => Envelope::read(&fields, phase_key),
        Ok(_) => Err(ResultTrouble::Missing),
        Err(error) => Err(ResultTrouble::invalid("result", format!("is no JSON: {error}"))),
    }
}

/// An object that has begun.
struct Open {
    from: usize,
    has_key: bool,
}

/// Where objects with the key begin and end, in the order of their ends.
fn candidates(text: &[u8]) -> VecDeque<(usize, usize)> {
    let mut found = VecDeque::new();
    let mut open: VecDeque<Open> = VecDeque::new();
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            // What is no object at the first look is not followed: prose and code are full of
            // braces.
            b'{' if begins_object(text, at + 1) => {
                if open.len() == DEPTH_MAX {
                    open.pop_front();
                }
                open.push_back(Open { from: at, has_key: false });
            }
            b'}' => {
                if let Some(closed) = open.pop_back().filter(|o| o.has_key) {
                    if found.len() == CANDIDATES_MAX {
                        found.pop_front();
                    }
                    found.push_back((closed.from, at + 1));
                }
            }
            // Outside of objects a quotation mark means nothing.
            b'"' => {
                if let Some(top) = open.back_mut() {
                    let end = string_end(text, at + 1);
                    top.has_key |= &text[at + 1..end] == KEY;
                    at = end;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Whether what follows a brace can be the inside of an object. It looks no further than a few
/// blanks.
fn begins_object(text: &[u8], from: usize) -> bool {
    const BLANKS_MAX: usize = 256;
    let mut rest = text[from..].iter().take(BLANKS_MAX);
    rest.find(|b| !b.is_ascii_whitespace()).is_some_and(|b| matches!(b, b'"' | b'}'))
}

/// Where a string ends. At the end of the line at the latest: no JSON string goes over one, prose
/// does.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < text.len() {
        match text[at] {
            b'"' | b'\n' => return at,
            b'\\' if text.get(at + 1) != Some(&b'\n') => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Claim;
    use proptest::prelude::*;

    const OURS: &str = r#"{"phase_id":"2a","status":"complete"}"#;
    const FAILED: &str =
        r#"{"phase_id":"Phase 2A","status":"failed","error":{"type":"test_failure","message":"a } b {"}}"#;
    const OTHER: &str = r#"{"phase_id":"3","status":"complete"}"#;

    fn found(text: &str) -> Result<Claim, ResultTrouble> {
        find_result(text.as_bytes(), "2a").map(|e| e.status)
    }

    #[test]
    fn the_last_valid_result_of_this_phase_is_found_whatever_stands_around_it() {
        let complete = [
            OURS.to_owned(),
            format!("```json\n{OURS}\n```\nDone."),
            format!("{OURS}}}}}}}"),
            format!("{{ it's 5\" wide {OURS}"),
            format!("fn main() {{ println!(\"{{}}\") }}\n{OURS}\n"),
            format!("{{\"unclosed\": \"and then\n{OURS}"),
            format!("{FAILED}\n{OURS}\n{OTHER}"),
            format!("{{\"result\": {OURS}, \"more\": {{}}}}"),
            r#"{"phase_id":"2a","quality_gates": {},"status":"complete", "files": { }}"#.to_owned(),
            format!("{OURS}\n{{\"phase_id\": \"2a\", \"status\": \"complete\" | \"failed\"}}"),
            "{\n  \"files\": {\"created\": [\"{odd\\\".rs\"]},\n  \"phase_id\": \"2A\",\n  \"status\": \"complete\"\n}".to_owned(),
        ];
        for text in complete {
            assert_eq!(found(&text), Ok(Claim::Complete), "{text}");
        }
        assert_eq!(found(&format!("{OURS} {FAILED}")), Ok(Claim::Failed));
    }

    #[test]
    fn otherwise_the_closest_says_what_is_wrong() {
        assert_eq!(found(""), Err(ResultTrouble::Missing));
        assert_eq!(found("{\"status\":\"complete\"} done"), Err(ResultTrouble::Missing));
        assert_eq!(found(OTHER), Err(ResultTrouble::OtherPhase("3".into())));
        let cases = [
            (format!("{{\"phase_id\":\"2a\",\"status\":\"done\"}} {OTHER}"), "status"),
            ("{\"phase_id\": \"2a\", \"status\": \"complete\" | \"failed\"}".to_owned(), "result"),
            (format!("{{\"phase_id\":\"2a\",\"x\":\"{}\"}}", "y".repeat(OBJECT_BYTES_MAX)), "result"),
        ];
        for (text, want) in cases {
            match found(&text) {
                Err(ResultTrouble::Invalid { field, .. }) => assert_eq!(field, want),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_torn_result_is_none() {
        assert_eq!(found(&OURS[..OURS.len() - 1]), Err(ResultTrouble::Missing));
        assert_eq!(
            found("{\"phase_id\":\"2a\",\"status\":\"comp\nlete\"}"),
            found("{\"phase_id\":\"2a\",\"status\":\"comp\n\"}")
        );
    }

    /// What is not linear takes minutes here.
    #[test]
    fn four_megabytes_of_hostile_nesting_are_read_in_one_go() {
        let size = 4 << 20;
        let fill = |piece: &str| piece.repeat(size / piece.len());
        let nested = |n: usize| format!("{}1{}", "{\"phase_id\":".repeat(n), "}".repeat(n));
        let wide =
            format!("{}{}0", "{\"phase_id\":\"2a\",\"x\":[".repeat(60), "{\"a\":[1,1]},".repeat(80_000));
        let texts = [
            fill("{"),
            fill("{\""),
            fill("{\"phase_id\":"),
            fill("{\"phase_id\":\"2a\",\"a\":["),
            fill("{ "),
            fill("\\\"{\"phase_id\""),
            fill("}"),
            fill("{\"phase_id\":\"2a\"}"),
            nested(250_000),
            format!("{wide}{}", "]}".repeat(60)),
        ];
        for text in texts {
            assert!(found(&text).is_err());
            assert_eq!(found(&format!("{text}\n{OURS}")), Ok(Claim::Complete));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = find_result(&text, "2a");
        }

        #[test]
        fn a_result_on_lines_of_its_own_is_found(before in "[ -~\n]{0,200}", after in "[ -~\n]{0,80}") {
            prop_assume!(!after.contains("phase_id"));
            // What opens before and never closes does not hide it; a string cannot go over a line.
            let text = format!("{before}\n{OURS}\n{after}");
            prop_assert_eq!(found(&text), Ok(Claim::Complete));
        }

        #[test]
        fn braces_and_marks_do_not_hide_it(before in "[{}\"\\\\:,a \n]{0,60}") {
            prop_assert_eq!(found(&format!("{before}\n{OURS}")), Ok(Claim::Complete));
        }
    }
}
