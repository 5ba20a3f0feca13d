//! The gateway over HTTP, and servers that are reached over HTTP: the one is the other's peer.

use crate::harness::{Project, until};
use crate::tools::{Tools, modern_meta};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A gateway that serves over HTTP.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(tools: &Tools, at: &str, flags: &[&str], variable: (&str, &str)) -> Self {
        let args: Vec<&str> = ["mcp", "--http", at].into_iter().chain(flags.iter().copied()).collect();
        let mut child =
            tools.run(&args).env(variable.0, variable.1).command().stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "it ended");
            if let Some(rest) = line.trim().strip_prefix("serving at http://") {
                break rest.strip_suffix("/mcp").unwrap().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Self { child, address }
    }

    /// Sends one request by hand. Gives the status and the body.
    fn post(&self, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = headers
            .iter()
            .find(|(name, _)| *name == "host")
            .map_or(self.address.as_str(), |(_, value)| value);
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The stream of a session. Gives the status, and what is read from it.
fn stream(address: &str, session: &str) -> (u16, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET /mcp HTTP/1.1\r\nhost: {address}\r\nmcp-session-id: {session}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let (mut line, mut status) = (String::new(), 0);
    while stream.read_line(&mut line).is_ok_and(|count| count > 2) {
        if status == 0 {
            status = line.split(' ').nth(1).unwrap().parse().unwrap();
        }
        line.clear();
    }
    (status, stream)
}

/// A session of a client of the old era.
fn session(served: &Served) -> String {
    session_with(served, &json!({}))
}

/// A session of a client that can do this.
fn session_with(served: &Served, capabilities: &Value) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{hello}",
        served.address,
        hello.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let line = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    line.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_client_without_a_stream_holds_up_nobody_and_a_stream_can_be_opened_again() {
    let tools = Tools::new("http-streams", &[]);
    let served = Served::start(&tools, "127.0.0.1:0", &["--no-own-tools"], ("X", "x"));
    let (_quiet, listening) = (session(&served), session(&served));
    let (status, first) = stream(&served.address, &listening);
    assert_eq!(status, 200);
    drop(first);
    let (status, mut second) = stream(&served.address, &listening);
    assert_eq!(status, 200);
    let logs =
        json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "name": "fake__logs" } });
    // Many more messages than wait for the client that reads none of them.
    for round in 1..=60 {
        assert_eq!(served.post(&[("mcp-session-id", &listening)], &logs).0, 200);
        let mut line = String::new();
        let mut seen = 0;
        while seen < 2 {
            line.clear();
            assert!(second.read_line(&mut line).unwrap() > 0, "the stream ended in round {round}");
            seen += usize::from(line.contains("notifications/message"));
        }
    }
    // A change of the settings is taken up all the same.
    tools.project.file("backstop.toml", tools.settings(&[], "deny = [\"echo\"]"));
    tools.run(&["trust"]).go().code(0);
    let list = json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/list" });
    let listed = || served.post(&[("mcp-session-id", &listening)], &list).1;
    until("the change is taken up", || listed().contains("fake__add") && !listed().contains("fake__echo"));
    tools.project.file("backstop.toml", tools.settings(&[], "deny = [\"add\"]"));
    tools.run(&["trust"]).go().code(0);
    until("the next one, too", || listed().contains("fake__echo") && !listed().contains("fake__add"));
}

/// Makes a call, answers what is asked meanwhile, and gives the stream's lines.
fn call_and_answer(address: &str, session: &str, tool: &str, arguments: &Value) -> Vec<String> {
    let params = json!({ "name": format!("fake__{tool}"), "arguments": arguments });
    let send = |message: &Value| {
        let body = message.to_string();
        let mut to = TcpStream::connect(address).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nmcp-session-id: {session}\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        to.write_all(head.as_bytes()).unwrap();
        to
    };
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let mut seen = Vec::new();
    for line in BufReader::new(send(&call)).lines().map_while(Result::ok) {
        let message: Option<Value> =
            line.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok());
        if let Some(question) = message.filter(|message| message["method"] == "elicitation/create") {
            let result = json!({ "action": "accept", "content": { "by": session } });
            let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
            std::io::copy(&mut send(&answer), &mut std::io::sink()).unwrap();
        }
        seen.push(line);
    }
    seen
}

#[test]
fn a_question_goes_to_the_client_whose_call_it_is_or_to_nobody() {
    for (behaviours, is_told) in [(&["related"][..], true), (&[], false)] {
        let tools = Tools::new(&format!("http-question-{is_told}"), behaviours);
        let served = Served::start(&tools, "127.0.0.1:0", &["--no-own-tools"], ("X", "x"));
        let can = json!({ "elicitation": {} });
        let (asked, other) = (session_with(&served, &can), session_with(&served, &can));
        let seen = std::thread::scope(|scope| {
            let call = |session: &str, tool: &str, arguments: Value| {
                let (address, session, tool) = (served.address.clone(), session.to_owned(), tool.to_owned());
                scope.spawn(move || call_and_answer(&address, &session, &tool, &arguments))
            };
            let first = call(&asked, "ask", json!({ "after": 1 }));
            until("the first call has begun", || tools.calls("ask") == 1);
            // The call of another client is newer when the question comes.
            let second = call(&other, "ask", json!({ "after": 3 }));
            let (first, second) = (first.join().unwrap(), second.join().unwrap());
            (first.join("\n"), second.join("\n"))
        });
        let (first, second) = seen;
        if is_told {
            assert!(first.contains("answered") && first.contains(&asked), "{first}");
            assert!(!first.contains(&other) && !second.contains(&asked), "{first}\n{second}");
        } else {
            assert!(first.contains("several clients"), "{first}");
            assert!(!second.contains(&asked), "{second}");
        }
    }
}

fn ping(meta: bool) -> Value {
    let params = if meta { json!({ "_meta": modern_meta() }) } else { json!({}) };
    json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": params })
}

#[test]
fn web_pages_and_strangers_are_refused() {
    let tools = Tools::new("http-refused", &[]);
    let served = Served::start(&tools, "127.0.0.1:0", &["--token-env", "TOKEN"], ("TOKEN", "open-sesame"));
    let token = ("authorization", "Bearer open-sesame");
    for (headers, want) in [
        (vec![token], 200),
        (vec![token, ("host", "localhost:1")], 200),
        (vec![token, ("origin", "http://localhost:3000")], 200),
        (vec![token, ("host", "evil.example")], 403),
        (vec![token, ("origin", "https://evil.example")], 403),
        (vec![token, ("origin", "null")], 403),
        (vec![], 401),
        (vec![("authorization", "Bearer open-sesamE")], 401),
        (vec![token, ("mcp-session-id", "nobody")], 404),
    ] {
        assert_eq!(served.post(&headers, &ping(true)).0, want, "{headers:?}");
    }
    assert_eq!(served.post(&[token], &json!([1])).0, 400);
    // Beyond this machine nothing is served without a token.
    let error = tools.run(&["mcp", "--http", "0.0.0.0:0"]).go().code(2).stderr();
    assert!(error.contains("--token-env"), "{error}");
}

#[test]
fn a_gateway_is_an_upstream_of_another() {
    let behind = Tools::new("http-behind", &[]);
    let mut served = Served::start(&behind, "127.0.0.1:0", &["--no-own-tools"], ("X", "x"));
    let front = Tools::new("http-front", &[]);
    let settings = format!(
        "[profile.tool]\ndelays = [\"0\", \"20ms\"]\n[mcp.far]\nurl = \"http://{}/mcp\"\nheaders = {{ X-Test = \"${{HOME}}\" }}\n",
        served.address
    );
    front.project.file("backstop.toml", settings);
    front.run(&["trust"]).go().code(0);
    let call = |project: &Project, tool: &str, arguments: Value| {
        project.run(&["call", "--json", &format!("far__fake__{tool}"), &arguments.to_string()])
    };
    let answer = call(&front.project, "echo", json!({ "message": "far" })).go().code(0).json();
    assert_eq!(answer["result"]["content"][0]["text"], "far");
    let report = call(&front.project, "add", json!({})).go().code(1).json();
    assert_eq!((report["reason"].as_str(), behind.calls("add")), (Some("invalid_parameters"), 0));

    let mut client = front.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let far = |tool: &str, arguments: Value| json!({ "name": format!("far__fake__{tool}"), "arguments": arguments, "_meta": { "progressToken": 7 } });
    client.request("tools/call", far("progress", json!({})));
    let steps = client.seen.iter().filter(|m| m["method"] == "notifications/progress");
    let steps: Vec<u64> = steps.map(|m| m["params"]["progress"].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 3, 4, 5]);

    // The server starts anew and knows no session: it is renewed, and the call is made once.
    let address = served.address.clone();
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    let again = Served::start(&behind, &address, &["--no-own-tools"], ("X", "x"));
    let before = behind.calls("echo");
    let result = client.request("tools/call", far("echo", json!({ "message": "renewed" })));
    assert_eq!(result["content"][0]["text"], "renewed", "{result}");
    assert_eq!(behind.calls("echo"), before + 1);

    // A call that is cancelled here is cancelled there.
    let id = client.ask("tools/call", far("hang", json!({})));
    until("the call is there", || behind.calls("hang") == 1);
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    until("the server is told", || behind.log().contains(&"notification notifications/cancelled".to_owned()));

    // Nobody there: said, and a call that reads is tried again.
    drop(again);
    let gone = client.request("tools/call", far("echo", json!({ "message": "x" })));
    assert_eq!(
        (&gone["isError"], &gone["structuredContent"]["attempts"]),
        (&json!(true), &json!(3)),
        "{gone}"
    );
}

#[test]
fn a_gateway_that_is_its_own_upstream_does_not_ask_itself_for_ever() {
    let tools = Tools::new("http-circle", &[]);
    let served = Served::start(&tools, "127.0.0.1:0", &["--no-own-tools"], ("X", "x"));
    let circle = format!("[mcp.circle]\nurl = \"http://{}/mcp\"\n", served.address);
    tools.project.file("backstop.toml", tools.settings(&[], &circle));
    tools.run(&["trust"]).go().code(0);
    let session = session(&served);
    let list = || {
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {} });
        let headers = [("mcp-session-id", session.as_str()), ("accept", "application/json")];
        served.post(&headers, &body).1
    };
    let count = |listed: &str| listed.matches("\"name\":\"").count();
    until("the settings are taken up, and its own tools are there", || count(&list()) > 10);
    let listed = list();
    assert!(!listed.contains("circle__"), "{listed}");
    // Whoever calls it is told why.
    let report = tools.run(&["call", "--json", "circle__circle__x", "{}"]).go().code(1).json();
    assert_ne!(report["reason"], "timeout", "{report}");
}

#[test]
fn what_a_server_over_http_says_by_itself_arrives() {
    let behind = Tools::new("http-says", &[]);
    let served = Served::start(&behind, "127.0.0.1:0", &["--no-own-tools"], ("X", "x"));
    let front = Tools::new("http-hears", &[]);
    front.project.file("backstop.toml", format!("[mcp.far]\nurl = \"http://{}/mcp\"\n", served.address));
    front.run(&["trust"]).go().code(0);
    let mut client = front.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let echo = json!({ "name": "far__fake__echo", "arguments": { "message": "x" } });
    assert_eq!(client.request("tools/call", echo)["content"][0]["text"], "x");
    // Its list changes without any call: another server is set up there.
    let more = "[mcp.late]\ncommand = \"python3\"\nargs = [\"-c\", \"pass\"]\n";
    behind.project.file("backstop.toml", behind.settings(&["changed"], more));
    behind.run(&["trust"]).go().code(0);
    client.wait("the change", |message| message["method"] == "notifications/tools/list_changed");
    // The server behind may be asked anew first, and its list be empty until it answers.
    until("the list has what is new", || {
        client.request("tools/list", json!({})).to_string().contains("another echo")
    });
}

#[test]
fn a_client_of_the_new_era_listens_for_changes_over_http() {
    let tools = Tools::new("http-listens", &[]);
    let served = Served::start(&tools, "127.0.0.1:0", &["--no-own-tools"], ("X", "x"));
    let request = |method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = modern_meta();
        json!({ "jsonrpc": "2.0", "id": "mine", "method": method, "params": params })
    };
    let listen = request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let (status, why) = served.post(&[], &listen);
    assert_eq!(status, 406, "{why}");
    let body = listen.to_string();
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut events = BufReader::new(stream);
    let mut next = |method: &str| loop {
        let mut line = String::new();
        assert!(events.read_line(&mut line).unwrap() > 0, "the stream ended before {method}");
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let message: Value = serde_json::from_str(data).unwrap();
        assert_eq!(message["method"], method);
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "mine");
        return;
    };
    next("notifications/subscriptions/acknowledged");
    assert_eq!(served.post(&[], &request("tools/list", json!({}))).0, 200);
    assert_eq!(served.post(&[], &request("tools/call", json!({ "name": "fake__grow" }))).0, 200);
    next("notifications/tools/list_changed");
}

/// A server that answers every request with these bytes. Gives its address.
fn answering(answer: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while head.read_line(&mut line).is_ok_and(|count| count > 2) {
                if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = given.trim().parse().unwrap();
                }
                line.clear();
            }
            let _ = head.read_exact(&mut vec![0; length]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn what_a_server_refuses_is_said_with_what_to_do() {
    for (answer, reason, says) in [
        (
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"https://auth.example/meta\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "auth_error",
            "renew the credential of far: HTTP_TEST_TOKEN (see https://auth.example/meta)",
        ),
        (
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "rate_limited",
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<ok>",
            "network_transient",
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: nonsense\n\n",
            "network_transient",
            "",
        ),
    ] {
        let tools = Tools::new("http-answers", &[]);
        let settings = format!(
            "[mcp.far]\nurl = \"http://{}/mcp\"\nheaders = {{ Authorization = \"Bearer ${{HTTP_TEST_TOKEN}}\" }}\n",
            answering(answer)
        );
        tools.project.file("backstop.toml", settings);
        tools.run(&["trust"]).go().code(0);
        let run = tools.run(&["tools", "doctor", "--json"]).env("HTTP_TEST_TOKEN", "secret-in-a-header");
        let doctor = run.go().code(1);
        let server = doctor.json()["servers"][0].clone();
        let notes = server["notes"].to_string();
        assert!(notes.contains(reason), "{reason}: {notes}");
        assert!(server["next"].as_str().unwrap().contains(says), "{server}");
        assert!(!doctor.stdout().contains("secret-in-a-header"));
    }
}
