//! The agents that can work on phases: what is installed, how it would be run, what it tells.

use super::Check;
use crate::{JSON_SCHEMA, Style, View, table};
use backstop_core::SafeText;
use serde_json::{Value, json};

/// How many characters of a name, a version or a command line are shown.
const CELL_CHARS_MAX: usize = 120;

/// One agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRow {
    /// Its name, as `--agent` takes it.
    pub name: String,
    /// Whether its program is there.
    pub is_found: bool,
    /// Its version, where it says one.
    pub version: Option<String>,
    /// Whether it was asked for its version and did not end.
    pub is_mute: bool,
    /// The newest version that was tried.
    pub tested: Option<String>,
    /// Whether it is newer than that.
    pub is_newer: bool,
    /// Whether it is talked to by the Agent Client Protocol.
    pub is_acp: bool,
    /// How it would be run.
    pub command: String,
    /// What it tells besides that it is done.
    pub tells: Vec<String>,
    /// What it hides.
    pub hides: Option<String>,
    /// How it is installed.
    pub install: Option<String>,
}

impl AgentRow {
    fn state(&self) -> &'static str {
        match (self.is_found, self.is_mute) {
            (false, _) => "not found",
            (true, true) => "does not answer",
            (true, false) => "ready",
        }
    }

    fn protocol(&self) -> &'static str {
        if self.is_acp { "acp" } else { "plain" }
    }

    /// What a person should know about its version.
    pub fn newer(&self) -> Option<String> {
        let tested = self.tested.as_ref().filter(|_| self.is_newer)?;
        Some(format!("newer than {tested}, the newest that was tried"))
    }
}

/// The agents of `backstop agents`.
#[derive(Debug, Clone, Default)]
pub struct AgentList(pub Vec<AgentRow>);

impl AgentList {
    /// What `doctor` says about them.
    pub fn check(&self) -> Check {
        const NAME: &str = "agents";
        let found: Vec<&AgentRow> = self.0.iter().filter(|agent| agent.is_found).collect();
        if found.is_empty() {
            return Check::note(NAME, "none is installed", "`backstop agents` says how each is installed");
        }
        let newer: Vec<String> =
            found.iter().filter_map(|agent| Some(format!("{} is {}", agent.name, agent.newer()?))).collect();
        let mute: Vec<&str> =
            found.iter().filter(|agent| agent.is_mute).map(|agent| agent.name.as_str()).collect();
        if !mute.is_empty() {
            let words = format!("{} --version does not end", mute.join(" and "));
            return Check::note(NAME, words, "run it by hand: it may ask something first");
        }
        if !newer.is_empty() {
            return Check::note(
                NAME,
                newer.join("; "),
                "it is used all the same; `backstop agents` lists them",
            );
        }
        let shown = |agent: &&AgentRow| match &agent.version {
            Some(version) => format!("{} {version}", agent.name),
            None => agent.name.clone(),
        };
        Check::good(NAME, found.iter().map(shown).collect::<Vec<_>>().join(", "))
    }
}

impl View for AgentList {
    fn text(&self, _: Style) -> String {
        let cell = |text: &str| SafeText::new(text).line(CELL_CHARS_MAX);
        let rows = self.0.iter().map(|agent| {
            let about = if agent.is_found {
                let mut words = vec![agent.protocol().to_owned()];
                words.extend(agent.tells.iter().cloned());
                words.extend(agent.newer());
                words.join(" · ")
            } else {
                agent.install.clone().unwrap_or_else(|| cell(&agent.command))
            };
            let version = agent.version.as_deref().unwrap_or("-");
            vec![cell(&agent.name), cell(version), agent.state().to_owned(), cell(&about)]
        });
        table(&["AGENT", "VERSION", "STATE", "ABOUT"], &rows.collect::<Vec<_>>())
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .0
            .iter()
            .map(|agent| {
                json!({
                    "agent": SafeText::new(agent.name.as_str()).line(CELL_CHARS_MAX),
                    "state": agent.state().replace(' ', "_"),
                    "version": agent.version.as_deref().map(|version| SafeText::new(version).line(CELL_CHARS_MAX)),
                    "tested": agent.tested,
                    "newer_than_tested": agent.is_newer,
                    "protocol": agent.protocol(),
                    "command": agent.command,
                    "tells": agent.tells,
                    "hides": agent.hides,
                    "install": agent.install,
                })
            })
            .collect();
        json!({"schema": JSON_SCHEMA, "agents": rows})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_a_line_and_a_newer_one_is_said() {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let list = AgentList(vec![
            AgentRow {
                name: "claude".to_owned(),
                is_found: true,
                version: Some("2.2.0".to_owned()),
                tested: Some("2.1.325".to_owned()),
                is_newer: true,
                tells: text(&["sessions", "cost"]),
                ..AgentRow::default()
            },
            AgentRow {
                name: "copilot".to_owned(),
                install: Some("npm i -g @github/copilot".to_owned()),
                ..AgentRow::default()
            },
            AgentRow {
                name: "goose".to_owned(),
                is_found: true,
                is_mute: true,
                is_acp: true,
                ..AgentRow::default()
            },
        ]);
        insta::assert_snapshot!(list.text(Style::PLAIN), @r"
        AGENT    VERSION  STATE            ABOUT
        claude   2.2.0    ready            plain · sessions · cost · newer than 2.1.325, the newest that was tried
        copilot  -        not found        npm i -g @github/copilot
        goose    -        does not answer  acp
        ");
        assert_eq!(list.json()["agents"][2]["state"], "does_not_answer");
    }
}
