//! `backstop machine`: one answer a line, whatever comes in.

use crate::docs::fits;
use crate::harness::{Run, schema};
use serde_json::{Value, json};

const EXAMPLES: &str = include_str!("../../../backstop-campaign/tests/machine.jsonl");

#[test]
fn every_function_answers_in_order_and_fits_its_schema() {
    let rows: Vec<Value> = EXAMPLES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: String =
        rows.iter().map(|row| format!("{}\n", json!({"fn": row["fn"], "input": row["input"]}))).collect();
    let answers = Run::new(&["machine"]).stdin(&calls).go().code(0).lines();
    assert_eq!(answers.len(), rows.len());
    let whole = schema("machine");
    for (row, answer) in rows.iter().zip(&answers) {
        let name = row["fn"].as_str().unwrap();
        fits(&whole, answer, name);
        for (value, what) in [(&row["input"], "input"), (&answer["output"], "output")] {
            let mut part = whole["$defs"][format!("{}_{what}", name.replace('.', "_"))].clone();
            part["$defs"] = whole["$defs"].clone();
            fits(&part, value, name);
        }
    }
}

#[test]
fn a_bad_line_is_an_answer_and_the_next_one_is_read() {
    let long = format!("{{\"fn\":\"{}\"}}\n", "x".repeat(9 << 20));
    let lines = format!(
        "nonsense\n{long}\n{{\"fn\":\"dag.none\",\"input\":{{}}}}\n{{\"fn\":\"dag.ready\",\"input\":{{\"tasks\":[]}}}}"
    );
    let answers = Run::new(&["machine"]).stdin(&lines).go().code(0).lines();
    assert_eq!(answers.len(), 4);
    assert!(answers[..3].iter().all(|answer| answer["error"].is_string()), "{answers:?}");
    assert_eq!(answers[3], json!({"output": {"seqs": []}}));
}
