use crate::harness::{Folder, Project, Run};

#[test]
fn reasons_in_three_forms() {
    let table = Run::new(&["reasons"]).go().code(0).stdout();
    assert!(table.starts_with("REASON "), "{table}");
    let json = Run::new(&["reasons", "--json"]).go().code(0).json();
    assert_eq!(json["reasons"].as_array().unwrap().len(), table.lines().count() - 1);
    assert!(Run::new(&["reasons", "--markdown"]).go().code(0).stdout().starts_with("| reason |"));
}

#[test]
fn explain_knows_other_names_too() {
    let page = Run::new(&["explain", "rate_limited"]).go().code(0).stdout();
    assert!(page.starts_with("# rate_limited\n"), "{page}");
    assert_eq!(Run::new(&["explain", "RateLimitExceeded"]).go().code(0).stdout(), page);
    assert_eq!(Run::new(&["explain", "timeout", "--json"]).go().code(0).json()["retry"], "plain");
}

#[test]
fn completions_for_every_shell_and_a_man_page_for_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(Run::new(&["completions", shell]).go().code(0).stdout().contains("classify"), "{shell}");
    }
    let folder = Folder::new("man");
    Run::new(&["man"]).arg(folder.path()).go().code(0);
    let pages: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["backstop.1", "backstop-classify.1", "backstop-rules-test.1"] {
        assert!(pages.contains(&page.to_owned()), "{page} in {pages:?}");
    }
}

#[test]
fn commands_without_an_action_show_and_say_what_to_type_next() {
    let project = Project::new("reference-bare");
    for (command, says) in [
        ("guard", "`backstop exec --provider NAME -- COMMAND`"),
        ("budget", "`backstop budget set NAME UNITS --per day`"),
        ("config", "exec.timeout"),
        ("notify", "`backstop config set notify.here.type terminal --user`"),
        ("explain", "`backstop exec -- COMMAND`"),
        ("deferred", "there is no deferred work"),
        ("rules", "RULE"),
    ] {
        let done = project.run(&[command]).go().code(0);
        assert!(done.stdout().contains(says), "{command}: {}", done.stdout());
    }
    project.run(&["budget", "set", "night", "5"]).go().code(0);
    project.exec(&[], "echo npm error code E404; exit 1").go().code(1);
    let headers = ["guard", "ingest", "groq", "--headers", "-", "--status", "429"];
    project.run(&headers).stdin("retry-after: 60").go();
    for (command, says) in [("guard", "groq"), ("budget", "night"), ("explain", "exit 1")] {
        let done = project.run(&[command]).go().code(0);
        assert!(done.stdout().contains(says), "{command}: {}", done.stdout());
    }
}

#[test]
fn commands_without_an_action_show_json_too() {
    let project = Project::new("reference-bare-json");
    project.run(&["budget", "set", "night", "5"]).go().code(0);
    for (command, action) in [
        ("guard", "status"),
        ("deferred", "list"),
        ("budget", "status"),
        ("notify", "list"),
        ("config", "show"),
    ] {
        let bare = project.run(&[command, "--json"]).go().code(0).json();
        assert_eq!(bare, project.run(&[command, action, "--json"]).go().code(0).json(), "{command}");
        assert!(bare["schema"].is_u64(), "{command}: {bare}");
    }
}

#[test]
fn runs_of_every_project_are_listed_with_their_project() {
    let one = Project::new("reference-all-one");
    let two = Project::new("reference-all-two");
    let state = one.state().display().to_string();
    let exec = ["exec", "--", "sh", "-c", "exit 3"];
    one.run(&exec).go().code(3);
    two.run(&exec).env("BACKSTOP_STATE_DIR", &state).go().code(3);
    assert_eq!(one.run(&["runs", "--json"]).go().code(0).json()["runs"].as_array().unwrap().len(), 1);
    let json = one.run(&["runs", "--all", "--json"]).go().code(0).json();
    let projects: Vec<&str> =
        json["runs"].as_array().unwrap().iter().map(|run| run["project"].as_str().unwrap()).collect();
    let path = |project: &Project| project.path().canonicalize().unwrap().display().to_string();
    assert_eq!(projects, [path(&two), path(&one)]);
    let text = one.run(&["runs", "--all"]).dir(std::path::Path::new("/")).go().code(0).stdout();
    assert!(text.starts_with("PROJECT"), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(one.run(&["runs", "--all", "-n", "1"]).go().code(0).stdout().lines().count(), 2);
}

#[test]
fn classify_answers_a_condition_by_its_exit_code() {
    let reset = "npm error code ECONNRESET\n";
    let is = |what: &[&str], input: &str| {
        let mut args = vec!["classify", "--exit", "1"];
        for what in what {
            args.extend(["--is", what]);
        }
        Run::new(&args).stdin(input).go()
    };
    for (what, code) in [
        (&["retryable"][..], 0),
        (&["transient"], 0),
        (&["network_transient"], 0),
        (&["permanent"], 1),
        (&["test_failure"], 1),
        (&["test_failure", "transient"], 0),
    ] {
        let done = is(what, reset).code(code);
        assert_eq!((done.stdout(), done.stderr()), (String::new(), String::new()), "{what:?}");
    }
    is(&["retryable"], "error[E0308]: mismatched types\n").code(1);
    let done = is(&["retriable"], reset).code(2);
    assert!(done.stderr().contains("transient, permanent, user, system"), "{}", done.stderr());
    // Success is no failure of any kind, and what cannot be read is no answer.
    Run::new(&["classify", "--exit", "0", "--is", "retryable"]).go().code(1);
    Run::new(&["classify", "--is", "retryable", "/no/such/file"]).go().code(2);
    let json = Run::new(&["classify", "--exit", "1", "--is", "permanent", "--json"])
        .stdin(reset)
        .go()
        .code(1)
        .json();
    assert_eq!(json["reason"], "network_transient");
}

#[test]
fn help_is_grouped_short_with_h_and_whole_with_help() {
    let help = Run::new(&["--help"]).go().code(0).stdout();
    for group in ["Run:", "Look:", "Limits:", "Set up:"] {
        assert!(help.lines().any(|line| line == group), "{group}: {help}");
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let glossary = help.lines().find_map(|line| line.strip_prefix("Terms: ")).unwrap();
    assert!(root.join(glossary).is_file(), "{glossary}");
    let of = |words: &[&str]| Run::new(words).go().code(0).stdout();
    let (short, whole) = (of(&["exec", "-h"]), of(&["exec", "--help"]));
    assert!(short.contains("--timeout") && !short.contains("--quiet-failure"), "{short}");
    assert!(whole.contains("--timeout") && whole.contains("--quiet-failure"), "{whole}");
    // Shown where it means something.
    assert!(whole.contains("--log-format"), "{whole}");
    assert!(!of(&["reasons", "--help"]).contains("--log-format"));
}

#[test]
fn comments_are_wrapped_at_100_columns() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<_> = std::fs::read_dir(&crates).unwrap().flatten().map(|e| e.path()).collect();
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            read += 1;
            let mut in_code = false;
            for (at, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
                let Some(comment) = line.trim_start().strip_prefix("//") else {
                    in_code = false;
                    continue;
                };
                let comment = comment.trim_start_matches(['/', '!']).trim_start();
                in_code ^= comment.starts_with("```");
                let columns = line.chars().count();
                let is_whole = in_code || comment.starts_with('|') || comment.contains("://");
                assert!(is_whole || columns <= 100, "{}:{}: {columns} columns", path.display(), at + 1);
            }
        }
    }
    assert!(read > 300, "{read}");
}

#[test]
fn prose_is_wrapped_at_100_columns() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = |folder: &str| std::fs::read_dir(root.join(folder)).unwrap().flatten().map(|e| e.path());
    let pages: Vec<_> =
        pages("").chain(pages("docs")).filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    assert!(pages.len() > 20, "{pages:?}");
    for page in pages {
        let mut in_code = false;
        for (at, line) in std::fs::read_to_string(&page).unwrap().lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            // Rows of tables and addresses cannot be broken.
            let is_whole = in_code || line.starts_with('|') || line.contains("://");
            let columns = line.chars().count();
            assert!(is_whole || columns <= 100, "{}:{}: {columns} columns", page.display(), at + 1);
        }
    }
}

/// The lines of a file that are no tests: tests stand at its end.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_start = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ");
    lines.windows(2).position(is_start).unwrap_or(lines.len())
}

#[test]
fn the_command_line_has_no_room_for_logic() {
    fn count(folder: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| match path.is_dir() {
                true => count(&path),
                false => lines_without_tests(&std::fs::read_to_string(&path).unwrap()),
            })
            .sum()
    }
    let lines = count(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(lines < 7000, "{lines} lines: what is logic belongs to a library (ARCHITECTURE.md)");
}

#[test]
fn a_log_format_acts_or_is_said_to_change_nothing() {
    let project = Project::new("reference-log-format");
    let help = project.run(&["classify", "--help"]).go().code(0).stdout();
    assert!(help.contains("--log-format"), "{help}");
    let classified =
        project.run(&["classify", "--log-format", "json", "--exit", "1"]).stdin("x").go().code(0);
    assert!(classified.json()["reason"].is_string());
    for command in [&["reasons"][..], &["runs"], &["config", "show"]] {
        let plain = project.run(command).go().code(0);
        assert!(!plain.stderr().contains("--log-format"), "{command:?}: {}", plain.stderr());
        let given = project.run(&[command, &["--log-format", "json"]].concat()).go().code(0);
        assert!(given.stderr().contains("--log-format changes nothing"), "{command:?}: {}", given.stderr());
        assert_eq!(given.stdout(), plain.stdout(), "{command:?}");
    }
}
