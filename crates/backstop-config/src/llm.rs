//! The settings of model requests, `llm.*`. `backstop-llm` checks whether they make a proxy.

use super::Config;
use super::value::{Value, Written};
use std::collections::BTreeMap;
use std::time::Duration;

const UPSTREAM: &str = "llm.upstream.";
/// What is shown instead of a value that may be a secret.
const HIDDEN: &str = "…";

/// The settings of model requests, as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmSettings {
    /// `llm.listen`
    pub listen: String,
    /// `llm.deadline`
    pub deadline: Option<Duration>,
    /// `llm.idle`
    pub idle: Option<Duration>,
    /// `llm.body_max`, in bytes
    pub body_max: u64,
    /// `llm.cache`
    pub cache: bool,
    /// `llm.budget`: a unit for every attempt
    pub budget: Option<String>,
    /// `llm.token_budget`
    pub token_budget: Option<String>,
    /// `llm.cent_budget`
    pub cent_budget: Option<String>,
    /// `llm.fallback`: `MODEL=OTHER`
    pub fallback: Vec<String>,
    /// `llm.prices`: `MODEL=INPUT/OUTPUT`
    pub prices: Vec<String>,
    /// `llm.upstream.*`
    pub upstreams: BTreeMap<String, LlmUpstreamSettings>,
}

/// The settings of one upstream: `${NAME}` is not filled in yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LlmUpstreamSettings {
    /// `llm.upstream.<upstream>.url`
    pub url: Option<String>,
    /// `llm.upstream.<upstream>.concurrency`
    pub concurrency: Option<usize>,
    /// `llm.upstream.<upstream>.headers.*`
    pub headers: BTreeMap<String, String>,
}

impl Config {
    /// The settings of model requests, without those that are not trusted.
    pub fn llm(&self) -> LlmSettings {
        let name = |key: &str| self.text(key).filter(|name| name != "none");
        LlmSettings {
            listen: self.text("llm.listen").unwrap_or_default(),
            deadline: self.duration("llm.deadline"),
            idle: self.duration("llm.idle"),
            body_max: self.size("llm.body_max"),
            cache: self.text("llm.cache").as_deref() == Some("true"),
            budget: name("llm.budget"),
            token_budget: name("llm.token_budget"),
            cent_budget: name("llm.cent_budget"),
            fallback: self.list("llm.fallback"),
            prices: self.list("llm.prices"),
            upstreams: self.llm_upstreams(),
        }
    }

    fn llm_upstreams(&self) -> BTreeMap<String, LlmUpstreamSettings> {
        let mut found: BTreeMap<String, LlmUpstreamSettings> = BTreeMap::new();
        for (key, setting) in self.set_below(UPSTREAM) {
            let Some((name, field)) = key.strip_prefix(UPSTREAM).and_then(|rest| rest.split_once('.')) else {
                continue;
            };
            let upstream = found.entry(name.to_owned()).or_default();
            match (field.split_once('.'), &setting.written.value) {
                (Some(("headers", header)), Value::Text(text)) => {
                    upstream.headers.insert(header.to_owned(), text.clone());
                }
                (None, Value::Text(text)) if field == "url" => upstream.url = Some(text.clone()),
                (None, Value::Count(count)) if field == "concurrency" => {
                    upstream.concurrency = usize::try_from(*count).ok();
                }
                _ => {}
            }
        }
        found
    }
}

/// A value as it is shown. Headers of an upstream may be secrets: only a reference to a variable is
/// shown.
pub(super) fn shown(key: &str, written: &Written) -> Written {
    let mut written = written.clone();
    let is_header = key.strip_prefix(UPSTREAM).is_some_and(|rest| rest.contains(".headers."));
    if is_header && !(written.text.starts_with("${") && written.text.ends_with('}')) {
        written.text = HIDDEN.to_owned();
        written.value = Value::Text(HIDDEN.to_owned());
    }
    written
}
