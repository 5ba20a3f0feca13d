//! What explorers say, and whether enough of them have said it.
//!
//! Pure. An explorer answers with one JSON object that names its mode; what comes of all of them is
//! one object with a part for each. An answer with an error counts for nothing but its partial
//! data.

use serde_json::{Map, Value, json};

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
                json!({"framework": "none", "confidence": 0.0, "idioms": {"required": [], "forbidden": []}})
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
/// name no mode, are left out. The better status wins, and of two alike the later one.
pub fn aggregate(objective: Option<&str>, answers: &[String]) -> Value {
    let mut all = Map::new();
    let mut received = 0;
    for answer in answers.iter().filter_map(|text| extract_json(text)) {
        let Some(mode) = answer.get("mode").and_then(Value::as_str).and_then(Mode::from_name) else {
            continue;
        };
        received += 1;
        let part = normalised(mode, answer);
        let better = |known: &Value| rank(&part) >= rank(known);
        if all.get(mode.name()).is_none_or(better) {
            all.insert(mode.name().to_owned(), part);
        }
    }
    let mut out = Map::new();
    let found: Vec<&str> =
        Mode::ALL.iter().map(|mode| mode.name()).filter(|name| all.contains_key(*name)).collect();
    out.insert("_meta".to_owned(), json!({"objective": objective, "received": received, "modes": found}));
    for mode in Mode::ALL {
        if let Some(part) = all.remove(mode.name()) {
            out.insert(mode.name().to_owned(), part);
        }
    }
    Value::Object(out)
}

/// Whether an answer counts towards the quorum: it is an object of this mode, and no error.
pub fn counts(mode: Mode, text: &str) -> bool {
    extract_json(text).is_some_and(|answer| {
        answer.get("mode").and_then(Value::as_str) == Some(mode.name()) && rank(&normalised(mode, answer)) > 1
    })
}

fn rank(part: &Value) -> u8 {
    match part.get("status").and_then(Value::as_str) {
        Some("ok") => 3,
        Some("partial") => 2,
        Some("error") => 1,
        _ => 0,
    }
}

fn normalised(mode: Mode, answer: Value) -> Value {
    let Value::Object(mut part) = answer else { return Value::Null };
    part.remove("mode");
    if part.get("status").and_then(Value::as_str).is_none() {
        let status = if part.contains_key("error") { "error" } else { "ok" };
        part.insert("status".to_owned(), json!(status));
    }
    if let Some(error) = part.remove("error") {
        part.insert("_error".to_owned(), error);
    } else if part.get("status") == Some(&json!("error")) {
        part.entry("_error").or_insert_with(|| json!("unknown error"));
    }
    if let Value::Object(defaults) = mode.defaults() {
        for (name, value) in defaults {
            let known = part.entry(name).or_insert(Value::Null);
            if known.is_null() {
                *known = value;
            }
        }
    }
    if let Some(Value::Array(names)) = part.get("directories") {
        let named = names.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), json!(true)));
        let directories = named.collect::<Map<_, _>>();
        part.insert("directories".to_owned(), Value::Object(directories));
    }
    for list in ["candidates", "failures"] {
        if part.get(list).is_some_and(|value| !value.is_array()) {
            let only = part.remove(list).into_iter().filter(Value::is_object).collect();
            part.insert(list.to_owned(), Value::Array(only));
        }
    }
    Value::Object(part)
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
        assert_eq!(all["delta"]["status"], "ok");
        assert_eq!(all["memory"]["failures"][0]["name"], "a", "an error keeps its partial data");
        assert_eq!(all["memory"]["_error"], "unknown error");
        assert!(all.get("mood").is_none() && all.get("pattern").is_none());
        assert_eq!(all["_meta"]["objective"], "x");
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
