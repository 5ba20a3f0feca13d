//! What a task reports, checked field by field.

use crate::input::{InputError, cut, cut_start, kind, parse};
use backstop_core::{ExecutionContext, MASK, Redactor, SafeText};
use backstop_report::TaskCommand;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The longest id of a task.
const TASK_BYTES_MAX: usize = 256;
/// How much of a type, a step or an address is kept.
const NAME_BYTES_MAX: usize = 500;
/// How much of a message is kept: its beginning.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How much of a stack trace is kept: its end.
const TRACE_BYTES_MAX: usize = 1 << 20;
/// How much of a stack trace is recorded and handed back: its end.
const TRACE_KEPT_BYTES_MAX: usize = 16 << 10;
/// How much of a partial result is handed back.
const PARTIAL_BYTES_MAX: usize = 16 << 10;
/// How many fallbacks of a task are known.
const FALLBACKS_MAX: usize = 10;
/// How many fields that Backstop does not know are kept.
const FIELDS_MAX: usize = 50;
/// How much of each of them is kept.
const FIELD_BYTES_MAX: usize = 2 << 10;
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
    /// What it has so far; nothing where there is none, `null` where there is too much of it to
    /// keep and it cannot be cut.
    pub partial: Option<Value>,
    /// What the task can do instead, best first, as it says itself.
    pub fallbacks: Vec<SafeText>,
    /// Where the error was raised, as the reporter says: file, line and function.
    pub place: ReportedPlace,
    /// Fields that Backstop does not know, by name: a text, or another value as JSON.
    pub fields: BTreeMap<String, SafeText>,
    /// How many of those fields were too many to keep.
    pub fields_omitted: u32,
    /// What a user may type.
    pub commands: Vec<TaskCommand>,
    /// Where help is found.
    pub docs_url: Option<SafeText>,
}

/// Where an error was raised, as the reporter says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedPlace {
    /// The file.
    pub file: Option<SafeText>,
    /// The line.
    pub line: Option<u64>,
    /// The function.
    pub function: Option<SafeText>,
}

/// The fields of `task_data`, `error` and `context` that have a meaning here.
const KNOWN: [(&str, &[&str]); 3] = [
    ("task_data", &["task_id"]),
    ("error", &["type", "message", "stack_trace", "file", "line", "function"]),
    (
        "context",
        &["current_step", "elapsed_seconds", "partial_result", "partial", "fallback", "commands", "docs_url"],
    ),
];

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
        let (given, fields_omitted) = unknown_fields(&fields);
        let masked_field = |(name, value): (String, &Value)| {
            let (text, bytes) = match beginning(value, FIELD_BYTES_MAX + SECRET_BYTES_MAX) {
                // A secret is known by its name: a value is masked as a whole where it is short.
                (_, bytes) if bytes <= FIELD_BYTES_MAX => {
                    let mut value = value.clone();
                    mask(&mut value, redactor);
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let bytes = text.len();
                    (redactor.redact(&text).into_owned(), bytes)
                }
                (text, bytes) => (redactor.redact(&text).into_owned(), bytes),
            };
            (safe(&name, NAME_BYTES_MAX).raw().to_owned(), shortened(&text, bytes, FIELD_BYTES_MAX))
        };
        let partial = ["partial_result", "partial"].iter().find_map(|name| context.get(*name));
        let task = task_id(task)?;
        Ok(Self {
            shown: SafeText::new(redactor.redact(&task)),
            task,
            kind,
            message: safe(message.unwrap_or_default(), MESSAGE_BYTES_MAX),
            stack_trace: trace,
            step: named(text(context, "context.current_step")?),
            elapsed_seconds: seconds(context, "context.elapsed_seconds")?,
            fallbacks: fallbacks(context, &safe)?,
            place: ReportedPlace {
                file: named(text(error, "error.file")?),
                line: error.get("line").and_then(Value::as_u64),
                function: named(text(error, "error.function")?),
            },
            fields: given.into_iter().map(masked_field).collect(),
            fields_omitted,
            partial: partial.filter(|value| !is_empty(value)).map(|value| masked_partial(value, redactor)),
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
            fallbacks: self.fallbacks.clone(),
            stack_trace: self.trace_kept(),
            fields: self.fields.clone(),
            fields_omitted: self.fields_omitted,
        }
    }

    /// The end of the stack trace, which is where most languages say what happened.
    pub fn trace_kept(&self) -> Option<SafeText> {
        let trace = self.stack_trace.as_ref()?.raw();
        let end = cut_start(trace, TRACE_KEPT_BYTES_MAX);
        // A line that is cut in two says nothing.
        let end = match end.split_once('\n') {
            Some((_, rest)) if end.len() < trace.len() && !rest.is_empty() => rest,
            _ => end,
        };
        Some(SafeText::new(end))
    }

    /// The fallback that applies: the first that is not the step that has just failed.
    pub fn fallback(&self) -> Option<&SafeText> {
        self.fallbacks.iter().find(|fallback| Some(*fallback) != self.step.as_ref())
    }

    /// What the task was doing, as it is kept with its status. Bounded.
    pub fn context_json(&self) -> Value {
        json!({
            "current_step": self.step,
            "elapsed_seconds": self.elapsed_seconds,
            "partial_result": self.partial_kept(),
            "fallback": self.fallback(),
            "fields": self.fields,
            "fields_omitted": self.fields_omitted,
        })
    }

    /// The partial result, cut where it is long; nothing where it cannot be cut.
    pub fn partial_kept(&self) -> Option<Value> {
        match self.partial.as_ref()? {
            Value::Null => None,
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

/// The fields that have no meaning here, and how many more there are than are kept. Those of
/// `context` go by their own names, others with the name of their object before them.
fn unknown_fields(report: &Map<String, Value>) -> (Vec<(String, &Value)>, u32) {
    let mut all: Vec<(String, &Value)> = Vec::new();
    for (object, known) in KNOWN.iter().rev() {
        let Some(Value::Object(inner)) = report.get(*object) else { continue };
        let unknown =
            inner.iter().filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null());
        all.extend(unknown.map(|(name, value)| match *object {
            "context" => (name.clone(), value),
            object => (format!("{object}.{name}"), value),
        }));
    }
    let known_object = |name: &str| KNOWN.iter().any(|(object, _)| *object == name);
    all.extend(
        report.iter().filter(|(name, _)| !known_object(name)).map(|(name, value)| (name.clone(), value)),
    );
    let omitted = u32::try_from(all.len().saturating_sub(FIELDS_MAX)).unwrap_or(u32::MAX);
    all.truncate(FIELDS_MAX);
    (all, omitted)
}

/// A text of so many bytes, that says where it was cut.
fn shortened(text: &str, bytes: usize, bytes_max: usize) -> SafeText {
    match bytes > bytes_max {
        true => SafeText::new(format!("{}… ({bytes} bytes)", cut(text, bytes_max))),
        false => SafeText::new(text),
    }
}

/// A text, or another value as JSON: its beginning, and how long it is.
fn beginning(value: &Value, bytes_max: usize) -> (String, usize) {
    if let Value::String(text) = value {
        return (cut(text, bytes_max).to_owned(), text.len());
    }
    let mut written = Beginning { kept: Vec::new(), bytes_max, bytes: 0 };
    // What is only kept in memory cannot fail to be written.
    let _ = serde_json::to_writer(&mut written, value);
    (String::from_utf8_lossy(&written.kept).into_owned(), written.bytes)
}

/// Keeps the beginning of what is written, and counts the rest.
struct Beginning {
    kept: Vec<u8>,
    bytes_max: usize,
    bytes: usize,
}

impl std::io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.bytes_max.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A partial result with its secrets masked, no more of it than is handed back.
fn masked_partial(value: &Value, redactor: &Redactor) -> Value {
    let bytes_max = PARTIAL_BYTES_MAX + SECRET_BYTES_MAX;
    let mut value = match value {
        Value::String(text) => Value::from(cut(text, bytes_max)),
        other if beginning(other, 0).1 > bytes_max => return Value::Null,
        other => other.clone(),
    };
    mask(&mut value, redactor);
    value
}

/// What a task can do instead: a name, or a list of names.
fn fallbacks(
    fields: &Map<String, Value>,
    safe: &dyn Fn(&str, usize) -> SafeText,
) -> Result<Vec<SafeText>, InputError> {
    const FIELD: &str = "context.fallback";
    const EXPECTED: &str = "a text, or a list of texts";
    let mut all = Vec::new();
    match fields.get("fallback") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => all.push(safe(text.trim(), NAME_BYTES_MAX)),
        Some(Value::Array(list)) => {
            for (n, item) in list.iter().take(FALLBACKS_MAX).enumerate() {
                let text = item.as_str().ok_or_else(|| wrong(&format!("{FIELD}[{n}]"), "a text", item))?;
                all.push(safe(text.trim(), NAME_BYTES_MAX));
            }
        }
        Some(other) => return Err(wrong(FIELD, EXPECTED, other)),
    }
    all.retain(|text| !text.is_empty());
    Ok(all)
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

/// Masks a field; a text is a secret by its name as well.
fn mask_named(name: &str, field: &mut Value, redactor: &Redactor) {
    if let Value::String(text) = field
        && redactor.is_secret_value(name, text)
    {
        MASK.clone_into(text);
    }
    mask(field, redactor);
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
                    mask_named(&name, &mut field, redactor);
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
            ("{\"fallback\":7}", "context.fallback"),
            ("{\"fallback\":[\"a\",7]}", "context.fallback[1]"),
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
        assert!(report.trace_kept().unwrap().raw().len() <= TRACE_KEPT_BYTES_MAX);
    }

    #[test]
    fn fields_that_are_not_known_are_kept_and_those_that_are_too_many_are_counted() {
        let token = format!("ghp_{}", "Ab12".repeat(9));
        let report = read(
            &json!({"task_data": {"task_id": "t", "title": "x"}, "error": {"message": "x", "code": 7, "file": "a.py", "line": 45},
                "context": {"repository": "a/b", "pr": {"number": 12, "token": token}, "nothing": null}, "host": "w-1"})
            .to_string(),
        )
        .unwrap();
        let kept: Vec<(&str, &str)> =
            report.fields.iter().map(|(name, text)| (name.as_str(), text.raw())).collect();
        let masked = format!("{{\"number\":12,\"token\":\"{MASK}\"}}");
        let want = [
            ("error.code", "7"),
            ("host", "w-1"),
            ("pr", masked.as_str()),
            ("repository", "a/b"),
            ("task_data.title", "x"),
        ];
        assert_eq!(kept, want);
        assert_eq!((report.place.file.unwrap().raw(), report.place.line), ("a.py", Some(45)));
        let many: Map<String, Value> = (0..60).map(|n| (format!("f{n}"), json!("x".repeat(9_000)))).collect();
        let many = json!({"task_data": {"task_id": "t"}, "error": {"message": "x"}, "context": many});
        let report = read(&many.to_string()).unwrap();
        assert_eq!((report.fields.len(), report.fields_omitted), (FIELDS_MAX, 10));
        assert!(
            report
                .fields
                .values()
                .all(|text| text.raw().len() < FIELD_BYTES_MAX + 40 && text.raw().ends_with("(9000 bytes)"))
        );
    }

    #[test]
    fn the_fallback_is_the_first_that_has_not_just_failed() {
        let fallback = |context: Value| {
            let report =
                json!({"task_data": {"task_id": "t"}, "error": {"message": "x"}, "context": context});
            read(&report.to_string()).unwrap().fallback().map(|text| text.raw().to_owned())
        };
        assert_eq!(fallback(json!({"fallback": "cached result"})).as_deref(), Some("cached result"));
        assert_eq!(
            fallback(json!({"fallback": ["mirror", "cache"], "current_step": "mirror"})).as_deref(),
            Some("cache")
        );
        assert_eq!(fallback(json!({"fallback": ["mirror"], "current_step": "mirror"})), None);
        assert_eq!(fallback(json!({"fallback": " "})), None);
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
