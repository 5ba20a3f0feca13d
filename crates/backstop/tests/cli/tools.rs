//! A project with a scripted MCP server, and a client of the gateway.

use crate::harness::{Project, Run, root};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A project whose server `fake` behaves as it is told.
pub(crate) struct Tools {
    pub(crate) project: Project,
}

impl Tools {
    pub(crate) fn new(name: &str, behaviours: &[&str]) -> Self {
        Self::with(name, behaviours, "")
    }

    /// With more settings, for the server or beside it.
    pub(crate) fn with(name: &str, behaviours: &[&str], more: &str) -> Self {
        let project = Project::new(name);
        std::fs::create_dir_all(project.beside("server")).unwrap();
        let this = Self { project };
        this.project.file("backstop.toml", this.settings(behaviours, more));
        this.project.run(&["trust"]).go().code(0);
        this
    }

    pub(crate) fn settings(&self, behaviours: &[&str], more: &str) -> String {
        let script = root().join("crates/backstop/tests/fakes/mcp_server.py");
        let mut args = vec![script.display().to_string()];
        args.extend(behaviours.iter().map(ToString::to_string));
        format!(
            "[profile.tool]\ndelays = [\"0\", \"20ms\"]\n[mcp.fake]\ncommand = \"python3\"\nargs = {args:?}\n\
             env = {{ MCP_LOG = {:?} }}\n{more}\n",
            self.project.beside("server/log").display().to_string()
        )
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.project.run(args)
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Run {
        self.project.run(&["call", "--json", &format!("fake__{tool}"), &arguments.to_string()])
    }

    /// What the server has noted.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.project.beside("server/log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often a tool was called.
    pub(crate) fn calls(&self, tool: &str) -> usize {
        let start = format!("call {tool} ");
        self.log().iter().filter(|line| line.starts_with(&start)).count()
    }

    /// The processes that the server has had.
    pub(crate) fn pids(&self) -> Vec<String> {
        self.log().iter().filter_map(|line| line.strip_prefix("start ").map(str::to_owned)).collect()
    }

    /// The gateway, with a client that has not said anything yet.
    pub(crate) fn gateway(&self, flags: &[&str]) -> Client {
        let args: Vec<&str> = ["mcp"].into_iter().chain(flags.iter().copied()).collect();
        Client::start(self.run(&args).command())
    }
}

/// A client of the gateway.
pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
    next: u64,
    /// Messages that arrived while others were waited for.
    pub(crate) seen: Vec<Value>,
}

impl Client {
    fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (tell, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, messages, next: 1, seen: Vec::new() }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        writeln!(self.input.as_mut().unwrap(), "{text}").unwrap();
    }

    /// Sends a request, and gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message for which this holds.
    pub(crate) fn wait(&mut self, what: &str, mut is_it: impl FnMut(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&mut is_it) {
            return self.seen.remove(at);
        }
        loop {
            let message = self.messages.recv_timeout(Duration::from_secs(60));
            let message = message.unwrap_or_else(|_| panic!("{what} did not come; seen: {:?}", self.seen));
            if is_it(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait(&format!("the answer to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// A request and its result.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "test-client", "version": "9" },
        });
        let result = self.request("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        result
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": format!("fake__{tool}"), "arguments": arguments }))
    }

    /// Ends its input, and waits for the gateway to end. Gives its exit code.
    pub(crate) fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a request of the modern era says of itself.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "modern-client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    })
}
