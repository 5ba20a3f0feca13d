//! What `hook on-error` counts, keeps and hands back, as the seed has it.

use crate::docs::fits;
use crate::harness::{Project, schema};
use serde_json::{Value, json};

fn report(project: &Project, report: &Value) -> Value {
    let answer = project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0).json();
    fits(&schema("hook-on-error"), &answer, "hook on-error");
    answer
}

fn error(task: &str, kind: &str, message: &str) -> Value {
    json!({"task_data": {"task_id": task}, "error": {"type": kind, "message": message}})
}

#[test]
fn two_transient_errors_in_turn_end_after_three_attempts() {
    let project = Project::new("hook-class");
    let kinds = ["ConnectionError", "TimeoutError", "ServiceUnavailable"];
    let answers: Vec<(bool, u64)> = kinds
        .iter()
        .map(|kind| report(&project, &error("t", kind, "no")))
        .map(|answer| (answer["retry"].as_bool().unwrap(), answer["attempt"].as_u64().unwrap()))
        .collect();
    assert_eq!(answers, [(true, 1), (true, 2), (false, 3)]);
    // Rate limits have five attempts of their own, whatever else has failed.
    let limits: Vec<bool> = (0..5)
        .map(|_| report(&project, &error("t", "RateLimitExceeded", "slow down"))["retry"].as_bool().unwrap())
        .collect();
    assert_eq!(limits, [true, true, true, true, false]);
    // Another task begins anew, and so does a resolved one.
    assert_eq!(report(&project, &error("u", "TimeoutError", "no"))["attempt"], 1);
    project.run(&["hook", "resolved", "t"]).go().code(0);
    assert_eq!(report(&project, &error("t", "TimeoutError", "no"))["attempt"], 1);
}

#[test]
fn a_system_crash_is_critical_and_a_crash_of_a_task_is_high() {
    let project = Project::new("hook-crash");
    for (kind, severity) in [("System crash", "critical"), ("SystemCrash", "critical"), ("crash", "high")] {
        let answer = report(&project, &error(kind, kind, "the worker's host went away"));
        assert_eq!((&answer["reason"], &answer["severity"]), (&json!("crash"), &json!(severity)), "{answer}");
        assert_eq!(answer["retry"], false);
    }
}

#[test]
fn trace_root_place_and_every_field_of_the_context_are_kept_redacted_and_shown() {
    let project = Project::new("hook-kept");
    let token = format!("ghp_{}", "Ab12".repeat(9));
    let trace = format!(
        "Traceback (most recent call last):\n  File \"core/net.py\", line 9, in send\n    s.send()\n\
         ConnectionResetError: reset {token}\n\nThe above exception was the direct cause of the following exception:\n\n\
         Traceback (most recent call last):\n  File \"core/mcp_client.py\", line 45, in call_tool\n    send()\n\
         ConnectionError: Connection refused\n"
    );
    let answer = report(
        &project,
        &json!({"task_data": {"task_id": "t", "title": "post result"},
            "error": {"type": "ConnectionError", "message": "Connection refused", "stack_trace": trace},
            "context": {"current_step": "result_posting", "elapsed_seconds": 23.4, "partial_result": "half",
                "repository": "a/b", "pr": {"number": 12, "token": token}}}),
    );
    let info = &answer["error_info"];
    assert_eq!(
        (&info["file"], &info["line"], &info["function"]),
        (&json!("core/mcp_client.py"), &json!(45), &json!("call_tool"))
    );
    assert!(info["root"].as_str().unwrap().starts_with("ConnectionResetError"), "{info}");
    assert!(info["stack_trace"].as_str().unwrap().contains("in call_tool"), "{info}");
    assert_eq!(info["task_state"]["current_step"], "result_posting");
    assert_eq!(info["task_state"]["fields"]["repository"], "a/b");
    assert_eq!(info["task_state"]["fields"]["task_data.title"], "post result");
    assert!(!answer.to_string().contains("Ab12"), "{answer}");
    let shown = project.run(&["diagnose", "t", "--json"]).go().code(0).json();
    fits(&schema("diagnose"), &shown, "diagnose");
    let (details, context) = (&shown["errors"][0]["error_details"], &shown["errors"][0]["execution_context"]);
    assert!(details["stack_trace"].as_str().unwrap().contains("in call_tool"), "{shown}");
    assert!(details["root"].as_str().unwrap().starts_with("ConnectionResetError"), "{shown}");
    assert_eq!(
        (&context["fields"]["repository"], &context["partial_result"]),
        (&json!("a/b"), &json!("half"))
    );
    assert!(!shown.to_string().contains("Ab12"), "{shown}");
    let text = project.run(&["diagnose", "t"]).go().code(0).stdout();
    for part in
        ["stack trace", "root cause", "in call_tool", "other fields", "repository: a/b", "partial result"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Too many fields are counted, not dropped in silence.
    let many: serde_json::Map<String, Value> = (0..60).map(|n| (format!("f{n:02}"), json!(n))).collect();
    let answer =
        report(&project, &json!({"task_data": {"task_id": "u"}, "error": {"message": "x"}, "context": many}));
    assert_eq!(answer["error_info"]["task_state"]["fields_omitted"], 10);
}

#[test]
fn the_fallback_of_a_task_applies_once_it_is_not_retried() {
    let project = Project::new("hook-fallback");
    let with = |kind: &str, context: Value| json!({"task_data": {"task_id": kind}, "error": {"type": kind, "message": "no"}, "context": context});
    let context =
        json!({"partial": ["step 1"], "fallback": ["mirror", "cached result"], "current_step": "mirror"});
    let first = report(&project, &with("TimeoutError", context.clone()));
    assert_eq!((&first["retry"], &first["fallback"]), (&json!(true), &Value::Null));
    assert_eq!(first["partial_result"], json!({"handling": "keep", "value": ["step 1"]}));
    let over = report(&project, &with("ResourceNotFound", context));
    assert_eq!((&over["retry"], &over["retry_after_seconds"]), (&json!(false), &json!(0.0)));
    assert_eq!(
        (&over["fallback"]["action"], &over["fallback"]["to"]),
        (&json!("fallback"), &json!("cached result"))
    );
    assert_eq!(over["partial_result"]["handling"], "keep");
    assert!(over["message"].as_str().unwrap().contains("**Fallback:** `cached result`"), "{over}");
    let shown = project.run(&["diagnose", "ResourceNotFound", "--json"]).go().code(0).json();
    assert_eq!(shown["errors"][0]["execution_context"]["fallbacks"], json!(["mirror", "cached result"]));
    let status = project.run(&["hook", "status", "ResourceNotFound", "--json"]).go().code(0).json();
    assert_eq!(status["tasks"][0]["context"]["fallback"], "cached result");
    // What the user typed is wrong on every way.
    let user = report(&project, &with("InvalidCommand", json!({"fallback": "cached result"})));
    assert_eq!(user["fallback"]["action"], "surface");
}

#[test]
fn a_missing_repository_has_its_status_and_whose_credential_was_refused_is_named() {
    let project = Project::new("hook-facts");
    report(&project, &error("t", "ResourceNotFound", "HTTP 404: Repository not found"));
    let classified = |project: &Project| {
        let events = project.events();
        events.iter().rev().find(|event| event["kind"] == "error.classified").unwrap()["fault"].clone()
    };
    assert_eq!(classified(&project)["facts"]["status"], 404);
    let answer =
        report(&project, &error("u", "AuthenticationError", "401 from https://api.github.com/repos/a/b"));
    let info = &answer["error_info"];
    assert_eq!((&info["provider"], &info["credential"]), (&json!("github"), &json!("GITHUB_TOKEN")));
    assert_eq!(info["renewal"], "https://github.com/settings/tokens");
    assert!(
        answer["fallback"]["next"].as_str().unwrap().starts_with("renew GITHUB_TOKEN at https://"),
        "{answer}"
    );
}

#[test]
fn the_answer_status_and_diagnosis_of_an_ending_agree() {
    let project = Project::new("hook-one-ending");
    let unavailable = error("t", "ServiceUnavailable", "HTTP 503 from the API");
    for attempt in [1, 2] {
        let answer = report(&project, &unavailable);
        assert_eq!((&answer["attempt"], &answer["error_type"]), (&json!(attempt), &json!("transient")));
        let shown = project.run(&["diagnose", "t", "--json"]).go().code(0).json();
        assert_eq!(shown["errors"][0]["error_details"]["reason"], "network_transient");
        assert_eq!(shown["errors"][0]["execution_context"]["fallback"], Value::Null);
    }
    let answer = report(&project, &unavailable);
    assert_eq!(answer["reason"], "network_permanent");
    assert_eq!(
        (&answer["error_type"], &answer["error_info"]["error_type"]),
        (&json!("permanent"), &json!("permanent"))
    );
    assert!(answer["message"].as_str().unwrap().contains("`network_permanent` (permanent)"), "{answer}");
    let status = project.run(&["hook", "status", "t", "--json"]).go().code(0).json();
    let shown = project.run(&["diagnose", "t", "--json"]).go().code(0).json();
    fits(&schema("diagnose"), &shown, "diagnose");
    let (task, details) = (&status["tasks"][0], &shown["errors"][0]["error_details"]);
    for field in ["reason", "severity"] {
        assert_eq!(task[field], answer[field], "{status}");
        assert_eq!(details[field], answer[field], "{shown}");
    }
    assert_eq!((&task["error_type"], &details["class"]), (&answer["error_type"], &answer["error_type"]));
    assert_eq!(details["suggested_action"], answer["fallback"]["next"]);
    assert!(project.run(&["hook", "status"]).go().code(0).stdout().contains("network_permanent"));
    let text = project.run(&["diagnose", "t"]).go().code(0).stdout();
    assert!(text.contains("network_permanent (permanent, high)"), "{text}");
    assert!(text.contains("check the service's status"), "{text}");
    // The failures are counted by what they were: the next one is no first attempt.
    assert_eq!(report(&project, &unavailable)["attempt"], 4);
}

#[test]
fn diagnose_shows_the_reported_message_and_what_the_trace_ends_with() {
    let project = Project::new("hook-message");
    let trace =
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nValueError: inner\n";
    for kind in ["SystemCrash", "CustomError"] {
        let mut crash = error(kind, kind, "host lost power");
        crash["error"]["stack_trace"] = json!(trace);
        report(&project, &crash);
        let shown = project.run(&["diagnose", kind, "--json"]).go().code(0).json();
        let details = &shown["errors"][0]["error_details"];
        assert_eq!(
            (&details["exception_type"], &details["exception_message"], &details["root"]),
            (&json!(kind), &json!("host lost power"), &json!("ValueError: inner")),
            "{shown}"
        );
        assert_eq!((&details["file"], &details["line"]), (&json!("a.py"), &json!(3)), "{shown}");
    }
    let text = project.run(&["diagnose", "SystemCrash"]).go().code(0).stdout();
    assert!(text.contains("message              host lost power\n"), "{text}");
}

#[test]
fn diagnose_says_which_fallback_applies() {
    let project = Project::new("hook-fallback-shown");
    for (kind, action, to, text) in [
        ("ResourceNotFound", "fallback", json!("cached"), "cached (offered: mirror, cached)"),
        ("DiskFull", "defer", Value::Null, "put aside, see `backstop deferred` (offered: mirror, cached)"),
        ("InvalidCommand", "surface", Value::Null, "none applies (offered: mirror, cached)"),
    ] {
        let mut failed = error(kind, kind, "no");
        failed["context"] = json!({"fallback": ["mirror", "cached"], "current_step": "mirror"});
        let answer = report(&project, &failed);
        assert_eq!(
            (&answer["fallback"]["action"], &answer["fallback"]["to"]),
            (&json!(action), &to),
            "{answer}"
        );
        let shown = project.run(&["diagnose", kind, "--json"]).go().code(0).json();
        fits(&schema("diagnose"), &shown, "diagnose");
        let fallback = &shown["errors"][0]["execution_context"]["fallback"];
        for field in ["action", "to", "until"] {
            assert_eq!(fallback[field], answer["fallback"][field], "{kind} {field}");
        }
        let shown = project.run(&["diagnose", kind]).go().code(0).stdout();
        assert!(shown.contains(&format!("fallback             {text}\n")), "{shown}");
    }
}

#[test]
fn a_guard_changes_after_the_failure_is_recorded_and_before_it_is_decided_about() {
    let project = Project::new("hook-report-order");
    let message = "HTTP 429 rate_limit_error from api.anthropic.com: retry-after: 1800";
    let limited =
        json!({"task_data": {"task_id": "t"}, "error": {"type": "RateLimitExceeded", "message": message}});
    report(&project, &limited);
    let kinds = project.kinds();
    let order = ["run.started", "error.classified", "guard.updated", "decision.made", "run.ended"];
    let at: Vec<usize> =
        order.iter().map(|kind| kinds.iter().position(|found| found == kind).unwrap()).collect();
    assert!(at.is_sorted(), "{kinds:?}");
    project.run(&["guard", "check", "anthropic"]).go().code(75);
}
