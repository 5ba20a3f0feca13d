//! Agents by name: those of the configuration, the built-in ones, and any command that speaks the
//! Agent Client Protocol.

use backstop_config::Config;
use backstop_report::{AgentList, AgentRow};
use backstop_work::agent::{
    AcpOptions, Agent, AgentError, PromptBy, TemplateOptions, builtin, from_acp, from_template, survey,
};

/// What stands before a command that speaks the Agent Client Protocol, in place of an agent's name.
pub const ACP_PREFIX: &str = "acp:";

/// The agents of the configuration. One with both kinds of command is run by its command line: that
/// tells more.
pub fn own_agents(config: &Config) -> Result<Vec<Agent>, AgentError> {
    let mut agents = Vec::new();
    for (name, argv) in config.commands("agent", "command") {
        let agent = from_template(&name, argv, TemplateOptions::default())?;
        agents.push(match config.agent_prompt(&name).as_deref() {
            Some("file") => Agent { prompt: PromptBy::File, ..agent },
            _ => agent,
        });
    }
    for (name, argv) in config.commands("agent", "acp") {
        if !agents.iter().any(|agent| agent.name == name) {
            let mode = config.agent_mode(&name);
            agents.push(from_acp(&name, argv, AcpOptions { mode })?);
        }
    }
    Ok(agents)
}

/// The agent of this name: one of `own`, a built-in one, or what follows `acp:`. Nothing where
/// there is none.
pub fn named_agent(name: &str, own: &[Agent]) -> Result<Option<Agent>, AgentError> {
    if let Some(line) = name.strip_prefix(ACP_PREFIX) {
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        return from_acp(name, argv, AcpOptions::default()).map(Some);
    }
    Ok(own.iter().find(|agent| agent.name == name).cloned().or_else(|| builtin(name)))
}

/// The agents that are known, and those of the settings, as reports show them. `is_found` looks for
/// a program. Settings with a mistake are for `doctor` and `config check` to tell.
pub fn agent_list(config: &Config, is_found: &dyn Fn(&str) -> bool) -> AgentList {
    let own = own_agents(config).unwrap_or_default();
    let texts = |words: Vec<&'static str>| words.into_iter().map(str::to_owned).collect();
    let rows = survey(&own, is_found).into_iter().map(|agent| AgentRow {
        name: agent.name,
        is_found: agent.is_found,
        version: agent.version,
        is_mute: agent.is_mute,
        tested: agent.tested.map(str::to_owned),
        is_newer: agent.is_newer,
        is_acp: agent.is_acp,
        command: agent.command,
        tells: texts(agent.tells),
        hides: agent.hides.map(str::to_owned),
        install: agent.install.map(str::to_owned),
    });
    AgentList(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_name_or_by_the_protocol_it_speaks() {
        for name in ["claude", "codex", "opencode", "gemini", "copilot", "qwen"] {
            assert!(named_agent(name, &[]).unwrap().is_some_and(|agent| agent.acp.is_none()), "{name}");
        }
        let goose = named_agent("acp:goose acp", &[]).unwrap().unwrap();
        assert_eq!(
            (goose.name.as_str(), &goose.argv[..]),
            ("acp:goose acp", &["goose".to_owned(), "acp".to_owned()][..])
        );
        assert!(goose.acp.is_some() && goose.resume.is_some());
        let gemini = named_agent("acp:/opt/bin/gemini --acp", &[]).unwrap().unwrap();
        assert!(gemini.argv.contains(&"--include-directories".to_owned()));
        assert_eq!(gemini.provider.as_deref(), Some("google"));
        assert!(named_agent("nobody", &[]).unwrap().is_none());
        assert!(named_agent("acp:", &[]).is_err() && named_agent("acp:  ", &[]).is_err());
    }
}
