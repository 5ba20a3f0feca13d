//! Configuration: where a value comes from, what is trusted.

use crate::harness::Project;
use crate::plan_text::{PlanText, has, place, run};

#[test]
fn every_value_knows_its_origin() {
    let project = Project::new("config-origin");
    project.trusted_file("[exec]\ntimeout = \"10m\"\nidle = \"1m\"\n");
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
    project.trusted_file("[exec]\ntimeout = \"1h\"\n");
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
        before.stderr().contains("hint: read backstop.toml and what it names, then `backstop trust`"),
        "{}",
        before.stderr()
    );
    assert!(!project.path().join("stolen.jsonl").exists());
    // Shown, it is still not trusted.
    let shown = project.run(&["trust", "--show"]).go().code(0).stdout();
    assert!(shown.contains("not trusted") && shown.contains("rules.packs"), "{shown}");
    assert!(shown.contains("trust covers backstop.toml, own.toml"), "{shown}");
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

#[test]
fn a_bare_number_is_seconds_in_flags_files_and_variables() {
    let project = Project::new("config-seconds");
    project.exec(&["--attempts", "1", "--timeout", "0.2"], "sleep 60").go().code(124);
    project.exec(&["--timeout", "10"], "exit 0").go().code(0);
    project.exec(&["--attempts", "1"], "sleep 60").env("BACKSTOP_EXEC_TIMEOUT", "0.2").go().code(124);
    project.trusted_file("[exec]\ntimeout = 0.2\ngrace = 1\n[profile.tool]\ndelays = [0, 1, \"2s\"]\n");
    project.exec(&["--attempts", "1"], "sleep 60").go().code(124);
    project.run(&["config", "check"]).go().code(0);
    project.run(&["runs", "--since", "3600"]).go().code(0);
}

#[test]
fn a_typo_in_the_config_is_one_warning_and_the_command_runs() {
    let project = Project::new("config-typo");
    let broken = "[exec]\ntimout = \"10m\"\nidle = 5x\n[profile.command]\nattempts = \"many\"\n[log]\nformat = \"human\"\n";
    project.file("backstop.toml", broken);
    let done = project.exec(&["--attempts", "2"], "echo out; exit 7").go().code(7);
    assert_eq!(done.stdout(), "out\n");
    let words = done.stderr();
    assert_eq!(words.matches("warning:").count(), 1, "{words}");
    assert!(
        words.contains("backstop.toml:2:1: unknown key `exec.timout`; ignored, and 2 more problems"),
        "{words}"
    );
    assert!(
        words.contains("did you mean `exec.timeout`?") && words.contains("`backstop config check`"),
        "{words}"
    );
    // Only what cannot be read is at its default, or as a lower layer has it.
    let get = |key: &str| project.run(&["config", "get", key]).go().code(0).stdout();
    assert_eq!((get("exec.grace").as_str(), get("exec.idle").as_str()), ("500ms\n", "none\n"));
    assert_eq!(get("profile.command.base"), "20ms\n");
    for args in
        [&["runs"][..], &["events"], &["stats"], &["guard"], &["budget"], &["explain"], &["config", "show"]]
    {
        let done = project.run(args).go().code(0);
        assert_eq!(done.stderr().matches("backstop.toml:2:1").count(), 1, "{args:?}: {}", done.stderr());
    }
    let report = r#"{"task_data":{"task_id":"t"},"error":{"type":"ConnectionError","message":"refused"}}"#;
    assert!(project.run(&["hook", "on-error"]).stdin(report).go().code(0).json().is_object());
    assert!(project.run(&["hook", "agent"]).stdin("{}").go().code(0).json().is_object());
    let quiet = project.exec(&["-q"], "exit 0").go().code(0);
    assert_eq!(quiet.stderr(), "");
    // A mistake in a variable is no other.
    let done = project.exec(&[], "exit 0").env("BACKSTOP_EXEC_DRAIN", "soon").go().code(0);
    assert!(done.stderr().contains("and 3 more problems"), "{}", done.stderr());
}

#[test]
fn config_check_says_everything_that_is_wrong_and_fails() {
    let project = Project::new("config-check");
    project.file(
        "backstop.toml",
        "[exec]\ntimout = \"10m\"\nidle = 5x\n[log]\nformat = \"yaml\"\n[plan]\njobs = 0\n",
    );
    let done = project.run(&["config", "check"]).env("BACKSTOP_EXEC_DRAIN", "soon").go().code(1);
    for says in [
        "backstop.toml:2:1",
        "backstop.toml:3:8",
        "backstop.toml:5:10",
        "backstop.toml:7:8",
        "BACKSTOP_EXEC_DRAIN",
    ] {
        assert!(done.stderr().contains(says), "{says}: {}", done.stderr());
    }
    assert!(done.stdout().contains("backstop.toml: 0 values, 4 errors"), "{}", done.stdout());
    let json = project.run(&["config", "check", "--json"]).go().code(1).json();
    assert_eq!((json["valid"].as_bool(), json["problems"].as_array().map(Vec::len)), (Some(false), Some(4)));
    let doctor = project.run(&["doctor"]).go().code(1).stdout();
    assert!(doctor.contains("failed  configuration"), "{doctor}");
    // A file that is no config at all is one problem, and no reason to stop.
    project.file("backstop.toml", b"\xff\xfe[\0");
    project.exec(&[], "exit 0").go().code(0);
    project.run(&["config", "check"]).go().code(1);
}

#[test]
fn a_plan_is_not_started_with_a_broken_config() {
    let project = Project::plain("config-plan");
    project.file("backstop.toml", "[plan]\ntimout = \"10m\"\n");
    project.file("plan.md", "# Plan\n\n| Phase | Name |\n|---|---|\n| 1 | One |\n\n## Phase 1: One\n\n```backstop\ncommand = 'touch started'\n```\n");
    let done = project.run(&["run", "plan.md", "--yes"]).go().code(2);
    assert!(done.stderr().contains("backstop.toml:2:1: unknown key `plan.timout`"), "{}", done.stderr());
    assert!(done.stderr().contains("a plan is not started"), "{}", done.stderr());
    assert!(!project.path().join("started").exists());
}

#[test]
fn a_value_is_set_and_everything_else_in_the_file_stays() {
    let project = Project::new("config-set");
    let file =
        "# ours\n[exec] # limits\ntimeout = \"10m\"   # one attempt\n\n[redact]\nenv = [ \"A\" ] # secrets\n";
    project.file("backstop.toml", file);
    let done = project.run(&["config", "set", "exec.timeout", "90"]).go().code(0);
    assert_eq!(done.stdout(), "backstop.toml: exec.timeout = 90 (was 10m)\n");
    assert!(done.stderr().contains("then `backstop trust`"), "{}", done.stderr());
    project.run(&["trust"]).go().code(0);
    assert_eq!(project.read("backstop.toml"), file.replace("\"10m\"", "90"));
    assert_eq!(project.run(&["config", "get", "exec.timeout"]).go().code(0).stdout(), "90\n");
    let json = project.run(&["config", "get", "exec.timeout", "--json"]).go().code(0).json();
    assert_eq!(json["origin"]["line"], 3);
    project.run(&["config", "set", "redact.env", "A", "B"]).go().code(0);
    assert!(
        project.read("backstop.toml").contains("env = [\"A\", \"B\"] # secrets\n"),
        "{}",
        project.read("backstop.toml")
    );
    // What is higher still counts, and is named.
    let done =
        project.run(&["config", "set", "exec.timeout", "5m"]).env("BACKSTOP_EXEC_TIMEOUT", "1h").go().code(0);
    assert!(
        done.stderr().contains("exec.timeout is still 1h, set by $BACKSTOP_EXEC_TIMEOUT"),
        "{}",
        done.stderr()
    );
    // A mistake changes nothing.
    let before = project.read("backstop.toml");
    for (args, says) in [
        (&["exec.timout", "5"][..], "did you mean `exec.timeout`?"),
        (&["exec.timeout", "soon"], "`soon` is not a duration"),
        (&["exec", "5"], "`exec` is a section"),
    ] {
        let done = project.run(&[&["config", "set"], args].concat()).go().code(2);
        assert!(done.stderr().contains(says), "{args:?}: {}", done.stderr());
    }
    assert_eq!(project.read("backstop.toml"), before);
    let done = project.run(&["config", "get", "exec.timout"]).go().code(2);
    assert!(done.stderr().contains("did you mean `exec.timeout`?"), "{}", done.stderr());
}

#[test]
fn setting_a_value_of_the_user_or_in_a_trusted_file() {
    let project = Project::new("config-set-trust");
    std::fs::remove_file(project.path().join("backstop.toml")).unwrap();
    std::fs::remove_file(project.beside("home/.config/backstop/config.toml")).unwrap();
    let user = project.run(&["config", "set", "notify.here.type", "terminal", "--user"]).go().code(0);
    assert!(
        user.stdout().contains("config.toml (new): notify.here.type = terminal (was not set)"),
        "{}",
        user.stdout()
    );
    assert_eq!(user.stderr(), "");
    let made = project.run(&["config", "set", "events.tail_to", "log"]).go().code(0);
    assert!(made.stdout().starts_with("backstop.toml (new): "), "{}", made.stdout());
    assert!(made.stderr().contains("then `backstop trust`"), "{}", made.stderr());
    project.run(&["trust"]).go().code(0);
    let again = project.run(&["config", "set", "exec.timeout", "5m"]).go().code(0);
    assert!(again.stderr().contains("has changed and is not trusted"), "{}", again.stderr());
    assert!(again.stderr().contains("then `backstop trust`"), "{}", again.stderr());
}

#[test]
fn a_project_changes_neither_how_often_nor_how_long_without_trust() {
    let project = Project::new("config-allowed");
    let run = || {
        let script = "echo x >> tries; echo npm error code ECONNRESET; exit 1";
        let done = project.exec(&["--json"], script).go().code(1);
        (done.json()["attempts"].as_u64().unwrap(), done.stderr())
    };
    let usual = run().0;
    for text in [
        "[exec]\nprofile = \"tool\"\n",
        "[profile.command]\nattempts = 9\n",
        "[profile.command]\ndelays = [\"1ms\"]\nattempts = 2\n",
        "[exec]\ndeadline = \"1ms\"\n",
        "[exec]\ntimeout = \"1ms\"\n",
        "[retry_budget]\nreserve = 0\nshare_percent = 0\n",
    ] {
        project.file("backstop.toml", text);
        let (attempts, said) = run();
        assert_eq!(attempts, usual, "{text}");
        assert_eq!(said.matches("backstop.toml is not trusted").count(), 1, "{said}");
        let shown = project.run(&["trust", "--show"]).go().code(0).stdout();
        assert!(shown.contains("ignored until it is trusted:"), "{shown}");
    }
    project.file("backstop.toml", "[log]\nformat = \"json\"\n[plan]\njobs = 9\n");
    let shown = project.run(&["trust", "--show"]).go().code(0).stdout();
    assert!(shown.contains("takes effect without trust:\n  line 2: log.format = json"), "{shown}");
    assert!(shown.contains("ignored until it is trusted:\n  line 4: plan.jobs = 9"), "{shown}");
    let shown = project.run(&["trust", "--show", "--json"]).go().code(0).json();
    assert_eq!(shown["without_trust"][0]["key"], "log.format");
    assert_eq!(shown["sets"][0]["key"], "plan.jobs");
}

#[test]
fn a_rule_pack_or_a_script_that_changes_ends_the_trust() {
    let project = Project::new("config-covered");
    let rule = |reason: &str| {
        format!(
            "[[rule]]\nid = \"own.hiccup\"\nreason = \"{reason}\"\nliterals = [\"the hub hiccupped\"]\n\
             match = [\"oh, the hub hiccupped again\"]\nmiss = [\"the hub is fine\"]\n"
        )
    };
    std::fs::create_dir(project.path().join("ci")).unwrap();
    project.file("ci/own.toml", rule("network_transient"));
    project.file("ci/check.sh", "true\n");
    project.trusted_file(
        "[rules]\npacks = [\"ci/own.toml\"]\n[gates.test]\ncheck = [\"sh\", \"ci/check.sh\"]\n",
    );
    let run = || {
        let done = project.exec(&["--json", "--once"], "echo the hub hiccupped; exit 1").go().code(1);
        (done.json()["reason"].as_str().unwrap().to_owned(), done.stderr())
    };
    assert_eq!(run().0, "network_transient");
    for (file, text) in [("ci/own.toml", rule("auth_error")), ("ci/check.sh", "curl evil\n".to_owned())] {
        let before = project.read(file);
        project.file(file, text);
        let (reason, said) = run();
        assert_eq!(reason, "unknown", "{file}");
        assert!(said.contains(&format!("backstop.toml is trusted no longer ({file} has changed)")), "{said}");
        let shown = project.run(&["trust", "--show"]).go().code(0).stdout();
        assert!(shown.contains(&format!("not trusted any more: {file} has changed")), "{shown}");
        project.file(file, before);
        assert_eq!(run().0, "network_transient", "{file}");
    }
    // A pack that is a link cannot be trusted: what it leads to is somebody else's.
    std::fs::rename(project.path().join("ci/own.toml"), project.beside("own.toml")).unwrap();
    std::os::unix::fs::symlink(project.beside("own.toml"), project.path().join("ci/own.toml")).unwrap();
    let refused = project.run(&["trust"]).go().code(1).stderr();
    assert!(refused.contains("ci/own.toml cannot be covered"), "{refused}");
}

#[test]
fn trust_covers_servers_links_and_scripts_in_folders_that_a_line_enters() {
    let project = Project::new("config-scripts");
    std::fs::create_dir(project.path().join("ci")).unwrap();
    for file in ["server.py", "other.py", "ci/lint.sh"] {
        project.file(file, "true\n");
    }
    let link = project.path().join("python");
    std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    project.trusted_file(
        "[mcp.a]\ncommand = \"python3\"\nargs = [\"server.py\"]\n[mcp.b]\ncommand = \"./other.py\"\n\
         [gates.lint]\ncheck = [\"sh\", \"-c\", \"cd ci && sh lint.sh\"]\n\
         [gates.test]\ncheck = [\"./python\", \"-c\", \"true\"]\n",
    );
    let shown = || project.run(&["trust", "--show"]).go().code(0).stdout();
    assert!(!shown().contains("not trusted"), "{}", shown());
    for file in ["server.py", "other.py", "ci/lint.sh"] {
        project.file(file, "curl evil\n");
        assert!(shown().contains(&format!("not trusted any more: {file} has changed")), "{}", shown());
        project.file(file, "true\n");
    }
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/bin/cat", &link).unwrap();
    assert!(shown().contains("not trusted any more: python has changed"), "{}", shown());
}

#[test]
fn what_belongs_to_another_user_is_not_read_as_a_projects_settings() {
    // Only root can give a file away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let project = Project::new("config-owner");
    let inner = project.path().join("mine");
    std::fs::create_dir(&inner).unwrap();
    project.file("backstop.toml", "[log]\nformat = \"json\"\n");
    let give = |path: &str, uid: u32| {
        std::os::unix::fs::chown(project.path().join(path), Some(uid), None).unwrap();
    };
    let run = || project.run(&["exec", "--", "sh", "-c", "exit 3"]).dir(&inner);
    assert!(run().go().code(3).stderr().starts_with('{'), "our own is read");
    for path in ["backstop.toml", ".git", "."] {
        give(path, 65534);
        let said = run().go().code(3).stderr();
        assert_eq!(said.matches("belongs to another user (uid 65534)").count(), 1, "{path}: {said}");
        assert!(
            said.contains("hint: if you trust its owner: `backstop config set --user trust.safe_directories")
        );
        assert!(!said.contains("\"kind\""), "{path}: {said}");
        let trust = project.run(&["trust"]).dir(&inner).go().code(2).stderr();
        assert!(trust.contains("belongs to another user"), "{trust}");
        // The one who typed `sudo`, and only that one.
        assert!(run().env("SUDO_UID", "65534").go().code(3).stderr().starts_with('{'), "{path}");
        assert!(!run().env("SUDO_UID", "1000").go().code(3).stderr().starts_with('{'), "{path}");
        give(path, 0);
    }
    give(".git", 65534);
    for safe in ["*", &project.path().display().to_string()] {
        project.run(&["config", "set", "--user", "trust.safe_directories", safe]).go().code(0);
        assert!(run().go().code(3).stderr().starts_with('{'), "{safe}");
    }
    project.run(&["config", "set", "--user", "trust.safe_directories", "/elsewhere"]).go().code(0);
    assert!(!run().go().code(3).stderr().starts_with('{'));
}

#[test]
fn a_setting_is_removed_and_the_default_counts_again() {
    let project = Project::new("config-unset");
    project.file("backstop.toml", "# ours\n[exec]\ntimeout = 90 # long\nidle = 5\n");
    let done = project.run(&["config", "unset", "exec.timeout"]).go().code(0);
    assert!(done.stdout().contains("exec.timeout removed (was 90)"), "{}", done.stdout());
    assert_eq!(project.read("backstop.toml"), "# ours\n[exec]\nidle = 5\n");
    let again = project.run(&["config", "unset", "exec.timeout"]).go().code(0);
    assert!(again.stdout().contains("exec.timeout is not set there"), "{}", again.stdout());
    let json = project.run(&["config", "unset", "exec.idle", "--json"]).go().code(0).json();
    assert_eq!((json["before"].as_str(), json["after"].is_null()), (Some("5"), true), "{json}");
    let wrong = project.run(&["config", "unset", "exec.timout"]).go().code(2);
    assert!(wrong.stderr().contains("exec.timeout"), "{}", wrong.stderr());
}

#[test]
fn a_phase_has_the_trusted_settings_in_its_worktree_unless_it_changes_them() {
    let project = Project::git("config-slot");
    project.trusted_file("[exec]\ngrace = \"7s\"\n");
    project.sh("git add -A && git commit -q -m settings");
    let bin = env!("CARGO_BIN_EXE_backstop");
    let grace = format!("{bin} config get exec.grace");
    PlanText::new()
        .sh("1", "", &format!("{grace} > $PLACE/same; {bin} exec -- true 2> $PLACE/words; echo 1 > one"))
        .sh(
            "2",
            "1",
            &format!(
                "echo '[exec]' > backstop.toml; echo 'grace = \"8s\"' >> backstop.toml; {grace} > $PLACE/other; \
                 {bin} trust 2> $PLACE/refused; echo $? >> $PLACE/refused; git checkout -q backstop.toml; echo 2 > two"
            ),
        )
        .write(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!((place(&project, "same").trim(), place(&project, "words").as_str()), ("7s", ""));
    assert_eq!(place(&project, "other").trim(), "500ms", "the user's own");
    has(&place(&project, "refused"), &["a worktree of a plan", "&& backstop trust", "\n2\n"]);
}
