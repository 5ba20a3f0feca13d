//! Definitions of tools, prompts and resources as every client accepts them.
//!
//! Clients check a list as a whole: a single member of the wrong kind, in one definition of one
//! server, costs them the tools of all servers. So members of the wrong kind are left out here, and
//! a schema that is none becomes one that takes any arguments. Members that the protocol does not
//! know pass.

use crate::protocol::Era;
use Kind::{Flag, List, Members, Number, Object, Text, Word};
use serde_json::{Map, Value, json};

/// Of what kind a member has to be.
enum Kind {
    Text,
    /// One of these texts.
    Word(&'static [&'static str]),
    Flag,
    Number,
    /// An object with any members.
    Object,
    /// A list of these; others are left out.
    List(&'static Kind),
    /// An object with these members, and maybe others: those that it has to have, and the rest.
    Members {
        needed: &'static [(&'static str, Kind)],
        known: &'static [(&'static str, Kind)],
    },
}

const ICON: Kind = Members {
    needed: &[("src", Text)],
    known: &[("mimeType", Text), ("sizes", List(&Text)), ("theme", Word(&["light", "dark"]))],
};
const ANNOTATIONS: Kind = Members {
    needed: &[],
    known: &[("audience", List(&Word(&["user", "assistant"]))), ("priority", Number), ("lastModified", Text)],
};
const TOOL: Kind = Members {
    needed: &[("name", Text)],
    known: &[
        ("title", Text),
        ("description", Text),
        ("icons", List(&ICON)),
        ("outputSchema", Object),
        (
            "annotations",
            Members {
                needed: &[],
                known: &[
                    ("title", Text),
                    ("readOnlyHint", Flag),
                    ("destructiveHint", Flag),
                    ("idempotentHint", Flag),
                    ("openWorldHint", Flag),
                ],
            },
        ),
        (
            "execution",
            Members { needed: &[], known: &[("taskSupport", Word(&["forbidden", "optional", "required"]))] },
        ),
        ("_meta", Object),
    ],
};
const PROMPT: Kind = Members {
    needed: &[("name", Text)],
    known: &[
        ("title", Text),
        ("description", Text),
        ("icons", List(&ICON)),
        (
            "arguments",
            List(&Members {
                needed: &[("name", Text)],
                known: &[("title", Text), ("description", Text), ("required", Flag)],
            }),
        ),
        ("_meta", Object),
    ],
};
const RESOURCE: Kind = Members {
    needed: &[("uri", Text), ("name", Text)],
    known: &[
        ("title", Text),
        ("description", Text),
        ("mimeType", Text),
        ("size", Number),
        ("icons", List(&ICON)),
        ("annotations", ANNOTATIONS),
        ("_meta", Object),
    ],
};
const TEMPLATE: Kind = Members {
    needed: &[("uriTemplate", Text), ("name", Text)],
    known: &[
        ("title", Text),
        ("description", Text),
        ("mimeType", Text),
        ("icons", List(&ICON)),
        ("annotations", ANNOTATIONS),
        ("_meta", Object),
    ],
};

/// Makes a tool one that clients of this era accept. Gives the members that were not as they should
/// be.
pub(crate) fn repair_tool(tool: &mut Value, era: Era) -> Vec<String> {
    let mut odd = Vec::new();
    repair(tool, &TOOL, "", &mut odd);
    let Value::Object(members) = tool else { return odd };
    let input = members.entry("inputSchema").or_insert(Value::Null);
    if !is_schema_of_object(input) {
        odd.push("inputSchema".to_owned());
        repair_schema(input);
    }
    odd.dedup();
    // Clients of the old era know none of other values.
    if era == Era::Legacy && members.get("outputSchema").is_some_and(|schema| !is_schema_of_object(schema)) {
        members.remove("outputSchema");
    }
    odd
}

/// Makes an item of another list one that clients accept. Returns whether that could be done.
pub(crate) fn repair_item(list: &str, item: &mut Value) -> bool {
    let kind = match list {
        "resources" => &RESOURCE,
        "resourceTemplates" => &TEMPLATE,
        _ => &PROMPT,
    };
    // A resource has an address even where its server forgot to name it.
    for address in ["uri", "uriTemplate"] {
        if let Some(Value::String(address)) = item.get(address).cloned()
            && !item.get("name").is_some_and(Value::is_string)
        {
            item["name"] = address.into();
        }
    }
    repair(item, kind, "", &mut Vec::new())
}

/// Leaves out what is not of this kind. Returns whether the rest is.
fn repair(value: &mut Value, kind: &Kind, place: &str, odd: &mut Vec<String>) -> bool {
    match kind {
        Text => value.is_string(),
        Word(words) => value.as_str().is_some_and(|text| words.contains(&text)),
        Flag => value.is_boolean(),
        Number => value.is_number(),
        Object => value.is_object(),
        List(kind) => {
            let Value::Array(items) = value else { return false };
            items.retain_mut(|item| {
                let fits = repair(item, kind, place, odd);
                if !fits {
                    odd.push(place.to_owned());
                }
                fits
            });
            true
        }
        Members { needed, known } => {
            let Value::Object(members) = value else { return false };
            for (name, kind) in *known {
                let place = if place.is_empty() { (*name).to_owned() } else { format!("{place}.{name}") };
                if members.get_mut(*name).is_some_and(|member| !repair(member, kind, &place, odd)) {
                    members.remove(*name);
                    odd.push(place);
                }
            }
            let mut has = |(name, kind): &(&str, Kind)| {
                members.get_mut(*name).is_some_and(|member| repair(member, kind, place, odd))
            };
            needed.iter().all(&mut has)
        }
    }
}

/// Whether a schema is, as clients want it, one of an object: with `properties` that are objects,
/// and names of those that are `required`.
fn is_schema_of_object(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    members.get("type").is_some_and(|kind| kind == "object")
        && members
            .get("properties")
            .is_none_or(|all| all.as_object().is_some_and(|all| all.values().all(Value::is_object)))
        && members
            .get("required")
            .is_none_or(|names| names.as_array().is_some_and(|names| names.iter().all(Value::is_string)))
}

/// Makes a schema one of an object, with as much of it as can stay.
fn repair_schema(schema: &mut Value) {
    let Value::Object(members) = schema else {
        *schema = json!({ "type": "object" });
        return;
    };
    if members.get("type").is_none_or(|kind| kind != "object") {
        members.insert("type".to_owned(), "object".into());
    }
    match members.get_mut("properties") {
        Some(Value::Object(properties)) => {
            for property in properties.values_mut().filter(|property| !property.is_object()) {
                // `true` and `false` are schemas as well.
                *property = if *property == Value::Bool(false) { json!({ "not": {} }) } else { json!({}) };
            }
        }
        Some(_) => {
            members.remove("properties");
        }
        None => {}
    }
    if let Some(required) = members.get_mut("required") {
        match required {
            Value::Array(names) => names.retain(Value::is_string),
            _ => {
                members.remove("required");
            }
        }
    }
}

/// What a client of the old era gets of a result whose structured content is no object, which it
/// does not know: the rest.
pub(crate) fn without_structured(result: &Value) -> Value {
    let mut members: Map<String, Value> = result.as_object().cloned().unwrap_or_default();
    members.remove("structuredContent");
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(mut tool: Value) -> (Value, Vec<String>) {
        let odd = repair_tool(&mut tool, Era::Legacy);
        (tool, odd)
    }

    #[test]
    fn what_is_well_formed_stays_as_it_is() {
        let tool = json!({
            "name": "a", "title": "A", "description": "d", "icons": [{ "src": "x", "own": 1 }], "x-own": [1],
            "inputSchema": { "type": "object", "properties": { "p": { "type": ["string", "null"] } }, "required": ["p"], "$defs": {} },
            "outputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true, "own": null }, "execution": { "taskSupport": "optional" }, "_meta": { "a/b": 1 },
        });
        assert_eq!(repaired(tool.clone()), (tool, Vec::new()));
        for (list, item) in [
            ("prompts", json!({ "name": "p", "arguments": [{ "name": "a", "required": true }], "own": 1 })),
            (
                "resources",
                json!({ "uri": "a://b", "name": "b", "size": 5, "annotations": { "audience": ["user"] } }),
            ),
            ("resourceTemplates", json!({ "uriTemplate": "a://{b}", "name": "b" })),
        ] {
            let mut same = item.clone();
            assert!(repair_item(list, &mut same));
            assert_eq!(same, item);
        }
    }

    #[test]
    fn what_is_of_another_kind_is_left_out() {
        let any = json!({ "type": "object" });
        let (tool, odd) = repaired(json!({
            "name": "a", "title": { "a": 1 }, "description": 5, "icons": [{ "no": "src" }, 5], "inputSchema": null,
            "outputSchema": "x", "annotations": { "readOnlyHint": "yes", "title": null, "idempotentHint": true },
            "execution": { "taskSupport": "banana" }, "_meta": null,
        }));
        let rest = json!({ "name": "a", "icons": [], "inputSchema": any, "annotations": { "idempotentHint": true }, "execution": {} });
        assert_eq!(tool, rest);
        for member in ["title", "annotations.readOnlyHint", "inputSchema", "execution.taskSupport"] {
            assert!(odd.iter().any(|odd| odd == member), "{member}: {odd:?}");
        }
        assert_eq!(repaired(json!({ "name": "a" })).0["inputSchema"], any);
        let schema = json!({ "properties": { "a": true, "b": false, "c": { "type": "string" }, "d": 5 }, "required": ["c", 5] });
        let properties = json!({ "a": {}, "b": { "not": {} }, "c": { "type": "string" }, "d": {} });
        assert_eq!(
            repaired(json!({ "name": "a", "inputSchema": schema })).0["inputSchema"],
            json!({ "type": "object", "properties": properties, "required": ["c"] })
        );
        let schema = json!({ "type": "string", "properties": [], "required": "c" });
        assert_eq!(repaired(json!({ "name": "a", "inputSchema": schema })).0["inputSchema"], any);
    }

    #[test]
    fn clients_of_the_old_era_get_no_schema_of_other_results() {
        let mut tool =
            json!({ "name": "a", "inputSchema": { "type": "object" }, "outputSchema": { "type": "array" } });
        assert!(repair_tool(&mut tool, Era::Modern).is_empty());
        assert_eq!(tool["outputSchema"]["type"], "array");
        assert!(repair_tool(&mut tool, Era::Legacy).is_empty());
        assert!(tool.get("outputSchema").is_none());
        let result = json!({ "content": [], "structuredContent": [1] });
        assert_eq!(without_structured(&result), json!({ "content": [] }));
    }

    #[test]
    fn an_item_without_what_it_needs_is_left_out() {
        assert!(!repair_item("prompts", &mut json!({ "title": "x" })));
        assert!(!repair_item("prompts", &mut json!(5)));
        assert!(!repair_item("resources", &mut json!({ "name": "x" })));
        assert!(!repair_item("resourceTemplates", &mut json!({ "uri": "a://b" })));
        let mut unnamed = json!({ "uri": "a://b" });
        assert!(repair_item("resources", &mut unnamed));
        assert_eq!(unnamed["name"], "a://b");
        let mut prompt = json!({ "name": "p", "arguments": "x" });
        assert!(repair_item("prompts", &mut prompt));
        assert_eq!(prompt, json!({ "name": "p" }));
    }
}
