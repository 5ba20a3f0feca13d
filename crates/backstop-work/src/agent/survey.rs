//! Which agents are here, in which version, and how each would be run.

use super::acp::{KNOWN_ACP, known_acp};
use super::builtin::{BUILTINS, Builtin};
use super::definition::Agent;
use backstop_core::Redactor;
use backstop_exec::{Input, Limits, Spec, Stop, Streams, supervise};
use std::time::Duration;

/// How long an agent has to say its version.
const VERSION_MAX: Duration = Duration::from_secs(5);
/// How much of what it says then is read.
const VERSION_BYTES_MAX: usize = 4 << 10;
/// How many arguments and characters of a command line are shown.
const SHOWN_CHARS_MAX: usize = 400;

/// An agent, and what was found of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyedAgent {
    /// Its name, as `--agent` takes it.
    pub name: String,
    /// Whether its program is there.
    pub is_found: bool,
    /// Its version, where it says one.
    pub version: Option<String>,
    /// Whether it was asked for its version and did not end.
    pub is_mute: bool,
    /// The newest version that was tried, where one was.
    pub tested: Option<&'static str>,
    /// Whether it is newer than that.
    pub is_newer: bool,
    /// Whether it is talked to by the Agent Client Protocol.
    pub is_acp: bool,
    /// How it would be run.
    pub command: String,
    /// What it tells besides that it is done.
    pub tells: Vec<&'static str>,
    /// What it hides.
    pub hides: Option<&'static str>,
    /// How it is installed, where that is known.
    pub install: Option<&'static str>,
}

/// The agents that are known, and those of the configuration. One of the configuration takes the
/// place of a known one of its name. `is_found` looks for a program; those that are there are asked
/// for their version, all at once.
pub fn survey(own: &[Agent], is_found: &dyn Fn(&str) -> bool) -> Vec<SurveyedAgent> {
    survey_within(own, is_found, VERSION_MAX)
}

fn survey_within(own: &[Agent], is_found: &dyn Fn(&str) -> bool, limit: Duration) -> Vec<SurveyedAgent> {
    let is_own = |name: &str| own.iter().any(|agent| agent.name == name);
    let plain = BUILTINS.iter().filter(|known| !is_own(known.name)).map(of_builtin);
    let others = KNOWN_ACP.iter().filter(|known| {
        let is_plain = BUILTINS.iter().any(|plain| plain.name == known.name);
        // Nobody is told to install what has not been tried.
        !is_own(known.name) && !is_plain && (!known.tested.is_empty() || is_found(known.argv[0]))
    });
    let others = others.map(|known| SurveyedAgent {
        name: known.name.to_owned(),
        command: known.argv.join(" "),
        tested: Some(known.tested).filter(|tested| !tested.is_empty()),
        is_acp: true,
        tells: vec!["sessions"],
        install: Some(known.install),
        ..blank()
    });
    let mut all: Vec<(SurveyedAgent, String)> = plain
        .chain(others)
        .chain(own.iter().map(of_own))
        .map(|agent| {
            let program = agent.command.split(' ').next().unwrap_or_default().to_owned();
            (agent, program)
        })
        .collect();
    for (agent, program) in &mut all {
        agent.is_found = is_found(program);
    }
    std::thread::scope(|scope| {
        for (agent, program) in all.iter_mut().filter(|(agent, _)| agent.is_found) {
            scope.spawn(|| {
                (agent.version, agent.is_mute) = version(program, limit);
                agent.is_newer = agent
                    .version
                    .as_deref()
                    .zip(agent.tested)
                    .is_some_and(|(version, tested)| numbers(version) > numbers(tested));
            });
        }
    });
    all.into_iter().map(|(agent, _)| agent).collect()
}

fn blank() -> SurveyedAgent {
    SurveyedAgent {
        name: String::new(),
        is_found: false,
        version: None,
        is_mute: false,
        tested: None,
        is_newer: false,
        is_acp: false,
        command: String::new(),
        tells: Vec::new(),
        hides: None,
        install: None,
    }
}

fn of_builtin(known: &Builtin) -> SurveyedAgent {
    SurveyedAgent {
        name: known.name.to_owned(),
        tested: Some(known.about.tested),
        command: shown(known.argv.iter().copied()),
        tells: known.about.tells.to_vec(),
        hides: Some(known.about.hides),
        install: Some(known.about.install),
        ..blank()
    }
}

fn of_own(agent: &Agent) -> SurveyedAgent {
    let known = known_acp(&agent.argv).filter(|_| agent.acp.is_some());
    SurveyedAgent {
        name: agent.name.clone(),
        is_acp: agent.acp.is_some(),
        command: shown(Redactor::default().redact_arguments(&agent.argv).iter().map(String::as_str)),
        tested: known.map(|known| known.tested).filter(|tested| !tested.is_empty()),
        tells: if agent.resume.is_some() { vec!["sessions"] } else { Vec::new() },
        ..blank()
    }
}

fn shown<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let places = ["{options}", "{resume}"];
    let line = words.filter(|word| !places.contains(word)).collect::<Vec<_>>().join(" ");
    line.chars().take(SHOWN_CHARS_MAX).collect()
}

/// The version that a program says with `--version`, and whether it did not end.
fn version(program: &str, limit: Duration) -> (Option<String>, bool) {
    let spec = Spec {
        argv: vec![program.into(), "--version".into()],
        limits: Limits {
            wall: Some(limit),
            grace: Duration::from_millis(500),
            kept_bytes_max: VERSION_BYTES_MAX,
            ..Limits::default()
        },
        ..Spec::default()
    };
    let nowhere = || Box::new(std::io::sink());
    let streams = Streams { stdout: nowhere(), stderr: nowhere(), input: Input::Null };
    let Ok(ended) = supervise(&spec, streams, &Stop::new(), |_| {}) else { return (None, false) };
    let said = [ended.stdout.end(VERSION_BYTES_MAX), ended.stderr.end(VERSION_BYTES_MAX)].concat();
    (version_in(&String::from_utf8_lossy(&said)), ended.timed_out())
}

/// The first version in a text: numbers with dots.
fn version_in(text: &str) -> Option<String> {
    let is_edge = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    let words = text.split(is_edge).map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    let is_version = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && word.len() <= 40
    };
    words.filter(is_version).map(str::to_owned).next()
}

/// The numbers of a version, to compare: `1.9.2-rc.1` is 1, 9, 2.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_agents_print_and_compared_as_numbers() {
        for (text, want) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", Some("1.0.102")),
            ("v0.24.4-rc.1", Some("0.24.4-rc.1")),
            ("no version here", None),
            ("", None),
        ] {
            assert_eq!(version_in(text).as_deref(), want, "{text}");
        }
        assert!(numbers("0.166.0") > numbers("0.99.9") && numbers("1.0.102") > numbers("1.0.99"));
        assert_eq!(numbers("1.2.3-rc.1"), [1, 2, 3]);
    }

    #[test]
    fn every_known_agent_is_listed_once_with_how_to_get_it() {
        let all = survey(&[], &|_| false);
        let names: Vec<&str> = all.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(
            names,
            ["claude", "codex", "opencode", "gemini", "copilot", "qwen", "claude-agent-acp", "codex-acp"]
        );
        assert!(
            all.iter().all(|agent| !agent.is_found && agent.version.is_none() && agent.install.is_some())
        );
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("goose").display().to_string();
        std::fs::write(&program, "#!/bin/sh\necho goose 1.9.2\n").unwrap();
        assert!(std::process::Command::new("chmod").args(["+x", &program]).status().unwrap().success());
        // One that is installed is listed by the name that `--agent` takes.
        let all = survey_within(&[], &|name| name == "goose", Duration::ZERO);
        let goose = all.iter().find(|agent| agent.name == "goose").unwrap();
        assert_eq!((goose.command.as_str(), goose.is_acp), ("goose acp", true));
        let own =
            super::super::from_acp("goose", vec![program.clone(), "acp".to_owned()], Default::default());
        let all = survey(&[own.unwrap()], &|name| name == program);
        let goose = all.iter().find(|agent| agent.name == "goose").unwrap();
        assert_eq!((goose.version.as_deref(), goose.is_acp, goose.is_newer), (Some("1.9.2"), true, false));
        assert!(all.iter().all(|agent| !agent.is_mute));
    }

    #[test]
    fn one_that_does_not_answer_is_told_from_one_that_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("hangs").display().to_string();
        std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
        assert!(std::process::Command::new("chmod").args(["+x", &program]).status().unwrap().success());
        let hangs = super::super::from_acp("hangs", vec![program.clone()], Default::default());
        let all = survey_within(&[hangs.unwrap()], &|name| name == program, Duration::from_millis(200));
        let hangs = all.iter().find(|agent| agent.name == "hangs").unwrap();
        assert_eq!((hangs.is_found, hangs.is_mute, &hangs.version), (true, true, &None));
    }
}
