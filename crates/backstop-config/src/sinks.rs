//! The settings of sinks, `notify.NAME.*`. `backstop-notify` checks whether they make a sink.

use super::Config;
use super::value::{Value, Written};
use backstop_core::Reason;
use backstop_http::Address;
use std::collections::BTreeMap;
use std::path::PathBuf;

const PREFIX: &str = "notify.";

/// The kinds of sinks, as `notify.NAME.type` is written.
pub const SINK_KINDS: &[&str] = &["terminal", "webhook", "slack", "github", "command"];

/// The settings of a sink, as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkSettings {
    /// `notify.<sink>.type`
    pub kind: Option<String>,
    /// `notify.<sink>.url`
    pub url: Option<String>,
    /// `notify.<sink>.command`
    pub command: Vec<String>,
    /// `notify.<sink>.token_env`
    pub token_env: Option<String>,
    /// `notify.<sink>.severity`
    pub severity: Option<String>,
    /// `notify.<sink>.reason`
    pub reasons: Vec<Reason>,
    /// `notify.<sink>.project`, as whole paths
    pub projects: Vec<PathBuf>,
}

impl Config {
    /// Whether any sink is configured.
    pub fn has_sinks(&self) -> bool {
        self.set_below(PREFIX).next().is_some()
    }

    /// The settings of each sink, by name, without those that are not trusted.
    pub fn sinks(&self) -> BTreeMap<String, SinkSettings> {
        let mut found: BTreeMap<String, SinkSettings> = BTreeMap::new();
        for (key, setting) in self.set_below(PREFIX) {
            let Some((name, field)) = key.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('.')) else {
                continue;
            };
            let sink = found.entry(name.to_owned()).or_default();
            let text = || match &setting.written.value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            };
            let texts = || match &setting.written.value {
                Value::Texts(list) => list.clone(),
                Value::Text(one) => vec![one.clone()],
                _ => Vec::new(),
            };
            match field {
                "type" => sink.kind = text(),
                "url" => sink.url = text(),
                "command" => sink.command = texts(),
                "token_env" => sink.token_env = text(),
                "severity" => sink.severity = text(),
                "reason" => {
                    sink.reasons = texts().iter().filter_map(|word| Reason::from_code(word)).collect();
                }
                "project" => {
                    let whole = |path: &String| {
                        let path = self.resolved(key, path);
                        path.canonicalize().unwrap_or(path)
                    };
                    sink.projects = texts().iter().map(whole).collect();
                }
                _ => {}
            }
        }
        found
    }
}

/// A value as it is shown. Of the address of a sink or a collector only the host, because its path
/// may be secret.
pub(super) fn shown(key: &str, written: &Written) -> Written {
    let mut written = written.clone();
    if ((key.starts_with(PREFIX) && key.ends_with(".url")) || key == "otel.endpoint")
        && let Ok(address) = Address::parse(&written.text)
        && address.path_and_query() != "/"
    {
        written.text = format!("{}/…", address.place());
        written.value = Value::Text(written.text.clone());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use super::super::scratch::Scratch;
    use backstop_core::Reason;

    const FILE: &str = r#"
[notify.ops]
type = "slack"
url = "https://hooks.slack.com/services/T0/B0/canary"
severity = "critical"
reason = ["disk_full", "crash"]
project = ["."]
[notify.mail]
type = "command"
command = ["mail", "-s", "backstop"]
[notify.broken]
type = "webhook"
"#;

    #[test]
    fn sinks_are_read_and_their_secrets_are_not_shown() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", FILE);
        let config = load(&scratch.around(""), &[], &|_, _| true).unwrap();
        let sinks = config.sinks();
        let names: Vec<&str> = sinks.keys().map(String::as_str).collect();
        assert_eq!(names, ["broken", "mail", "ops"]);
        let ops = &sinks["ops"];
        assert_eq!(ops.severity.as_deref(), Some("critical"));
        assert_eq!(ops.reasons, [Reason::DiskFull, Reason::Crash]);
        assert_eq!(ops.projects.len(), 1);
        assert_eq!(sinks["mail"].command.len(), 3);
        let shown = super::super::show(&config, true);
        assert!(shown.contains("https://hooks.slack.com/…") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn the_path_of_a_collector_is_not_shown() {
        let scratch = Scratch::new();
        let text = |url: &str| format!("[otel]\nendpoint = \"{url}\"\n");
        scratch.write("backstop.toml", text("http://collector:4318/canary"));
        let config = load(&scratch.around(""), &[], &|_, _| true).unwrap();
        assert_eq!(config.get("otel.endpoint").unwrap().text, "http://collector:4318/…");
        assert_eq!(config.otel().unwrap().0.path_and_query(), "/canary");
        assert_eq!(config.addresses(), ["http://collector:4318/canary"]);
        scratch.write("backstop.toml", text("http://bob:pw@collector:4318/canary"));
        let config = load(&scratch.around(""), &[], &|_, _| true).unwrap();
        let problems = config.problems().unwrap().to_string();
        assert!(problems.contains("what is there") && !problems.contains("canary"), "{problems}");
    }

    #[test]
    fn an_untrusted_project_has_no_sinks() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", FILE);
        let config = load(&scratch.around(""), &[], &|_, _| false).unwrap();
        assert!(config.sinks().is_empty() && !config.inert().is_empty());
    }
}
