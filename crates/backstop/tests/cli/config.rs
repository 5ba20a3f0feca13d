//! Configuration: where a value comes from, what is trusted.

use crate::harness::Project;

#[test]
fn every_value_knows_its_origin() {
    let project = Project::new("config-origin");
    project.file("backstop.toml", "[exec]\ntimeout = \"10m\"\nidle = \"1m\"\n");
    let show = || project.run(&["config", "show", "--origin"]).env("BACKSTOP_EXEC_IDLE", "2m");
    let text = show().go().code(0).stdout();
    let row = |key: &str| text.lines().find(|l| l.starts_with(key)).unwrap().to_owned();
    assert!(row("exec.timeout").contains("10m") && row("exec.timeout").contains("backstop.toml:2"), "{text}");
    assert!(row("exec.idle").contains("2m") && row("exec.idle").contains("BACKSTOP_EXEC_IDLE"), "{text}");
    assert!(row("exec.profile").contains("default"), "{text}");
    let json = project.run(&["config", "show", "--json"]).go().code(0).json();
    assert!(json["settings"].as_array().unwrap().len() > 10);
}

#[test]
fn flags_beat_the_environment_which_beats_files() {
    let project = Project::new("config-precedence");
    project.file("backstop.toml", "[exec]\ntimeout = \"1h\"\n");
    project.exec(&["--attempts", "1"], "sleep 60").env("BACKSTOP_EXEC_TIMEOUT", "200ms").go().code(124);
    let flags = ["--attempts", "1", "--timeout", "1h"];
    project.exec(&flags, "sleep 0.5").env("BACKSTOP_EXEC_TIMEOUT", "200ms").go().code(0);
}

#[test]
fn a_mistyped_variable_is_not_passed_over_in_silence() {
    let project = Project::new("config-variable");
    let done = project.exec(&[], "exit 0").env("BACKSTOP_EXEC_TIMOUT", "5m").go().code(0);
    assert!(
        done.stderr().contains("BACKSTOP_EXEC_TIMOUT") && done.stderr().contains("BACKSTOP_EXEC_TIMEOUT"),
        "{}",
        done.stderr()
    );
}

#[test]
fn an_untrusted_project_runs_and_writes_nothing() {
    let project = Project::new("config-untrusted");
    project.file(
        "own.toml",
        "[[rule]]\nid = \"own.hiccup\"\nreason = \"network_transient\"\nliterals = [\"the hub hiccupped\"]\n\
         match = [\"oh, the hub hiccupped again\"]\nmiss = [\"the hub is fine\"]\n",
    );
    let config = "[profile.command]\nbase = \"1ms\"\n[rules]\npacks = [\"own.toml\"]\n[events]\ntail_to = \"stolen.jsonl\"\n";
    project.file("backstop.toml", config);
    let script = "echo the hub hiccupped; exit 1";
    let run = || project.exec(&["--json"], script).go().code(1);
    let before = run();
    assert_eq!(
        (before.json()["reason"].as_str(), before.json()["attempts"].as_u64()),
        (Some("unknown"), Some(1))
    );
    assert_eq!(before.stderr().matches("is not trusted").count(), 1, "{}", before.stderr());
    assert!(
        before.stderr().contains("hint: read backstop.toml, then `backstop trust`"),
        "{}",
        before.stderr()
    );
    assert!(!project.path().join("stolen.jsonl").exists());
    // Shown, it is still not trusted.
    let shown = project.run(&["trust", "--show"]).go().code(0).stdout();
    assert!(shown.contains("not trusted") && shown.contains("rules.packs"), "{shown}");
    assert!(!run().stdout().contains("own.hiccup"));
    project.run(&["trust"]).go().code(0);
    let trusted = run();
    assert_eq!(
        (trusted.json()["reason"].as_str(), trusted.json()["attempts"].as_u64()),
        (Some("network_permanent"), Some(4))
    );
    assert!(!trusted.stderr().contains("not trusted"));
    let lines = project.read("stolen.jsonl");
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["type"].as_str(), first["payload"]["reason"].as_str()),
        (Some("error.classified"), Some("network_transient"))
    );
    // One changed byte, and it has to be read again.
    project.file("backstop.toml", format!("{config}# changed\n"));
    assert_eq!(run().json()["reason"], "unknown");
    project.file("backstop.toml", config);
    assert_eq!(run().json()["reason"], "network_permanent");
    project.run(&["trust", "--revoke"]).go().code(0);
    assert_eq!(run().json()["reason"], "unknown");
}

#[test]
fn an_untrusted_project_makes_nothing_repeat() {
    let project = Project::new("config-repeat");
    project.file(
        "backstop.toml",
        "[profile.command]\nbase = \"1ms\"\n[profile.command.on]\nunknown = \"retry:3\"\n",
    );
    let run = || project.exec(&["--json"], "exit 1").go().code(1).json()["attempts"].as_u64();
    assert_eq!(run(), Some(1));
    project.run(&["trust"]).go().code(0);
    assert_eq!(run(), Some(3));
}

#[test]
fn a_users_own_file_needs_no_trust() {
    let project = Project::new("config-user");
    let folder = project.path().parent().unwrap().join("home/.config/backstop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("config.toml"),
        "[exec]\ntimeout = \"200ms\"\n[events]\ntail_to = \"told.jsonl\"\n",
    )
    .unwrap();
    project.exec(&["--attempts", "1"], "sleep 60").env("XDG_CONFIG_HOME", "").go().code(124);
    assert!(folder.join("told.jsonl").exists());
}

#[test]
fn the_words_of_a_command_are_taken_as_they_are() {
    let project = Project::plain("config-words");
    let folder = project.beside("home/.config/backstop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("config.toml"),
        "[agent.mine]\ncommand = ['x', '-a', '1', '-b', '1', ' y ']\n",
    )
    .unwrap();
    let shown = project.run(&["config", "show", "--json"]).go().code(0).json();
    let settings = shown["settings"].as_array().unwrap();
    let words = settings.iter().find(|setting| setting["key"] == "agent.mine.command").unwrap();
    assert_eq!(words["value"], serde_json::json!(["x", "-a", "1", "-b", "1", " y "]));
}
