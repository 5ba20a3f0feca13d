//! A call as a person types it, and its result as a command shows it.

use super::{CallRequest, CallSuccess, ConfirmError};
use backstop_core::{ErrorKind, HintedError, IdError, Name, SafeText};
use backstop_report::{JSON_SCHEMA, Notice, PartialSuccess, Style, View, partial_success, to_json};
use serde_json::{Value, json};

/// Why what was typed is no call.
#[derive(Debug, thiserror::Error)]
pub enum CallWordsError {
    /// There is no tool, or there is more than a tool and its arguments.
    #[error("a call needs a tool and its arguments")]
    Tool,
    /// A raw call lacks something.
    #[error("--raw needs a server, a method and its parameters")]
    Raw,
    /// A server cannot have this name.
    #[error(transparent)]
    Server(IdError),
    /// The arguments are not JSON.
    #[error("the arguments are not JSON: {0}")]
    NotJson(serde_json::Error),
    /// The arguments are JSON, and no object.
    #[error("the arguments are not a JSON object")]
    NotObject,
}

impl HintedError for CallWordsError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Tool => {
                "for example: `backstop call time__get_current_time '{\"timezone\": \"UTC\"}'`; `backstop tools list` lists the tools"
            }
            Self::Raw => "for example: `backstop call --raw github tools/list '{}'`",
            Self::Server(_) => "servers are set up in backstop.toml as [mcp.NAME]",
            Self::NotJson(_) => "give a JSON object in single quotes: '{\"name\": \"value\"}'",
            Self::NotObject => "for example: '{\"name\": \"value\"}'",
        };
        vec![hint.to_owned()]
    }
}

impl HintedError for ConfirmError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::Masked(run) => format!("type them again: `backstop call --confirm {run} '{{…}}'`"),
            Self::NotWaiting(run) => {
                format!("`backstop explain {run}` tells how it ended; `backstop deferred list` what waits")
            }
            Self::Arguments(_) => "give a JSON object in single quotes".to_owned(),
        }]
    }
}

impl CallRequest {
    /// The call of a tool and its arguments, or with `is_raw` of a server, a method and its
    /// parameters.
    pub fn typed(words: &[String], is_raw: bool) -> Result<Self, CallWordsError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (target, given) = match (is_raw, words.as_slice()) {
            (true, [server, method]) => (Some((*server, *method)), "{}"),
            (true, [server, method, params]) => (Some((*server, *method)), *params),
            (false, [_]) => (None, "{}"),
            (false, [_, given]) => (None, *given),
            (true, _) => return Err(CallWordsError::Raw),
            (false, _) => return Err(CallWordsError::Tool),
        };
        let request = match target {
            Some((server, method)) => {
                let server: Name = server.parse().map_err(CallWordsError::Server)?;
                Self::raw(server, method, given)
            }
            None => Self::tool(words[0], given),
        };
        let request = request.map_err(CallWordsError::NotJson)?;
        match serde_json::from_str::<Value>(given) {
            Ok(Value::Object(_)) => Ok(request),
            _ => Err(CallWordsError::NotObject),
        }
    }
}

impl CallSuccess {
    /// What to say of a call that succeeded in part.
    pub fn notice(&self) -> Option<Notice> {
        let notice = || {
            partial_success(&PartialSuccess {
                tool: SafeText::new(self.tool.as_str()),
                params: self.params(),
                succeeded: vec![SafeText::new(self.tool.as_str())],
                failed: Vec::new(),
                unconfirmed: 0,
                warnings: self.warnings.clone(),
                retry: None,
            })
        };
        (!self.warnings.is_empty()).then(notice)
    }

    fn value(&self) -> Value {
        serde_json::from_str(self.result()).unwrap_or(Value::Null)
    }
}

impl View for CallSuccess {
    fn text(&self, _: Style) -> String {
        let text = CallSuccess::text(self);
        match text.is_empty() {
            true => format!("{}\n", to_json(&self.value())),
            false => format!("{}\n", SafeText::new(text.strip_suffix('\n').unwrap_or(&text))),
        }
    }

    fn json(&self) -> Value {
        json!({
            "schema": JSON_SCHEMA, "tool": self.tool, "attempts": self.attempts, "result": self.value(),
            "warnings": self.warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_call_or_says_what_is_missing() {
        let typed = |line: &str, is_raw: bool| {
            let words: Vec<String> =
                line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
            CallRequest::typed(&words, is_raw)
                .map(|request| request.name())
                .map_err(|error| error.to_string())
        };
        assert_eq!(typed("a__b", false).unwrap(), "a__b");
        assert_eq!(typed("a__b {\"x\":1}", false).unwrap(), "a__b");
        assert_eq!(typed("a tools/list {}", true).unwrap(), "a tools/list");
        for (line, is_raw, why) in [
            ("", false, "needs a tool"),
            ("a b c", false, "needs a tool"),
            ("a", true, "needs a server"),
            ("a__b [1]", false, "not a JSON object"),
            ("a__b {", false, "not JSON"),
            ("a m 7", true, "not a JSON object"),
        ] {
            let error = typed(line, is_raw).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
