//! The shape of a result, as a JSON schema, for agents that can be held to one.

/// The shape of a result. Every field is named and required, and what may be absent may be null:
/// some providers take no other schema.
pub const RESULT_SCHEMA: &str = r#"{"type":"object","additionalProperties":false,"required":["phase_id","status","tasks_total","tasks_completed","tasks_done","quality_gates","commit_message","files","error"],"properties":{"phase_id":{"type":"string"},"status":{"type":"string","enum":["complete","failed"]},"tasks_total":{"type":["integer","null"]},"tasks_completed":{"type":["integer","null"]},"tasks_done":{"type":["array","null"],"items":{"type":"integer"}},"quality_gates":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["name","passed"],"properties":{"name":{"type":"string"},"passed":{"type":"boolean"}}}},"commit_message":{"type":["string","null"]},"files":{"type":"object","additionalProperties":false,"required":["created","modified","deleted"],"properties":{"created":{"type":"array","items":{"type":"string"}},"modified":{"type":"array","items":{"type":"string"}},"deleted":{"type":"array","items":{"type":"string"}}}},"error":{"type":["object","null"],"additionalProperties":false,"required":["type","message","details"],"properties":{"type":{"type":"string"},"message":{"type":"string"},"details":{"type":["string","null"]}}}}}"#;

#[cfg(test)]
mod tests {
    #[test]
    fn every_object_of_the_schema_is_closed_and_requires_all_that_it_names() {
        fn check(value: &serde_json::Value) {
            if let Some(properties) = value.get("properties").and_then(|p| p.as_object()) {
                assert_eq!(value["additionalProperties"], false);
                let required: Vec<_> = value["required"].as_array().unwrap().iter().collect();
                assert_eq!(required.len(), properties.len());
                properties.values().for_each(check);
            }
            value.get("items").into_iter().for_each(check);
        }
        check(&serde_json::from_str(super::RESULT_SCHEMA).unwrap());
    }
}
