//! JSON-RPC 2.0 as the Agent Client Protocol uses it: one message a line.
//!
//! Messages stay JSON values: fields, updates and codes that nobody here knows pass through
//! unharmed.

use serde_json::{Value, json};

/// The code for a method that does not exist.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// What came in.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    /// It asks something.
    Request { id: Value, method: String, params: Value },
    /// It tells something.
    Notification { method: String, params: Value },
    /// It answers what we asked.
    Answer { id: u64, result: Result<Value, Value> },
}

/// Reads a line; nothing where it is no message.
pub(super) fn read(line: &[u8]) -> Option<Incoming> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice::<Value>(line) else { return None };
    let mut take = |name: &str| fields.remove(name);
    let (id, method) = (take("id").filter(|id| !id.is_null()), take("method"));
    match (id, method) {
        (Some(id), Some(Value::String(method))) => {
            Some(Incoming::Request { id, method, params: take("params").unwrap_or_default() })
        }
        (None, Some(Value::String(method))) => {
            Some(Incoming::Notification { method, params: take("params").unwrap_or_default() })
        }
        (Some(id), None) => {
            let result = match (take("result"), take("error")) {
                (_, Some(error)) => Err(error),
                (Some(result), None) => Ok(result),
                (None, None) => return None,
            };
            // Our ids are numbers; one that is given back as a text is still ours.
            let id = id.as_u64().or_else(|| id.as_str()?.parse().ok())?;
            Some(Incoming::Answer { id, result })
        }
        _ => None,
    }
}

/// A request of ours.
pub(super) fn request(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A notification of ours.
pub(super) fn notification(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// Our answer.
pub(super) fn answer(id: &Value, result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// Our refusal of a method that we do not have.
pub(super) fn no_such_method(id: &Value, method: &str) -> String {
    let message = format!("Method not found: {method}");
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": METHOD_NOT_FOUND, "message": message}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_and_other_lines_are_none() {
        let request = read(br#"{"jsonrpc":"2.0","id":"x","method":"fs/read","params":{"a":1}}"#);
        assert_eq!(
            request,
            Some(Incoming::Request { id: json!("x"), method: "fs/read".to_owned(), params: json!({"a": 1}) })
        );
        assert!(matches!(read(br#"{"method":"session/update"}"#), Some(Incoming::Notification { .. })));
        assert_eq!(read(br#"{"id":3,"result":{}}"#), Some(Incoming::Answer { id: 3, result: Ok(json!({})) }));
        assert_eq!(
            read(br#"{"id":"3","error":{"code":1}}"#),
            Some(Incoming::Answer { id: 3, result: Err(json!({"code": 1})) })
        );
        for bad in ["", "hello", "[]", "{}", "{\"id\":3}", "{\"id\":{},\"result\":1}", "{\"method\":7}"] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
    }
}
