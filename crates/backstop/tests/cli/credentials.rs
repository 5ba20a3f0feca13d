//! Whose credential was refused, which one it was and how it is renewed, on every surface.

use crate::harness::{Project, Run};
use serde_json::{Value, json};

fn exec(project: &Project, args: &[&str], script: &str) -> Value {
    let mut all = vec!["exec", "--json"];
    all.extend(args);
    all.extend(["--", "sh", "-c", script]);
    project.run(&all).go().code(1);
    let events = project.events();
    events.iter().rev().find(|event| event["kind"] == "error.classified").unwrap()["fault"].clone()
}

#[test]
fn exec_with_a_provider_says_which_credential_and_how_to_renew_it() {
    let project = Project::new("credentials-exec");
    let key = exec(&project, &["--provider", "anthropic"], "echo 'HTTP/1.1 401 Unauthorized' >&2; exit 1");
    assert_eq!(key["reason"], "auth_error");
    assert_eq!(
        (&key["facts"]["provider"], &key["facts"]["credential"]),
        (&json!("anthropic"), &json!("ANTHROPIC_API_KEY"))
    );
    assert_eq!(
        key["suggested_action"],
        "renew ANTHROPIC_API_KEY at https://console.anthropic.com/settings/keys (anthropic)"
    );
    let login = "echo 'API Error: 401 OAuth token has expired. Please run /login' >&2; exit 1";
    let login = exec(&project, &["--provider", "anthropic"], login);
    assert_eq!(login["facts"]["credential"], "the login of Claude Code");
    assert_eq!(login["suggested_action"], "log in again with `claude /login` (anthropic)");
}

#[test]
fn a_refusal_that_names_or_implies_a_provider_says_whose_it_is() {
    let cases = [
        (
            "claude -p hi",
            "API Error: 401 OAuth token has expired. Please obtain a new token · Please run /login",
            "anthropic",
            "log in again with `claude /login` (anthropic)",
        ),
        (
            "codex exec x",
            "ERROR: unexpected status 401 Unauthorized: Missing bearer, url: https://api.openai.com/v1/responses",
            "openai",
            "log in again with `codex login` (openai)",
        ),
        (
            "gh pr create",
            "HTTP 401: Bad credentials (https://api.github.com/graphql)",
            "github",
            "log in again with `gh auth login` (github)",
        ),
        (
            "git push",
            "fatal: Authentication failed for 'https://github.com/a/b.git/'",
            "github",
            "renew GITHUB_TOKEN at https://github.com/settings/tokens (github)",
        ),
        (
            "npm publish",
            "npm error code ENEEDAUTH\nnpm error need auth This command requires you to be logged in",
            "npm",
            "log in again with `npm login` (npm)",
        ),
        (
            "aws s3 ls",
            "An error occurred (ExpiredToken) when calling the ListBuckets operation: The provided token has expired.",
            "aws",
            "log in again with `aws sso login` (aws)",
        ),
        (
            "gcloud run deploy",
            "ERROR: (gcloud.run) There was a problem refreshing your current auth tokens: Reauthentication failed.",
            "gcloud",
            "log in again with `gcloud auth login` (gcloud)",
        ),
        (
            "docker push x/y",
            "denied: requested access to the resource is denied",
            "docker",
            "log in again with `docker login` (docker)",
        ),
        (
            "python x.py",
            "openai.AuthenticationError: Error code: 401 - Incorrect API key provided. Set OPENAI_API_KEY",
            "openai",
            "renew OPENAI_API_KEY at https://platform.openai.com/api-keys (openai)",
        ),
    ];
    for (command, text, provider, action) in cases {
        let args = ["classify", "--json", "--exit", "1", "--command", command];
        let fault = Run::new(&args).stdin(text).go().code(0).json();
        assert_eq!(fault["reason"], "auth_error", "{command}: {fault}");
        assert_eq!(fault["facts"]["provider"], provider, "{command}: {fault}");
        assert_eq!(fault["suggested_action"], action, "{command}: {fault}");
    }
    // Near miss: nothing says whose it is.
    let args = ["classify", "--json", "--exit", "2", "--command", "psql"];
    let fault =
        Run::new(&args).stdin("psql: error: FATAL:  password authentication failed for user \"app\"").go();
    let fault = fault.code(0).json();
    assert_eq!((&fault["reason"], &fault["facts"]["provider"]), (&json!("auth_error"), &Value::Null));
}
