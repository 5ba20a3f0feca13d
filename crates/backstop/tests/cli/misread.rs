//! Outputs that were once misread, each with its reason and its cause.

use crate::harness::Run;
use serde_json::{Value, json};

fn classified(command: &str, exit: &str, text: &str) -> Value {
    let args = ["classify", "--json", "--exit", exit, "--command", command];
    Run::new(&args).stdin(text).go().code(0).json()
}

#[test]
fn a_difference_that_was_asked_for_is_no_failure_of_any_kind() {
    let words = "docs are out of date, Error: connection refused, 3 failed";
    let patch =
        format!("diff --git a/gen.md b/gen.md\n--- a/gen.md\n+++ b/gen.md\n@@ -1 +1 @@\n-{words}\n+x\n");
    let fault = classified("git diff --exit-code", "1", &patch);
    assert_eq!(
        (&fault["reason"], &fault["facts"]["files"]),
        (&json!("unknown"), &json!(["gen.md"])),
        "{fault}"
    );
    let normal = format!("1c1\n< {words}\n---\n> y\n");
    assert_eq!(classified("diff a b", "1", &normal)["reason"], "unknown");
    // Near misses: git itself failed; something else failed in the same command line.
    let fault = classified("git diff --exit-code", "128", "fatal: not a git repository\n");
    assert_eq!(fault["reason"], "vcs_error", "{fault}");
    let tests =
        classified("npm test && git diff --exit-code", "1", "Tests:       3 failed, 44 passed, 47 total\n");
    assert_eq!(tests["reason"], "test_failure");
}

#[test]
fn a_network_that_terraform_cannot_reach_is_no_mistake_in_its_files() {
    for error in [
        "│ Error: Post \"https://10.0.0.1/api\": dial tcp 10.0.0.1:443: connect: connection refused\n",
        "Error: dial tcp 10.0.0.1:443: connect: connection refused\n",
    ] {
        for command in ["terraform apply", "terraform plan"] {
            let fault = classified(command, "1", error);
            assert_eq!(fault["reason"], "network_transient", "{fault}");
        }
    }
    let fault = classified("terraform plan", "1", "│ Error: Unsupported argument\n");
    assert_eq!(fault["reason"], "validation", "{fault}");
}

#[test]
fn codes_of_sysexits_mean_nothing_in_tools_that_have_codes_of_their_own() {
    let cases = [
        ("xcodebuild build", "65", "** BUILD FAILED **\n", "tool_failed"),
        (
            "xcodebuild build",
            "65",
            "/x/A.swift:3:5: error: cannot find 'x' in scope\n** BUILD FAILED **\n",
            "compile_error",
        ),
        (
            "xcodebuild build",
            "65",
            "The following build commands failed:\n\tCompileC /b/A.o /x/A.m normal\n",
            "compile_error",
        ),
        ("xcodebuild build", "64", "", "invalid_usage"),
        ("npx mocha", "65", "", "test_failure"),
        ("curl -s https://x", "77", "", "network_permanent"),
        ("curl -s ftp://x", "67", "", "auth_error"),
        ("dart format .", "65", "", "compile_error"),
        ("postmap x", "65", "", "invalid_usage"),
    ];
    for (command, exit, text, want) in cases {
        assert_eq!(classified(command, exit, text)["reason"], want, "{command} {exit}: {text}");
    }
}

#[test]
fn advice_that_a_tool_prints_after_its_error_is_not_the_cause() {
    let npm = "npm error Missing script: \"nosuch\"\nnpm error\nnpm error To see a list of scripts, run:\nnpm error   npm run\n\
               npm error A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log\n";
    let cases = [
        ("npm run nosuch", "1", npm, "Missing script: \"nosuch\""),
        (
            "npx nosuch",
            "1",
            "npm error could not determine executable to run\nnpm error A complete log of this run can be found in: /x\n",
            "could not determine executable to run",
        ),
        (
            "just deplyo",
            "1",
            "error: Justfile does not contain recipe `deplyo`\nDid you mean `deploy`?\n",
            "Justfile does not contain recipe `deplyo`",
        ),
    ];
    for (command, exit, text, want) in cases {
        let cause = classified(command, exit, text)["cause"].as_str().unwrap_or_default().to_owned();
        assert!(cause.contains(want), "{command}: {cause}");
    }
}

#[test]
fn a_test_that_is_printed_three_times_is_listed_once() {
    let playwright = "Running 1 test using 1 worker\n\n  1) [chromium] › a.spec.ts:3:5 › cart › adds numbers ───────\n\n    \
                      Error: expect(received).toBe(expected)\n\n    Retry #1 ────\n\n  1 failed\n    \
                      [chromium] › a.spec.ts:3:5 › cart › adds numbers ─────────────\n";
    let fault = classified("npx playwright test", "1", playwright);
    assert_eq!(fault["facts"]["failed_tests"], json!(["cart > adds numbers"]), "{fault}");
    let rspec = "Failures:\n\n  1) Calc.slug handles nil\n     Failure/Error: expect(Calc.slug(nil)).to eq(\"\")\n\n\
                 1 example, 1 failure\n\nFailed examples:\n\nrspec ./spec/calc_spec.rb:7 # Calc.slug handles nil\n";
    let fault = classified("rspec", "1", rspec);
    assert_eq!(fault["facts"]["failed_tests"], json!(["Calc.slug handles nil"]), "{fault}");
}

#[test]
fn a_removed_resource_and_parameters_that_do_not_fit() {
    let gone = Run::new(&["classify", "--json", "--status", "410"]).stdin("gone").go().code(0).json();
    assert_eq!(gone["reason"], "network_permanent");
    let missing = Run::new(&["classify", "--json", "--status", "404"]).stdin("no").go().code(0).json();
    assert_eq!(missing["reason"], "validation");
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid arguments for tool get_weather"}}"#;
    let params = Run::new(&["classify", "--json", "--status", "200"]).stdin(body).go().code(0).json();
    assert_eq!(params["reason"], "invalid_parameters");
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: nope"}}"#;
    let tool = Run::new(&["classify", "--json", "--status", "200"]).stdin(body).go().code(0).json();
    assert_eq!(tool["reason"], "tool_not_found");
}
