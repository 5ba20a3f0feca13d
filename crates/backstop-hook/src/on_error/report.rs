//! What a task reports, checked field by field.

use crate::input::{InputError, cut, cut_start, kind, parse};
use backstop_core::{ExecutionContext, Redactor, SafeText};
use backstop_report::TaskCommand;
use serde_json::{Map, Value, json};

/// The longest id of a task.
const TASK_BYTES_MAX: usize = 256;
/// How much of a type, a step or an address is kept.
const NAME_BYTES_MAX: usize = 500;
/// How much of a message is kept: its beginning.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How much of a stack trace is kept: its end.
const TRACE_BYTES_MAX: usize = 1 << 20;
/// How much of a partial result is handed back.
const PARTIAL_BYTES_MAX: usize = 16 << 10;
/// How many commands are known.
const COMMANDS_MAX: usize = 200;
/// How much more is looked at for secrets than is kept: one that is cut in two would not be known.
const SECRET_BYTES_MAX: usize = 4 << 10;

/// What a task reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The task, as the reporter knows it.
    pub task: String,
    /// The task, as others are told of it: with secrets masked.
    pub shown: SafeText,
    /// The error's type, as the reporter names it.
    pub kind: Option<SafeText>,
    /// What it said.
    pub message: SafeText,
    /// Where it came from.
    pub stack_trace: Option<SafeText>,
    /// What the task was doing.
    pub step: Option<SafeText>,
    /// For how long.
    pub elapsed_seconds: Option<f64>,
    /// What it has so far; nothing where there is none.
    pub partial: Option<Value>,
    /// What a user may type.
    pub commands: Vec<TaskCommand>,
    /// Where help is found.
    pub docs_url: Option<SafeText>,
}

impl Report {
    /// Reads a report. Secrets are masked, except in the task's id, which is the reporter's own
    /// key.
    pub fn read(bytes: &[u8], redactor: &Redactor) -> Result<Self, InputError> {
        let fields = parse(bytes)?;
        let nothing = Map::new();
        let task = object(&fields, "task_data", true)?.unwrap_or(&nothing);
        let error = object(&fields, "error", true)?.unwrap_or(&nothing);
        let context = object(&fields, "context", false)?.unwrap_or(&nothing);
        let safe = |text: &str, bytes_max: usize| {
            let masked = redactor.redact(cut(text, bytes_max + SECRET_BYTES_MAX));
            SafeText::new(cut(&masked, bytes_max))
        };
        let named = |text: Option<&str>| {
            text.filter(|text| !text.trim().is_empty()).map(|text| safe(text, NAME_BYTES_MAX))
        };
        let kind = named(text(error, "error.type")?);
        let message = text(error, "error.message")?;
        if kind.is_none() && message.is_none_or(|text| text.trim().is_empty()) {
            return Err(InputError::Missing {
                field: "error.message",
                expected: "a text, or a name in `error.type`",
            });
        }
        let trace = text(error, "error.stack_trace")?.filter(|text| !text.trim().is_empty());
        let trace = trace.map(|text| {
            let masked = redactor.redact(cut_start(text, TRACE_BYTES_MAX + SECRET_BYTES_MAX));
            SafeText::new(cut_start(&masked, TRACE_BYTES_MAX))
        });
        let task = task_id(task)?;
        Ok(Self {
            shown: SafeText::new(redactor.redact(&task)),
            task,
            kind,
            message: safe(message.unwrap_or_default(), MESSAGE_BYTES_MAX),
            stack_trace: trace,
            step: named(text(context, "context.current_step")?),
            elapsed_seconds: seconds(context, "context.elapsed_seconds")?,
            partial: context.get("partial_result").filter(|value| !is_empty(value)).map(|value| {
                let mut value = value.clone();
                mask(&mut value, redactor);
                value
            }),
            commands: commands(context, &safe)?,
            docs_url: named(text(context, "context.docs_url")?),
        })
    }

    /// How far the task had come. Bounded.
    pub fn context(&self) -> ExecutionContext {
        let partial = self.partial_kept().map(|value| match value {
            Value::String(text) => SafeText::new(text),
            other => SafeText::new(other.to_string()),
        });
        ExecutionContext {
            current_step: self.step.clone(),
            elapsed_seconds: self.elapsed_seconds,
            partial_result: partial,
        }
    }

    /// What the task was doing, as it is kept with its status. Bounded.
    pub fn context_json(&self) -> Value {
        json!({
            "current_step": self.step,
            "elapsed_seconds": self.elapsed_seconds,
            "partial_result": self.partial_kept(),
        })
    }

    /// The partial result, cut where it is long; nothing where it cannot be cut.
    pub fn partial_kept(&self) -> Option<Value> {
        match self.partial.as_ref()? {
            Value::String(text) if text.len() > PARTIAL_BYTES_MAX => {
                Some(Value::from(cut(text, PARTIAL_BYTES_MAX)))
            }
            value if value.to_string().len() <= PARTIAL_BYTES_MAX + 2 => Some(value.clone()),
            Value::String(text) => Some(Value::from(text.as_str())),
            _ => None,
        }
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn wrong(field: &str, expected: &'static str, found: &Value) -> InputError {
    InputError::Wrong { field: field.to_owned(), expected, found: kind(found) }
}

fn object<'v>(
    fields: &'v Map<String, Value>,
    name: &'static str,
    required: bool,
) -> Result<Option<&'v Map<String, Value>>, InputError> {
    match fields.get(name) {
        Some(Value::Object(inner)) => Ok(Some(inner)),
        None | Some(Value::Null) if required => {
            Err(InputError::Missing { field: name, expected: "an object" })
        }
        None | Some(Value::Null) => Ok(None),
        Some(other) => Err(wrong(name, "an object", other)),
    }
}

fn text<'v>(fields: &'v Map<String, Value>, path: &str) -> Result<Option<&'v str>, InputError> {
    match fields.get(last(path)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(path, "a text", other)),
    }
}

fn task_id(fields: &Map<String, Value>) -> Result<String, InputError> {
    const FIELD: &str = "task_data.task_id";
    const EXPECTED: &str = "a text of 1 to 256 bytes";
    let id = match fields.get("task_id") {
        None | Some(Value::Null) => return Err(InputError::Missing { field: FIELD, expected: EXPECTED }),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if number.is_u64() || number.is_i64() => number.to_string(),
        Some(other) => return Err(wrong(FIELD, EXPECTED, other)),
    };
    let wrong = |found| InputError::Wrong { field: FIELD.to_owned(), expected: EXPECTED, found };
    match id {
        id if id.trim().is_empty() => Err(wrong("empty")),
        id if id.len() > TASK_BYTES_MAX => Err(wrong("longer than that")),
        id => Ok(id),
    }
}

fn seconds(fields: &Map<String, Value>, path: &'static str) -> Result<Option<f64>, InputError> {
    match fields.get(last(path)) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64().filter(|s| s.is_finite() && *s >= 0.0) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(wrong(path, "a number of seconds from 0 on", value)),
        },
    }
}

/// Commands: names, objects with `name` and `description`, or an object from names to descriptions.
fn commands(
    fields: &Map<String, Value>,
    safe: &dyn Fn(&str, usize) -> SafeText,
) -> Result<Vec<TaskCommand>, InputError> {
    const EXPECTED: &str = "a list of names, or an object from names to descriptions";
    let command = |name: &str, about: &str| TaskCommand {
        name: safe(name.trim(), NAME_BYTES_MAX),
        about: safe(about.trim(), NAME_BYTES_MAX),
    };
    let mut all = match fields.get("commands") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(named)) => {
            let pairs = named.iter().take(COMMANDS_MAX);
            pairs.map(|(name, about)| command(name, about.as_str().unwrap_or_default())).collect()
        }
        Some(Value::Array(list)) => {
            let mut all = Vec::new();
            for (n, item) in list.iter().take(COMMANDS_MAX).enumerate() {
                let place = || format!("context.commands[{n}]");
                all.push(match item {
                    Value::String(name) => command(name, ""),
                    Value::Object(inner) => {
                        let name = ["name", "command"].iter().find_map(|key| inner.get(*key)?.as_str());
                        let about = inner.get("description").and_then(Value::as_str).unwrap_or_default();
                        let name = name.ok_or_else(|| InputError::Wrong {
                            field: place(),
                            expected: "a name, or an object with `name`",
                            found: "an object without one",
                        })?;
                        command(name, about)
                    }
                    other => return Err(wrong(&place(), "a name, or an object with `name`", other)),
                });
            }
            all
        }
        Some(other) => return Err(wrong("context.commands", EXPECTED, other)),
    };
    all.retain(|command| !command.name.is_empty());
    Ok(all)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn mask(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(masked) = redactor.redact(text) {
                *text = masked;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| mask(item, redactor)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut field)| {
                    mask(&mut field, redactor);
                    (redactor.redact(&name).into_owned(), field)
                })
                .collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Report, InputError> {
        Report::read(text.as_bytes(), &Redactor::default())
    }

    #[test]
    fn each_mistake_is_told_with_its_place() {
        let cases = [
            ("", "standard input"),
            ("  \n", "standard input"),
            ("nonsense", "standard input:1:2"),
            ("{\"a\":\n  1,}", "standard input:2:5"),
            ("[]", "standard input"),
            ("{}", "task_data"),
            ("{\"task_data\":[]}", "task_data"),
            ("{\"task_data\":{}}", "error"),
            ("{\"task_data\":{},\"error\":{\"message\":\"x\"}}", "task_data.task_id"),
            ("{\"task_data\":{\"task_id\":\" \"},\"error\":{\"message\":\"x\"}}", "task_data.task_id"),
            ("{\"task_data\":{\"task_id\":[]},\"error\":{\"message\":\"x\"}}", "task_data.task_id"),
            ("{\"task_data\":{\"task_id\":\"t\"},\"error\":\"x\"}", "error"),
            ("{\"task_data\":{\"task_id\":\"t\"},\"error\":{}}", "error.message"),
            ("{\"task_data\":{\"task_id\":\"t\"},\"error\":{\"message\":7}}", "error.message"),
            ("{\"task_data\":{\"task_id\":\"t\"},\"error\":{\"type\":7,\"message\":\"x\"}}", "error.type"),
            (
                "{\"task_data\":{\"task_id\":\"t\"},\"error\":{\"message\":\"x\",\"stack_trace\":[]}}",
                "error.stack_trace",
            ),
        ];
        for (text, place) in cases {
            let error = read(text).unwrap_err();
            assert_eq!(error.place(), place, "{text}: {error}");
            assert!(error.to_string().contains("expected") || place.contains(':'), "{error}");
            assert!(!error.hint().is_empty());
        }
        let context = |context: &str| {
            read(&format!(
                "{{\"task_data\":{{\"task_id\":1}},\"error\":{{\"message\":\"x\"}},\"context\":{context}}}"
            ))
        };
        let cases = [
            ("7", "context"),
            ("{\"current_step\":1}", "context.current_step"),
            ("{\"elapsed_seconds\":\"x\"}", "context.elapsed_seconds"),
            ("{\"elapsed_seconds\":-1}", "context.elapsed_seconds"),
            ("{\"commands\":7}", "context.commands"),
            ("{\"commands\":[\"a\",7]}", "context.commands[1]"),
            ("{\"commands\":[{}]}", "context.commands[0]"),
            ("{\"docs_url\":{}}", "context.docs_url"),
        ];
        for (text, place) in cases {
            assert_eq!(context(text).unwrap_err().place(), place, "{text}");
        }
        let read =
            context("{\"commands\":[\"a\",{\"name\":\"b\",\"description\":\"B\"}],\"partial_result\":[1]}");
        let read = read.unwrap();
        assert_eq!(read.task, "1");
        assert_eq!(read.commands[1].about.raw(), "B");
        assert_eq!(read.partial_kept(), Some(json!([1])));
    }

    #[test]
    fn what_is_very_long_is_cut_or_refused() {
        assert_eq!(
            Report::read(&vec![b' '; crate::INPUT_BYTES_MAX + 1], &Redactor::default()),
            Err(InputError::TooLarge)
        );
        let long = "x".repeat(2 << 20);
        let report = read(&format!(
            "{{\"task_data\":{{\"task_id\":\"t\"}},\"error\":{{\"message\":\"{long}\",\"stack_trace\":\"{long}\"}},\
             \"context\":{{\"partial_result\":\"{long}\"}}}}"
        ))
        .unwrap();
        assert!(report.message.raw().len() <= MESSAGE_BYTES_MAX);
        assert!(report.context_json().to_string().len() < 20_000);
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let token = format!("ghp_{}", "Ab12".repeat(9));
        // Cut where the token stands, it would be half a token that nobody knows.
        let split = format!("{} {token}", "x".repeat(NAME_BYTES_MAX - 20));
        let report = read(
            &json!({"task_data": {"task_id": token}, "error": {"type": split, "message": token},
                "context": {"partial_result": {&token: [&token]}, "current_step": split, "commands": {&split: &split}}})
            .to_string(),
        )
        .unwrap();
        assert_eq!(report.task, token, "it is the reporter's own key");
        let told = format!("{:?}", Report { task: String::new(), ..report });
        assert!(!told.contains("Ab12"), "{told}");
    }

    proptest! {
        #[test]
        fn nothing_that_comes_in_makes_it_panic(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let _ = Report::read(&bytes, &Redactor::default());
            let report = json!({"task_data": {"task_id": text}, "error": {"message": text, "type": text}, "context":
                {"current_step": text, "commands": [text], "partial_result": text, "docs_url": text}});
            let _ = read(&report.to_string());
        }
    }
}
