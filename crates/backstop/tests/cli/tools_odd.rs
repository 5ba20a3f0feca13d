//! Servers whose definitions and results are not as the protocol says: they cost a client nothing.

use crate::tools::{Tools, modern_meta};
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

#[test]
fn a_definition_of_the_wrong_kind_costs_no_other_tool() {
    let tools = Tools::new("odd-definitions", &["odd"]);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let listed = client.request("tools/list", json!({}));
    assert_eq!(
        names(&listed["tools"]),
        ["fake__bare", "fake__echo", "fake__flags", "fake__listing", "fake__nulls"],
        "{listed}"
    );
    for tool in listed["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        for member in ["title", "icons", "outputSchema"] {
            assert!(tool.get(member).is_none(), "{tool}");
        }
    }
    let resources = client.request("resources/list", json!({}));
    assert_eq!(resources["resources"], json!([{ "name": "memo://one", "uri": "memo://one" }]));
    let prompts = client.request("prompts/list", json!({}));
    assert_eq!(prompts["prompts"], json!([{ "name": "fake__one" }]));
    // The doctor says what is odd.
    let said = tools.run(&["tools", "doctor"]).go().code(0).stdout();
    assert!(
        said.contains("in the description of fake__flags, these are not as MCP says: title, icons"),
        "{said}"
    );
}

#[test]
fn structured_content_that_is_no_object_reaches_the_clients_that_know_it() {
    let tools = Tools::new("odd-structured", &["odd"]);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let result = client.call("listing", json!({}));
    assert_eq!((result.get("structuredContent"), &result["content"][0]["text"]), (None, &json!("[1]")));
    let mut client = tools.gateway(&["--no-own-tools"]);
    let listed = client.request("tools/list", json!({ "_meta": modern_meta() }));
    let listing = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "fake__listing");
    assert_eq!(listing.unwrap()["outputSchema"], json!({ "type": "array" }));
    let params = json!({ "name": "fake__listing", "arguments": {}, "_meta": modern_meta() });
    assert_eq!(client.request("tools/call", params)["structuredContent"], json!([1]));
}

#[test]
fn arguments_that_are_null_are_none() {
    let tools = Tools::new("odd-null", &["odd"]);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let result = client.request("tools/call", json!({ "name": "fake__bare", "arguments": null }));
    assert_eq!(result["content"][0]["text"], "{}", "{result}");
}
