//! Every row of `machine.jsonl`, and whatever else may come in a line.

use backstop_campaign::machine::{FUNCTIONS, answer};
use backstop_core::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

fn ask(name: &str, input: &Value) -> Value {
    let line = json!({"fn": name, "input": input}).to_string();
    let answer = answer(&line, Timestamp::from_millis(0));
    answer.get("output").cloned().unwrap_or_else(|| panic!("{name}: {answer}"))
}

/// Whether an answer has what a row asks for: an object is a part that must be there.
fn fits(wanted: &Value, found: Option<&Value>) -> Result<(), String> {
    let differs = || Err(format!("wanted {wanted}, found {found:?}"));
    if let Some(object) = wanted.as_object() {
        if let Some(text) = object.get("$icontains") {
            let text = text.as_str().unwrap_or_default().to_lowercase();
            let has = found.and_then(Value::as_str).is_some_and(|found| found.to_lowercase().contains(&text));
            return if has { Ok(()) } else { differs() };
        }
        if object.contains_key("$exists") {
            return if found.is_some_and(|found| !found.is_null()) { Ok(()) } else { differs() };
        }
        if object.contains_key("$absent") {
            return if found.is_none() { Ok(()) } else { differs() };
        }
        if let Some(length) = object.get("$len") {
            let has = found.and_then(Value::as_array).map(|list| json!(list.len()));
            return if has.as_ref() == Some(length) { Ok(()) } else { differs() };
        }
        if let Some(set) = object.get("$set") {
            let sorted = |list: &Value| {
                let mut all: Vec<String> =
                    list.as_array().into_iter().flatten().map(Value::to_string).collect();
                all.sort();
                all
            };
            return if found.map(&sorted) == Some(sorted(set)) { Ok(()) } else { differs() };
        }
        if let Some(find) = object.get("$find") {
            let one = found
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .find(|one| fits(find, Some(one)).is_ok());
            return fits(&object["is"], one);
        }
        return object.iter().try_for_each(|(name, wanted)| {
            fits(wanted, found.and_then(|found| found.get(name))).map_err(|error| format!("{name}: {error}"))
        });
    }
    if let (Some(wanted), Some(found)) = (wanted.as_array(), found.and_then(Value::as_array)) {
        if wanted.len() != found.len() {
            return differs();
        }
        return wanted.iter().zip(found).try_for_each(|(wanted, found)| fits(wanted, Some(found)));
    }
    if found == Some(wanted) { Ok(()) } else { differs() }
}

#[test]
fn every_row_of_the_examples_is_answered_as_it_says() {
    let rows: Vec<Value> =
        include_str!("machine.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(FUNCTIONS.iter().all(|name| rows.iter().any(|row| row["fn"] == *name)), "one example each");
    for row in &rows {
        let name = row["fn"].as_str().unwrap();
        let output = ask(name, &row["input"]);
        fits(&row["output"], Some(&output)).unwrap_or_else(|error| panic!("{name}: {error}\n{output:#}"));
    }
}

fn tasks(rows: &[(&str, &str, &str)]) -> Value {
    let task = |(seq, waits, status): &(&str, &str, &str)| {
        let waits: Vec<&str> = waits.split_whitespace().collect();
        json!({"seq": seq, "slug": format!("t-{seq}"), "depends": waits, "status": status})
    };
    rows.iter().map(task).collect()
}

const CHAIN: [(&str, &str, &str); 4] =
    [("001", "", "blocked"), ("002", "001", "pending"), ("003", "002", "pending"), ("004", "", "complete")];

#[test]
fn a_chain_behind_a_blocked_task_is_unreachable_as_a_whole() {
    let found = ask("dag.cascade", &json!({"tasks": tasks(&CHAIN)}));
    assert_eq!(found["state"], "stuck");
    assert_eq!(found["unreachable"], json!([{"seq": "002", "blocked_by": ["001"]}]));
    assert_eq!(found["unreachable_transitive"], json!(["002", "003"]));
    let propagated = ask("dag.propagate", &json!({"tasks": tasks(&CHAIN)}));
    assert_eq!(propagated["propagated"], json!(["002", "003"]));
    assert_eq!(propagated["statuses"]["003"], "blocked");
    let again = ask("dag.propagate", &json!({"tasks": propagated["tasks"]}));
    assert_eq!(again["propagated"], json!([]));
}

#[test]
fn what_dangles_or_goes_in_a_circle_elsewhere_hides_nothing() {
    let mut rows = CHAIN.to_vec();
    rows.extend([("005", "099", "pending"), ("006", "007", "pending"), ("007", "006", "pending")]);
    rows.push(("008", "006 003", "pending"));
    let found = ask("dag.cascade", &json!({"tasks": tasks(&rows)}));
    assert_eq!(found["state"], "stuck");
    assert_eq!(found["unreachable_transitive"], json!(["002", "003", "008"]));
    let propagated = ask("dag.propagate", &json!({"tasks": tasks(&rows)}));
    assert_eq!(propagated["propagated"], json!(["002", "003", "008"]));
    assert_eq!(propagated["tasks"][7]["blocked_by"], json!(["003"]));
}

/// Twenty thousand in a row, a hundred times more than a campaign has in a row: what grows with the
/// square would be seen.
#[test]
fn a_long_chain_is_propagated_as_a_whole() {
    let task = |at: u32| {
        let status = if at == 0 { "blocked" } else { "pending" };
        let depends = if at == 0 { json!("none") } else { json!(format!("{:05}", at - 1)) };
        json!({"seq": format!("{at:05}"), "depends": depends, "status": status})
    };
    let chain: Vec<Value> = (0..20_000).map(task).collect();
    let found = ask("dag.cascade", &json!({"tasks": chain}));
    assert_eq!(found["unreachable_transitive"].as_array().unwrap().len(), 19_999);
    let found = ask("dag.propagate", &json!({"tasks": chain}));
    assert_eq!(found["propagated"].as_array().unwrap().len(), 19_999);
    assert_eq!(found["tasks"][19_999]["blocked_by"], json!(["19998"]));
}

#[test]
fn registering_fills_in_what_is_not_said_and_names_a_cycle_first() {
    let given = json!([{"seq": "001", "slug": "a"}, {"seq": "002", "type": "SPEC", "depends": "001"}]);
    let found = ask("dag.register", &json!({"tasks": given}));
    assert_eq!(
        found["tasks"],
        json!([
            {"seq": "001", "slug": "a", "type": "BUILD", "depends": "none", "status": "pending"},
            {"seq": "002", "type": "SPEC", "depends": "001", "status": "pending"},
        ])
    );
    let both = tasks(&[("001", "099", ""), ("002", "003", ""), ("003", "002", "")]);
    let error = ask("dag.register", &json!({"tasks": both}))["error"].clone();
    assert!(error.as_str().unwrap().contains("cycle"), "{error}");
}

#[test]
fn a_merge_takes_what_is_a_task_and_leaves_the_rest() {
    let merge = |revised: Value| ask("dag.merge", &json!({"tasks": tasks(&CHAIN), "revised": revised}));
    let revised =
        json!({"tasks": [7, {}, {"seq": "002", "depends": {}}, null, {"seq": "003", "depends": "none"}]});
    let found = merge(revised);
    assert_eq!((found["merged"].clone(), found["unchanged"].clone()), (json!(1), json!(3)));
    assert_eq!(found["tasks"][2]["depends"], "none");
    for nothing in [json!({}), json!({"tasks": []}), json!([])] {
        let found = merge(nothing);
        assert_eq!((found["merged"].clone(), found["tasks"].clone()), (json!(0), tasks(&CHAIN)));
    }
}

#[test]
fn a_re_plan_is_told_the_reason_alone() {
    let workspaces = json!([{"workspace_id": "001-x", "status": "blocked", "delivered": "Blocked:boom"}]);
    let input = json!({"objective": "x", "tasks": tasks(&CHAIN), "workspaces": workspaces});
    assert_eq!(ask("dag.replan_input", &input)["blocked_tasks"][0]["reason"], "boom");
}

#[test]
fn a_running_task_is_neither_ready_nor_done() {
    let running = tasks(&[("001", "", "in_progress"), ("002", "001", "pending")]);
    assert_eq!(ask("dag.ready", &json!({"tasks": running}))["seqs"], json!([]));
    let found = ask("dag.cascade", &json!({"tasks": running}));
    assert_eq!((found["state"].clone(), found["unreachable"].clone()), (json!("in_progress"), json!([])));
    let alone = tasks(&[("001", "", "in_progress")]);
    assert_eq!(ask("dag.cascade", &json!({"tasks": alone}))["state"], "in_progress");
}

#[test]
fn a_re_plan_changes_adds_re_opens_and_is_refused_as_a_whole() {
    let input = json!({"tasks": tasks(&CHAIN), "revised": {"tasks": [
        {"seq": "001", "verify": "make other", "depends": "none"},
        {"seq": "004", "depends": "001"},
        {"seq": "005", "slug": "new", "depends": ["004"]},
        {"seq": 2, "depends": "005"},
    ]}});
    let merged = ask("dag.merge", &input);
    assert_eq!(
        (merged["merged"].clone(), merged["unchanged"].clone(), merged["added"].clone()),
        (json!(2), json!(2), json!(1))
    );
    let find = |seq: &str| {
        merged["tasks"].as_array().unwrap().iter().find(|task| task["seq"] == seq).unwrap().clone()
    };
    assert_eq!(
        (find("001")["status"].clone(), find("001")["verify"].clone()),
        (json!("pending"), json!("make other"))
    );
    assert_eq!(find("004")["depends"], json!([]), "complete ones stay");
    assert_eq!(
        (find("002")["depends"].clone(), find("005")["status"].clone()),
        (json!("005"), json!("pending"))
    );
    for (revised, word) in [
        (json!([{"seq": "002", "depends": "003"}]), "cycle"),
        (json!([{"seq": "002", "depends": "099"}]), "dangling"),
    ] {
        let refused = ask("dag.merge", &json!({"tasks": tasks(&CHAIN), "revised": {"tasks": revised}}));
        assert!(refused["error"].as_str().unwrap().contains(word));
        assert_eq!((refused["merged"].clone(), refused["tasks"].clone()), (json!(0), tasks(&CHAIN)));
    }
}

#[test]
fn a_merge_leaves_what_is_under_way_and_refuses_a_seq_that_is_there_twice() {
    let tasks = json!([
        {"seq": "001", "slug": "a", "depends": "none", "status": "complete"},
        {"seq": "002", "slug": "b", "depends": "none", "status": "in_progress"},
    ]);
    let merge = |revised: Value| ask("dag.merge", &json!({"tasks": tasks, "revised": {"tasks": revised}}));
    let refused = merge(json!([{"seq": "002", "depends": "001"}]));
    assert_eq!(refused["error"], "task 002 is under way: it stays as it is");
    assert_eq!((refused["merged"].clone(), refused["tasks"].clone()), (json!(0), tasks.clone()));
    let same = merge(json!([{"seq": "002", "depends": "none"}]));
    assert_eq!(
        (same["merged"].clone(), same["tasks"][1]["status"].clone()),
        (json!(0), json!("in_progress"))
    );
    let twice = merge(json!([{"seq": "005", "slug": "c"}, {"seq": 5, "slug": "d"}]));
    assert_eq!((twice["error"].clone(), twice["tasks"].clone()), (json!("duplicate seq: 005"), tasks));
}

#[test]
fn planners_words_questions_and_plans() {
    let found = ask("plan.decision", &json!({"text": "### Confidence: CLARIFY"}));
    assert_eq!(found["decision"], "CLARIFY");
    assert!(found.get("plan_json").is_none() && found.get("validation").is_none());
    let text = "## Blocking Questions\n1. A?\n- B\n### Confidence: PROCEED\n### Confidence: CLARIFY";
    let found = ask("plan.decision", &json!({"text": text}));
    assert_eq!(
        (found["decision"].clone(), found["questions"].clone()),
        (json!("CLARIFY"), json!(["A?", "B"]))
    );
    let errors = ask(
        "plan.validate",
        &json!({"plan": {"tasks": [{"seq": "1", "slug": "a", "delta": [], "verify": "x"}]}}),
    );
    assert_eq!(
        errors["errors"],
        json!([
            "Missing required field: objective",
            "Task 0: seq must be 3-digit string",
            "Task 0: delta list cannot be empty",
        ])
    );
    assert_eq!(errors["paths"], json!(["objective", "tasks[0].seq", "tasks[0].delta"]));
}

#[test]
fn transitions_of_both_flows() {
    let valid = |from: &str, to: &str, flow: &str| {
        ask("state.transition", &json!({"from": from, "to": to, "flow": flow}))
    };
    assert_eq!(valid("EXECUTE", "CASCADE", "campaign")["valid"], true);
    assert_eq!(valid("EXECUTE", "CASCADE", "task")["valid"], false);
    assert!(valid("INIT", "NOWHERE", "task")["reason"].as_str().unwrap().contains("unknown state"));
    let reason = valid("INIT", "COMPLETE", "task")["reason"].clone();
    let reason = reason.as_str().unwrap();
    assert!(reason.contains("Invalid transition") && reason.contains("EXPLORE"), "{reason}");
    let line = r#"{"fn":"state.transition","input":{"from":"INIT","to":"EXPLORE","flow":5}}"#;
    assert!(answer(line, Timestamp::from_millis(0))["error"].as_str().unwrap().contains("input.flow"));
    let done = ask("campaign.complete", &json!({"objective": "x", "tasks": tasks(&CHAIN)}));
    assert_eq!(done["completed_at"], "1970-01-01T00:00:00.000Z");
}

#[test]
fn a_bad_line_is_an_answer_with_an_error() {
    let now = Timestamp::from_millis(0);
    for line in [
        "",
        "{",
        "[]",
        "{}",
        "null",
        r#"{"fn": 1}"#,
        r#"{"fn": "dag.ready"}"#,
        r#"{"fn":"dag.reddy","input":{}}"#,
    ] {
        assert!(answer(line, now)["error"].is_string(), "{line}");
    }
    let meant = answer(r#"{"fn":"dag.reddy","input":{}}"#, now);
    assert!(meant["error"].as_str().unwrap().contains("did you mean dag.ready"), "{meant}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z0-9 .{}\\[\\]\":#*-]{0,20}".prop_map(Value::from),
        prop::sample::select(vec!["001", "002", "none", "pending", "blocked", "complete", "structure", "ok"])
            .prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "tasks",
        "seq",
        "depends",
        "status",
        "revised",
        "text",
        "plan",
        "lines",
        "mode",
        "workspaces",
        "completed",
        "path",
        "id",
        "action",
        "from",
        "to",
        "objective",
        "delta",
        "cmd",
        "directories",
        "error",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|all| {
                Value::Object(all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn nothing_that_comes_in_ends_the_machine(name in prop::sample::select(FUNCTIONS.to_vec()), input in any_json(), noise in ".{0,200}") {
        let now = Timestamp::from_millis(0);
        let call = answer(&json!({"fn": name, "input": input}).to_string(), now);
        prop_assert!(call.get("output").is_some() != call.get("error").is_some());
        prop_assert!(answer(&noise, now).is_object());
    }
}
