//! Planted secrets are found nowhere in what Backstop keeps or says.

use crate::harness::Project;
use std::path::Path;

const CANARY: &str = "C4n4ry-Hunter2-Value";
const BASE64: &str = "QzRuNHJ5LUh1bnRlcjItVmFsdWU=";

fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    found
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[test]
fn planted_secrets_are_found_nowhere() {
    let project = Project::new("secrets");
    let token = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ");
    let key = "MIIEowIBAAKCAQEAplantedkeybody";
    let script = format!(
        "printf 'error: token C4n4ry-Hun' >&2; sleep 0.1; printf 'ter2-Value is wrong\\n' >&2; \
         echo 'https://bob:{CANARY}@example.invalid/x' >&2; echo '{{\"api_key\": \"{CANARY}\"}}' >&2; \
         echo 'Authorization: Basic {BASE64}' >&2; echo 'using {token}' >&2; \
         printf -- '-----BEGIN RSA PRIVATE KEY-----\\n{key}\\n-----END RSA PRIVATE KEY-----\\n' >&2; \
         echo 'npm error code ECONNRESET {CANARY}' >&2; exit 1"
    );
    let why = format!("because {CANARY}");
    let flags = [
        "--attempts",
        "2",
        "--json",
        "--report",
        "report.json",
        "--caller",
        CANARY,
        "--session",
        CANARY,
        "--why",
        &why,
        "--on",
        "unknown=retry",
    ];
    let done = project.exec(&flags, &script).env("ACME_API_KEY", CANARY).go().code(1);
    project.exec(&["--report", "report.md"], &script).env("ACME_API_KEY", CANARY).go().code(1);
    project
        .exec(&["--log-format", "json", "--quiet-failure"], "exit 1")
        .env("ACME_API_KEY", CANARY)
        .go()
        .code(0);
    let mut said = vec![
        ("--json".to_owned(), done.stdout().into_bytes()),
        ("report.json".to_owned(), project.read("report.json").into_bytes()),
        ("report.md".to_owned(), project.read("report.md").into_bytes()),
    ];
    for args in [
        &["events", "--json"][..],
        &["events"],
        &["events", "--jsonl"],
        &["explain", "last"],
        &["runs", "--json"],
        &["runs"],
    ] {
        said.push((args.join(" "), project.run(args).go().code(0).stdout().into_bytes()));
    }
    let state = files_below(&project.state());
    assert!(
        state.iter().any(|(name, _)| name.ends_with(".db")),
        "{:?}",
        state.iter().map(|s| &s.0).collect::<Vec<_>>()
    );
    for (name, content) in said.iter().chain(&state) {
        for secret in [CANARY, BASE64, token, key] {
            assert!(!contains(content, secret), "{secret} is in {name}");
        }
    }
    // The command's own stream is its own.
    assert!(done.stderr().contains(CANARY));
    assert!(project.run(&["explain", "last"]).go().code(0).stdout().len() > 100);
}

#[test]
fn a_secret_that_was_typed_is_neither_stored_nor_run_again_without_it() {
    let project = Project::new("secrets-typed");
    let script = "echo 'npm error code ECONNRESET'; exit 1";
    let args = ["exec", "--once", "--json", "--", "sh", "-c", script, "--token", CANARY];
    let json = project.run(&args).env("ACME_TOKEN", CANARY).go().code(1).json();
    let run = json["run"].as_str().unwrap();
    assert!(json["operation"].as_str().unwrap().contains("[redacted]"), "{json}");
    let refused = project.run(&["exec", "--confirm", run]).go().code(125).stderr();
    assert!(
        refused.contains("holds a secret") && refused.contains("-- COMMAND`, with the command as it was"),
        "{refused}"
    );
    for (name, content) in files_below(&project.state()) {
        assert!(!contains(&content, CANARY), "{name}");
    }
}

#[test]
fn a_secret_in_a_program_s_name_is_not_said() {
    let project = Project::new("secrets-program");
    let done = project
        .run(&["exec", "--json", "--report", "r.json", "--", &format!("./no-{CANARY}")])
        .env("DB_PASS", CANARY)
        .go()
        .code(127);
    for text in [done.stdout(), done.stderr(), project.read("r.json")] {
        assert!(!text.contains(CANARY), "{text}");
    }
}

#[test]
fn variables_named_in_the_config_are_masked_too() {
    let project = Project::new("secrets-config");
    project.file("backstop.toml", "[redact]\nenv = [\"ACME_COOKIE\"]\n");
    project
        .exec(&[], &format!("echo cookie {CANARY} refused; exit 1"))
        .env("ACME_COOKIE", CANARY)
        .go()
        .code(1);
    let story = project.run(&["explain", "last"]).env("ACME_COOKIE", CANARY).go().code(0).stdout();
    assert!(!story.contains(CANARY) && story.contains("[redacted]"), "{story}");
}

#[test]
fn variables_named_in_the_config_are_masked_before_the_project_is_used() {
    let project = Project::new("secrets-early");
    project.file("backstop.toml", "[redact]\nenv = [\"ACME_COOKIE\"]\n");
    let outer =
        project.exec(&[], "true").env("ACME_COOKIE", CANARY).env("BACKSTOP_RUN_ID", CANARY).go().code(0);
    let flag = project.run(&["events", "--kind", CANARY]).env("ACME_COOKIE", CANARY).go().code(2);
    for text in [outer.stderr(), flag.stderr()] {
        assert!(!text.contains(CANARY) && text.contains("[redacted]"), "{text}");
    }
}

#[test]
fn secrets_of_settings_that_take_no_effect_are_masked() {
    let words = ["plain-words-one", "plain-words-two", "plain-words-three", "plain-words-four"];
    let broken = format!(
        "[mcp.s]\nenv = {{ FOO_TOKEN = \"{}\" , BAR = \"x\"\nheaders.Authorization = \"Bearer {}\"\n\
         [llm.upstream.x\napi_key = '{}'\npassword = {}\ntoken_env = \"ACME_TOKEN\"\n",
        words[0], words[1], words[2], words[3]
    );
    let untrusted = format!(
        "[mcp.s]\ncommand = \"server --token {}\"\nheaders.Authorization = \"Bearer {}\"\nheaders.X-Api-Key = \"{}\"\n\
         env = {{ DB_PASSWORD = \"{}\" }}\n",
        words[0], words[1], words[2], words[3]
    );
    for (name, text) in [("broken", broken.into_bytes()), ("untrusted", untrusted.into_bytes())] {
        for bytes in [text.clone(), [&text[..], b"\xff\xfe"].concat()] {
            let project = Project::new(&format!("secrets-{name}"));
            project.file("backstop.toml", bytes);
            let script = format!("echo said {} ACME_TOKEN; exit 1", words.join(" "));
            let done = project.exec(&["--json", "--report", "r.json"], &script).go().code(1);
            let story = project.run(&["explain", "--log"]).go().code(0).stdout();
            let check = project.run(&["config", "check", "--json"]).go();
            for text in [done.stdout(), story, project.read("r.json"), check.stdout(), check.stderr()] {
                for word in words {
                    assert!(!text.contains(word), "{name}, {word}: {text}");
                }
            }
            assert!(done.stdout().contains("ACME_TOKEN"), "the name of a variable is no secret");
        }
    }
}
