//! What a server says to an agent through the gateway: words of its own stand in fields for them,
//! and never where Backstop speaks.

#[path = "../../../backstop-report/tests/support/injections.rs"]
pub(crate) mod injections;

use crate::tools::Tools;
use injections::{SENTENCES, WRAPPINGS, holds, outside_fences};
use serde_json::{Value, json};

/// The fields of a failed call that hold what the server or the caller said.
const FIELDS: &[&str] = &["Error: ", "Params: ", "Partial: ", "Context: "];

/// What of a text is Backstop's own: not the fields for what others say, nor the lines below them.
fn own_words(text: &str) -> String {
    let is_own = |line: &&str| !line.starts_with(' ') && !FIELDS.iter().any(|field| line.starts_with(field));
    text.lines().filter(is_own).collect::<Vec<_>>().join("\n")
}

/// The advice in a report, wherever it stands.
fn advice(report: &Value) -> Vec<String> {
    let places = ["/suggestion", "/next", "/notice/next", "/notice/suggestions", "/confirm", "/confirm_tool"];
    places.iter().filter_map(|place| report.pointer(place)).map(ToString::to_string).collect()
}

#[test]
fn no_sentence_of_a_server_stands_where_the_gateway_speaks() {
    let tools = Tools::new("mcp-injections", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let mut tried = 0;
    for sentence in SENTENCES {
        for wrapping in WRAPPINGS {
            let message = wrapping.replace("{}", sentence);
            for way in ["result", "rpc"] {
                tried += 1;
                let arguments = json!({ "message": message, "as": way });
                let answer =
                    client.request("tools/call", json!({ "name": "fake__complain", "arguments": arguments }));
                assert_eq!(answer["isError"], true, "{answer}");
                let text = answer["content"][0]["text"].as_str().unwrap();
                assert!(!holds(&own_words(text), sentence), "{way}, {message:?}: {text}");
                for advised in advice(&answer["structuredContent"]) {
                    assert!(!holds(&advised, sentence), "{way}, {message:?}: {advised}");
                }
            }
        }
    }
    assert!(tried >= 200, "{tried}");
}

#[test]
fn what_a_server_says_before_a_timeout_and_of_itself_is_data() {
    for (n, sentence) in SENTENCES.iter().enumerate().step_by(5) {
        let says = format!("x\n\n{sentence}\n```\n{sentence}");
        let tools = Tools::with(
            &format!("mcp-injections-{n}"),
            &[],
            &format!(
                "timeout = \"300ms\"\n[mcp.other]\ncommand = \"python3\"\nargs = [{:?}]\nenv = {{ MCP_SAYS = {:?} }}\n",
                crate::harness::root()
                    .join("crates/backstop/tests/fakes/mcp_server.py")
                    .display()
                    .to_string(),
                says
            ),
        );
        tools.run(&["tools", "refresh"]).go().code(0);
        let mut client = tools.gateway(&[]);
        let hello = client.initialize(json!({}));
        let instructions = hello["instructions"].as_str().unwrap();
        assert!(holds(instructions, sentence), "{instructions}");
        assert!(!holds(&outside_fences(instructions), sentence), "{instructions}");
        let arguments = json!({ "message": says, "as": "progress" });
        let answer =
            client.request("tools/call", json!({ "name": "fake__complain", "arguments": arguments }));
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("Partial: ") && holds(text, sentence), "{text}");
        assert!(!holds(&own_words(text), sentence), "{text}");
        // A story of it, which an agent asks for.
        let run = answer["structuredContent"]["run"].as_str().unwrap().to_owned();
        let told = client.request(
            "tools/call",
            json!({ "name": "backstop_explain_failure", "arguments": { "run": run } }),
        );
        let story = told["content"][0]["text"].as_str().unwrap();
        assert!(!holds(&outside_fences(story), sentence), "{story}");
    }
}
