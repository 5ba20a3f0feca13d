//! The levels of log messages, as MCP has them.

use serde::Deserialize;
use serde_json::value::RawValue;

/// How important a log message is; the least important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All levels.
    pub(crate) const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The level of a log message; one that says none, or an unknown one, is never held back.
    pub(crate) fn of_message(params: Option<&RawValue>) -> Self {
        #[derive(Deserialize)]
        struct Message {
            level: LogLevel,
        }
        let read = |params: &RawValue| serde_json::from_str::<Message>(params.get()).ok();
        params.and_then(read).map_or(Self::Emergency, |message| message.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::raw;
    use serde_json::json;

    #[test]
    fn levels_have_the_names_and_the_order_of_mcp() {
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::named(level.name()), Some(level));
            assert_eq!(LogLevel::of_message(Some(&raw(&json!({ "level": level.name() })))), level);
        }
        assert!(LogLevel::ALL.is_sorted());
        assert_eq!(LogLevel::named("verbose"), None);
        assert_eq!(LogLevel::of_message(Some(&raw(&json!({ "data": 1 })))), LogLevel::Emergency);
    }
}
