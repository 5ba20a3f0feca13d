//! What explorers say, and whether enough of them have said it.
//!
//! Pure. An explorer answers with one JSON object that names its mode; what comes of all of them is
//! one object with a part for each. An answer with an error counts for nothing but its partial
//! data.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How many explorers must have answered.
pub const QUORUM: usize = 3;
/// How many opening braces of a text are tried as the start of an object.
const BRACES_MAX: usize = 1000;

/// What an explorer looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs)] // Their names say it.
pub enum Mode {
    Structure,
    Pattern,
    Memory,
    Delta,
}

impl Mode {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Mode; 4] = [Mode::Structure, Mode::Pattern, Mode::Memory, Mode::Delta];

    /// The name in answers and nodes.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Structure => "structure",
            Mode::Pattern => "pattern",
            Mode::Memory => "memory",
            Mode::Delta => "delta",
        }
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// What an answer has, where it does not say otherwise.
    fn defaults(self) -> Value {
        match self {
            Mode::Structure => json!({"directories": {}, "entry_points": [], "test_pattern": null}),
            Mode::Pattern => {
                json!({"framework": "none", "confidence": 0.5, "idioms": {"required": [], "forbidden": []}})
            }
            Mode::Memory => json!({"failures": [], "patterns": []}),
            Mode::Delta => json!({"candidates": []}),
        }
    }
}

/// Whether exploring is over, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs)]
pub enum Quorum {
    AllComplete,
    QuorumMet,
    Timeout,
    QuorumFailure,
    Waiting,
}

impl Quorum {
    /// All of them.
    pub const ALL: [Quorum; 5] =
        [Quorum::AllComplete, Quorum::QuorumMet, Quorum::Timeout, Quorum::QuorumFailure, Quorum::Waiting];

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Quorum::AllComplete => "all_complete",
            Quorum::QuorumMet => "quorum_met",
            Quorum::Timeout => "timeout",
            Quorum::QuorumFailure => "quorum_failure",
            Quorum::Waiting => "waiting",
        }
    }

    /// Where exploring stands when `completed` of all explorers have answered and `required` must.
    pub fn of(completed: usize, required: usize, timed_out: bool) -> Self {
        match completed {
            n if n >= Mode::ALL.len() => Quorum::AllComplete,
            n if n >= required => Quorum::QuorumMet,
            0 if timed_out => Quorum::QuorumFailure,
            _ if timed_out => Quorum::Timeout,
            _ => Quorum::Waiting,
        }
    }

    /// What a campaign makes of it once no explorer is left to wait for: partial data counts from
    /// the quorum on, fewer answers are a failure.
    pub fn of_campaign(completed: usize, timed_out: bool) -> Self {
        match completed {
            n if n >= Mode::ALL.len() => Quorum::AllComplete,
            n if n >= QUORUM && timed_out => Quorum::Timeout,
            n if n >= QUORUM => Quorum::QuorumMet,
            _ => Quorum::QuorumFailure,
        }
    }
}

/// What all explorers said, as one object. Each text is one answer; those that are no object, or
/// name no mode, are left out. The better status wins, and of two alike the later one, unless only
/// the earlier one has the fields of its mode.
pub fn aggregate(objective: Option<&str>, answers: &[String]) -> Value {
    let mut all: BTreeMap<Mode, Part> = BTreeMap::new();
    let mut received = 0;
    for part in answers.iter().filter_map(|text| Part::read(text)) {
        received += 1;
        if all.get(&part.mode).is_none_or(|known| part.is_better_than(known)) {
            all.insert(part.mode, part);
        }
    }
    let mut out = Map::new();
    let found: Vec<&str> = all.keys().map(|mode| mode.name()).collect();
    out.insert("_meta".to_owned(), json!({"objective": objective, "received": received, "modes": found}));
    out.extend(all.into_iter().map(|(mode, part)| (mode.name().to_owned(), Value::Object(part.fields))));
    Value::Object(out)
}

/// Whether an answer counts towards the quorum: it is an object of this mode, and no error.
pub fn counts(mode: Mode, text: &str) -> bool {
    Part::read(text).is_some_and(|part| part.mode == mode && part.status >= AnswerStatus::Partial)
}

/// The status of an answer, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AnswerStatus {
    /// None, or one that nobody knows: an error.
    Unknown,
    Error,
    Partial,
    Ok,
}

impl AnswerStatus {
    fn of(answer: &Map<String, Value>) -> Self {
        match answer.get("status").and_then(Value::as_str) {
            Some("ok") => AnswerStatus::Ok,
            Some("partial") => AnswerStatus::Partial,
            Some("error") => AnswerStatus::Error,
            _ => AnswerStatus::Unknown,
        }
    }
}

/// What one explorer said.
struct Part {
    mode: Mode,
    status: AnswerStatus,
    /// Whether the fields of its mode are what they should be.
    is_valid: bool,
    fields: Map<String, Value>,
}

impl Part {
    fn read(text: &str) -> Option<Self> {
        let Some(Value::Object(mut fields)) = extract_json(text) else { return None };
        let mode = fields.get("mode").and_then(Value::as_str).and_then(Mode::from_name)?;
        let status = AnswerStatus::of(&fields);
        if status <= AnswerStatus::Error {
            fields.insert("status".to_owned(), json!("error"));
            let error = fields.remove("error").filter(|error| !error.is_null());
            if let Some(error) = error {
                fields.insert("_error".to_owned(), error);
            }
            fields.entry("_error").or_insert_with(|| json!("unknown error"));
        }
        coerce(mode, &mut fields);
        let is_valid = has_its_fields(mode, &fields);
        Some(Self { mode, status, is_valid, fields })
    }

    fn is_better_than(&self, known: &Self) -> bool {
        (self.status, self.is_valid) >= (known.status, known.is_valid)
    }
}

/// Gives an answer the fields of its mode, in their form where that can be told.
fn coerce(mode: Mode, fields: &mut Map<String, Value>) {
    if let Value::Object(defaults) = mode.defaults() {
        for (name, value) in defaults {
            let known = fields.entry(name).or_insert(Value::Null);
            if known.is_null() {
                *known = value;
            }
        }
    }
    for (name, field) in fields.iter_mut() {
        match name.as_str() {
            "directories" if field.is_array() => {
                let names = field.as_array().into_iter().flatten().filter_map(Value::as_str);
                *field = Value::Object(names.map(|name| (name.to_owned(), json!(true))).collect());
            }
            "framework" if field.is_number() || field.is_boolean() => *field = json!(field.to_string()),
            "confidence" => {
                if let Some(number) = field.as_str().and_then(|text| text.trim().parse::<f64>().ok()) {
                    *field = json!(number);
                }
            }
            // One thing is a list of one.
            "candidates" | "failures" if !field.is_array() => {
                let only = Some(field.take()).filter(|only| !is_empty(only));
                *field = Value::Array(only.into_iter().collect());
            }
            _ => {}
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) | Value::Array(_) => false,
    }
}

fn has_its_fields(mode: Mode, fields: &Map<String, Value>) -> bool {
    let has = |name: &str, is_it: fn(&Value) -> bool| fields.get(name).is_some_and(is_it);
    match mode {
        Mode::Structure => has("directories", Value::is_object),
        Mode::Pattern => has("framework", Value::is_string) && has("confidence", Value::is_number),
        Mode::Delta => has("candidates", Value::is_array),
        Mode::Memory => true,
    }
}

/// The first JSON object in a text: the whole of it, in a fence, or with words around it.
pub fn extract_json(text: &str) -> Option<Value> {
    let whole = serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_object);
    whole.or_else(|| objects(text).next())
}

/// All JSON objects in a text, outermost ones only, in order.
pub(crate) fn objects(text: &str) -> impl Iterator<Item = Value> + '_ {
    let (mut from, mut tried) = (0, 0);
    std::iter::from_fn(move || {
        while let Some(at) = text[from..].find('{').map(|at| from + at).filter(|_| tried < BRACES_MAX) {
            tried += 1;
            let mut read = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
            if let Some(Ok(value @ Value::Object(_))) = read.next() {
                from = at + read.byte_offset();
                return Some(value);
            }
            from = at + 1;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(lines: &[&str]) -> Value {
        aggregate(Some("x"), &lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_better_status_wins_and_unknown_modes_are_left_out() {
        let all = answers(&[
            r#"{"mode":"structure","status":"partial","directories":["lib","src"]}"#,
            r#"{"mode":"structure","status":"error","error":"boom"}"#,
            r#"{"mode":"mood","status":"ok"}"#,
            "nothing",
            "Here it is:\n```json\n{\"mode\":\"delta\"}\n```\nbye",
            r#"{"mode":"memory","status":"error","failures":[{"name":"a"}]}"#,
        ]);
        assert_eq!(all["structure"]["directories"], json!({"lib": true, "src": true}));
        assert_eq!(all["structure"]["status"], "partial");
        assert_eq!(all["delta"]["candidates"], json!([]));
        assert_eq!(
            (all["delta"]["status"].clone(), all["delta"]["_error"].clone()),
            (json!("error"), json!("unknown error"))
        );
        assert_eq!(all["memory"]["failures"][0]["name"], "a", "an error keeps its partial data");
        assert_eq!(all["memory"]["_error"], "unknown error");
        assert!(all.get("mood").is_none() && all.get("pattern").is_none());
        assert_eq!(all["_meta"]["objective"], "x");
    }

    #[test]
    fn a_status_that_is_missing_or_unknown_is_an_error_and_beats_nothing() {
        for status in ["", r#","status":"great""#, r#","status":1"#, r#","error":"boom""#] {
            let late = format!(r#"{{"mode":"pattern"{status},"framework":"x"}}"#);
            let early = r#"{"mode":"pattern","status":"partial","framework":"y","confidence":0.9}"#;
            for order in [[early, late.as_str()], [late.as_str(), early]] {
                let all = answers(&order);
                assert_eq!(
                    (&all["pattern"]["status"], &all["pattern"]["framework"]),
                    (&json!("partial"), &json!("y"))
                );
            }
            assert!(!counts(Mode::Pattern, &late), "{late}");
            let alone = answers(&[&late])["pattern"].clone();
            let error = if status.contains("boom") { "boom" } else { "unknown error" };
            assert_eq!((&alone["status"], &alone["_error"]), (&json!("error"), &json!(error)), "{late}");
            assert_eq!((&alone["framework"], &alone["confidence"]), (&json!("x"), &json!(0.5)));
            let known = r#"{"mode":"pattern","status":"error","error":"known"}"#;
            assert_eq!(answers(&[known, &late])["pattern"]["_error"], "known");
        }
    }

    #[test]
    fn of_two_alike_the_later_one_wins_unless_it_is_invalid() {
        let of = |mode: &str, fields: &str| format!(r#"{{"mode":"{mode}","status":"ok",{fields}}}"#);
        for (mode, field, good, better, junk) in [
            ("structure", "directories", json!({"a": true}), json!({"b": true}), json!("junk")),
            ("pattern", "confidence", json!(0.2), json!(0.9), json!("high")),
        ] {
            let line = |value: &Value| of(mode, &format!("\"{field}\":{value}"));
            let last = |lines: [&Value; 2]| answers(&[&line(lines[0]), &line(lines[1])])[mode][field].clone();
            assert_eq!(last([&good, &better]), better);
            assert_eq!(last([&good, &junk]), good);
            assert_eq!(last([&junk, &good]), good);
            assert_eq!(last([&junk, &junk]), junk, "what was said is kept all the same");
        }
        let status = |first: &str, second: &str| {
            let of = |status: &str, dir: &str| {
                format!(r#"{{"mode":"structure","status":"{status}","directories":{dir}}}"#)
            };
            answers(&[&of(first, r#"{"a":true}"#), &of(second, r#""junk""#)])["structure"]["status"].clone()
        };
        assert_eq!(status("partial", "ok"), "ok", "a better status counts more than its fields");
    }

    #[test]
    fn fields_take_the_form_of_their_mode_and_the_mode_stays() {
        let candidates = |given: &Value| {
            answers(&[&json!({"mode": "delta", "status": "ok", "candidates": given}).to_string()])["delta"]
                .clone()
        };
        for (given, found) in [
            (json!("a.py"), json!(["a.py"])),
            (json!({"path": "a.py"}), json!([{"path": "a.py"}])),
            (json!(["a.py"]), json!(["a.py"])),
            (json!(null), json!([])),
            (json!(""), json!([])),
        ] {
            assert_eq!(candidates(&given)["candidates"], found);
        }
        assert_eq!(candidates(&json!([]))["mode"], "delta");
        let pattern = answers(&[r#"{"mode":"pattern","status":"ok","confidence":"0.8"}"#])["pattern"].clone();
        assert_eq!((&pattern["confidence"], &pattern["framework"]), (&json!(0.8), &json!("none")));
    }

    #[test]
    fn an_error_does_not_count_towards_the_quorum() {
        assert!(counts(Mode::Delta, r#"{"mode":"delta","status":"ok"}"#));
        assert!(counts(Mode::Delta, r#"{"mode":"delta","status":"partial"}"#));
        assert!(!counts(Mode::Delta, r#"{"mode":"delta","status":"error"}"#));
        assert!(!counts(Mode::Delta, r#"{"mode":"delta","error":"x"}"#));
        assert!(!counts(Mode::Delta, r#"{"mode":"memory","status":"ok"}"#));
        assert!(!counts(Mode::Delta, "garbage"));
    }

    #[test]
    fn a_campaign_needs_three() {
        use Quorum::*;
        let seen = |timed_out| (0..=4).map(|n| Quorum::of_campaign(n, timed_out)).collect::<Vec<_>>();
        assert_eq!(seen(false), [QuorumFailure, QuorumFailure, QuorumFailure, QuorumMet, AllComplete]);
        assert_eq!(seen(true), [QuorumFailure, QuorumFailure, QuorumFailure, Timeout, AllComplete]);
        let asked: Vec<Quorum> = (0..=4).map(|n| Quorum::of(n, 3, true)).collect();
        assert_eq!(asked, [QuorumFailure, Timeout, Timeout, QuorumMet, AllComplete]);
        assert_eq!(Quorum::of(2, 3, false), Waiting);
    }

    #[test]
    fn objects_are_found_in_any_text() {
        assert_eq!(extract_json("no { object here }"), None);
        assert_eq!(extract_json("a {b} {\"c\": {\"d\": 1}} e {\"f\": 2}"), Some(json!({"c": {"d": 1}})));
        assert_eq!(extract_json(""), None);
        assert_eq!(extract_json("[1, 2]"), None);
    }
}
