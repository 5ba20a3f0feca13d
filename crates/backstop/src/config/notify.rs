//! Sinks, as the configuration has them.

use super::Config;
use super::value::{Value, Written};
use backstop_core::Reason;
use backstop_hook::notify::{Address, Sink, SinkError, SinkSettings};
use std::collections::BTreeMap;

const PREFIX: &str = "notify.";

impl Config {
    /// Whether there is a sink at all.
    pub(crate) fn has_sinks(&self) -> bool {
        self.set_below(PREFIX).next().is_some()
    }

    /// Every sink by its name, or what is wrong with it. What is not trusted is not among them.
    pub(crate) fn sinks(&self) -> Vec<(String, Result<Sink, SinkError>)> {
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
        let sink = |(name, settings): (String, SinkSettings)| {
            let sink = settings.sink(&name);
            (name, sink)
        };
        found.into_iter().map(sink).collect()
    }
}

/// A value as it is shown: of a sink's address the place, because its path may be a secret.
pub(super) fn shown(key: &str, written: &Written) -> Written {
    let mut written = written.clone();
    if key.starts_with(PREFIX)
        && key.ends_with(".url")
        && let Ok(address) = Address::parse(&written.text)
        && address.path != "/"
    {
        written.text = format!("{}/…", address.place());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use super::super::scratch::Scratch;
    use backstop_core::{Reason, Severity};
    use backstop_hook::notify::Kind;

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
        let names: Vec<&str> = sinks.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["broken", "mail", "ops"]);
        assert!(sinks[0].1.is_err());
        let ops = sinks[2].1.as_ref().unwrap();
        assert_eq!(ops.route.severity, Severity::Critical);
        assert_eq!(ops.route.reasons, [Reason::DiskFull, Reason::Crash]);
        assert_eq!(ops.route.projects.len(), 1);
        let mail = sinks[1].1.as_ref().unwrap();
        assert!(matches!(&mail.kind, Kind::Command { argv } if argv.len() == 3));
        let shown = super::super::show(&config, true);
        assert!(shown.contains("https://hooks.slack.com/…") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn an_untrusted_project_has_no_sinks() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", FILE);
        let config = load(&scratch.around(""), &[], &|_, _| false).unwrap();
        assert!(config.sinks().is_empty() && !config.inert().is_empty());
    }
}
