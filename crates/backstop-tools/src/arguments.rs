//! Checks the arguments of a call against the tool's JSON Schema, before anything is sent.
//!
//! Drafts 7 and 2020-12 are understood, by what `$schema` says. A `$ref` to anything outside the
//! schema is not fetched: such a schema, and one that is broken, is not checked here, and the
//! server has the last word.

use backstop_core::SafeText;
use backstop_report::Param;
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many parameters are shown as expected.
const EXPECTED_MAX: usize = 40;
/// How many values of an enum are shown.
const ENUM_MAX: usize = 8;
/// How deep types are spelt out.
const TYPE_DEPTH_MAX: usize = 3;
/// How many other problems are told.
const PROBLEMS_MAX: usize = 5;

/// A schema that arguments can be checked against.
#[derive(Debug)]
pub(crate) struct Schema(Validator);

impl Schema {
    /// Reads a tool's schema. An error says why it cannot be used.
    pub(crate) fn read(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("it is not an object".to_owned());
        }
        let takes_objects = |kind: &Value| match kind {
            Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
            kind => kind == "object",
        };
        if !schema.get("type").is_none_or(takes_objects) {
            return Err("it is not the schema of an object".to_owned());
        }
        let options = jsonschema::options().with_retriever(Nothing);
        options.build(schema).map(Self).map_err(|error| error.to_string())
    }

    /// What is wrong with these arguments; nothing where they fit.
    pub(crate) fn check(&self, schema: &Value, arguments: &Value) -> Option<Mismatch> {
        if self.0.is_valid(arguments) {
            return None;
        }
        let mut found = Mismatch { expected: expected(schema), ..Mismatch::default() };
        for error in self.0.iter_errors(arguments) {
            let path = error.instance_path().to_string();
            let at = |name: &str| dotted(&format!("{path}/{name}"));
            match error.kind() {
                ValidationErrorKind::Required { property } => {
                    found.missing.insert(at(property.as_str().unwrap_or_default()));
                }
                ValidationErrorKind::AdditionalProperties { unexpected }
                | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                    found.unknown.extend(unexpected.iter().map(|name| at(name)));
                }
                ValidationErrorKind::Type { .. } if !path.is_empty() => {
                    found.mistyped.insert((dotted(&path), type_of(error.instance()).to_owned()));
                }
                _ if found.problems.len() < PROBLEMS_MAX => {
                    let place = if path.is_empty() { String::new() } else { format!("{}: ", dotted(&path)) };
                    let text: String = error.masked_with("the value").to_string().chars().take(300).collect();
                    found.problems.push(format!("{place}{text}"));
                }
                _ => {}
            }
        }
        Some(found)
    }
}

/// Fetches nothing.
struct Nothing;

impl jsonschema::Retrieve for Nothing {
    fn retrieve(
        &self,
        _: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing outside the schema is fetched".into())
    }
}

/// What is wrong with the arguments of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Required parameters that are missing.
    pub(crate) missing: BTreeSet<String>,
    /// Parameters of the wrong type: name and type that was given.
    pub(crate) mistyped: BTreeSet<(String, String)>,
    /// Parameters that the tool does not know.
    pub(crate) unknown: BTreeSet<String>,
    /// Other problems, in words that contain no value.
    pub(crate) problems: Vec<String>,
    /// The parameters that are expected: name, with `?` where it is optional, and type.
    pub(crate) expected: Vec<(String, String)>,
}

impl Mismatch {
    /// In one line.
    pub(crate) fn summary(&self) -> String {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if !self.missing.is_empty() {
            parts.push(format!("missing: {}", list(&self.missing)));
        }
        if !self.mistyped.is_empty() {
            let all: Vec<String> =
                self.mistyped.iter().map(|(name, kind)| format!("{name} is {kind}")).collect();
            parts.push(format!("mistyped: {}", all.join(", ")));
        }
        if !self.unknown.is_empty() {
            parts.push(format!("unknown: {}", list(&self.unknown)));
        }
        parts.extend(self.problems.iter().cloned());
        parts.join("; ")
    }

    pub(crate) fn expected_params(&self) -> Vec<Param> {
        params(&self.expected)
    }
}

/// Names and types as a notice shows them.
pub(crate) fn params(pairs: &[(String, String)]) -> Vec<Param> {
    let param = |(name, kind): &(String, String)| Param {
        name: SafeText::new(name.as_str()),
        kind: SafeText::new(kind.as_str()),
    };
    pairs.iter().map(param).collect()
}

/// A JSON Pointer as people write it: `labels.0.name`.
fn dotted(pointer: &str) -> String {
    let parts: Vec<String> = pointer
        .trim_start_matches('/')
        .split('/')
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    parts.join(".")
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The parameters of a tool: those that are required first, `?` after those that are not.
pub(crate) fn expected(schema: &Value) -> Vec<(String, String)> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let is_required = |name: &str| required.contains(&name);
    let one = |(name, kind): (&String, &Value)| {
        let mark = if is_required(name) { "" } else { "?" };
        (format!("{name}{mark}"), type_words(kind, schema, 0))
    };
    let mut all: Vec<(String, String)> =
        properties.iter().filter(|(name, _)| is_required(name)).map(one).collect();
    all.extend(properties.iter().filter(|(name, _)| !is_required(name)).map(one));
    all.truncate(EXPECTED_MAX);
    all
}

/// The type of a parameter: `string`, `string[]`, `"a" | "b"`.
fn type_words(kind: &Value, root: &Value, depth: usize) -> String {
    if depth > TYPE_DEPTH_MAX {
        return "object".to_owned();
    }
    if let Some(target) = kind.get("$ref").and_then(Value::as_str) {
        let inner = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return inner.map_or_else(|| "any".to_owned(), |inner| type_words(inner, root, depth + 1));
    }
    if let Some(options) = kind.get("enum").and_then(Value::as_array) {
        let shown: Vec<String> = options.iter().take(ENUM_MAX).map(ToString::to_string).collect();
        let more = if options.len() > ENUM_MAX { " | …" } else { "" };
        return format!("{}{more}", shown.join(" | "));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = kind.get(key).and_then(Value::as_array) {
            let mut shown: Vec<String> =
                options.iter().take(ENUM_MAX).map(|option| type_words(option, root, depth + 1)).collect();
            shown.dedup();
            return shown.join(" | ");
        }
    }
    match kind.get("type") {
        Some(Value::String(name)) if name == "array" => {
            let item = kind.get("items").map(|items| type_words(items, root, depth + 1));
            let item = item.unwrap_or_else(|| "any".to_owned());
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn issue(draft: &str) -> Value {
        json!({
            "$schema": draft,
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "body": { "type": "string" },
                "labels": { "type": "array", "items": { "type": "string" } },
                "state": { "enum": ["open", "closed"] },
                "where": { "$ref": "#/definitions/place" },
            },
            "definitions": { "place": { "type": ["string", "null"] } },
            "required": ["title"],
            "additionalProperties": false,
        })
    }

    const DRAFTS: &[&str] =
        &["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"];

    #[test]
    fn missing_mistyped_unknown_and_expected_in_both_drafts() {
        for draft in DRAFTS {
            let schema = issue(draft);
            let read = Schema::read(&schema).unwrap();
            assert_eq!(read.check(&schema, &json!({ "title": "x", "labels": ["a"] })), None);
            let wrong = read.check(&schema, &json!({ "body": 5, "lables": [], "labels": ["a", 1] })).unwrap();
            assert_eq!(
                wrong.summary(),
                "missing: title; mistyped: body is a number, labels.1 is a number; unknown: lables"
            );
            let expected: Vec<String> =
                wrong.expected.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
            assert_eq!(
                expected,
                [
                    "title: string",
                    "body?: string",
                    "labels?: string[]",
                    "state?: \"open\" | \"closed\"",
                    "where?: string | null"
                ]
            );
        }
    }

    #[test]
    fn a_value_is_not_told() {
        let schema = json!({ "properties": { "state": { "enum": ["open"] }, "n": { "maximum": 3 } } });
        let wrong =
            Schema::read(&schema).unwrap().check(&schema, &json!({ "state": "canary", "n": 99 })).unwrap();
        assert!(wrong.problems.len() == 2 && !wrong.summary().contains("canary"), "{wrong:?}");
    }

    #[test]
    fn a_ref_fetches_nothing_and_a_broken_schema_is_said() {
        for schema in [
            json!({ "$ref": "http://127.0.0.1:9/x.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "properties": { "a": { "$ref": "#/nowhere" } } }),
            json!({ "type": 5 }),
            json!(true),
        ] {
            assert!(Schema::read(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let schema = json!({ "properties": { "a": { "pattern": "^(a+)+$" } } });
        let read = Schema::read(&schema).unwrap();
        assert!(read.check(&schema, &json!({ "a": format!("{}b", "a".repeat(5000)) })).is_some());
    }

    proptest! {
        #[test]
        fn what_fits_is_let_through_and_what_is_missing_is_named(names in prop::collection::btree_set("[a-z]{1,8}", 1..6), gone in 0usize..6) {
            let names: Vec<String> = names.into_iter().collect();
            let properties: serde_json::Map<String, Value> = names.iter().map(|name| (name.clone(), json!({ "type": "integer" }))).collect();
            let schema = json!({ "type": "object", "properties": properties, "required": names });
            let read = Schema::read(&schema).unwrap();
            let mut given: serde_json::Map<String, Value> = names.iter().map(|name| (name.clone(), json!(1))).collect();
            prop_assert_eq!(read.check(&schema, &Value::Object(given.clone())), None);
            let gone = &names[gone % names.len()];
            given.remove(gone);
            let wrong = read.check(&schema, &Value::Object(given)).unwrap();
            prop_assert_eq!(wrong.missing.into_iter().collect::<Vec<_>>(), vec![gone.clone()]);
        }
    }
}
