//! Notifications, against servers on this machine that play Slack, GitHub and a webhook.

use crate::docs::fits;
use crate::harness::{Project, in_a_room, is_alive, outside_code, schema, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How a server answers a request, by the request's number.
#[derive(Clone, Copy)]
pub(crate) enum Answers {
    /// With these, in order; the last repeats.
    Say(&'static [&'static str]),
    /// Not at all, the first so many times.
    Hang(usize),
    /// By hanging up, with a reset, the first so many times.
    Reset(usize),
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server that keeps what it was sent.
pub(crate) struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn new(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for (n, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { return };
                if matches!(answers, Answers::Reset(times) if n < times) {
                    // Who hangs up with something unread resets the connection.
                    let _ = stream.peek(&mut [0; 64]);
                    seen.lock().unwrap().push(String::new());
                    continue;
                }
                let text = read(&mut stream);
                seen.lock().unwrap().push(text);
                match answers {
                    Answers::Say(all) => {
                        let _ = stream.write_all(all[n.min(all.len() - 1)].as_bytes());
                    }
                    Answers::Hang(times) if n < times => held.push(stream),
                    Answers::Hang(_) | Answers::Reset(_) => {
                        let _ = stream.write_all(OK.as_bytes());
                    }
                }
            }
        });
        Self { port, requests }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn bodies(&self) -> Vec<Value> {
        let body =
            |request: &String| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        self.requests().iter().map(body).collect()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// One request, whole.
fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let length: Option<usize> =
            text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        if let (Some(length), Some(at)) = (length, text.find("\r\n\r\n"))
            && bytes.len() >= at + 4 + length
        {
            return text;
        }
        match stream.read(&mut piece) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&piece[..n]),
            _ => return text,
        }
    }
}

/// A project whose user has these sinks.
fn project(name: &str, sinks: &str) -> Project {
    let project = Project::new(name);
    std::fs::create_dir_all(project.beside("home/.config/backstop")).unwrap();
    project.settings(sinks);
    project
}

pub(crate) fn sink(name: &str, kind: &str, url: &str) -> String {
    format!("[notify.{name}]\ntype = \"{kind}\"\nurl = \"{url}\"\n")
}

const FAILS: &str = "echo 'npm error 401 Unauthorized'; exit 1";

/// The process that delivers, while it is there.
pub(crate) fn sender(project: &Project) -> Option<String> {
    let note = std::fs::read_to_string(project.state().join("locks/user.notify-sender")).ok()?;
    let holder: Value = serde_json::from_str(&note).ok()?;
    Some(holder["pid"].to_string()).filter(|pid| is_alive(pid))
}

fn messages(project: &Project) -> Vec<Value> {
    let list = project.run(&["notify", "list", "--json"]).go().code(0).json();
    list["messages"].as_array().unwrap().clone()
}

fn gone(project: &Project) {
    until("the sender is gone", || sender(project).is_none());
}

#[test]
fn a_run_that_failed_is_told_everywhere_and_nobody_waits() {
    let (slack, github, hook) = (
        Server::new(Answers::Say(&[OK])),
        Server::new(Answers::Say(&["HTTP/1.1 201 Created\r\n\r\n"])),
        Server::new(Answers::Say(&[OK])),
    );
    let sinks = [
        sink("chat", "slack", &slack.url("/services/T/B/x")),
        sink("issue", "github", &github.url("/repos/a/b/issues/7/comments")),
        sink("hook", "webhook", &hook.url("/alerts?team=ops")),
        "[notify.mail]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"until [ -e go ]; do sleep 0.05; done; cat > told.txt\"]\n".to_owned(),
        "[notify.here]\ntype = \"terminal\"\n".to_owned(),
        "[notify.only-critical]\ntype = \"command\"\ncommand = [\"false\"]\nseverity = \"critical\"\n"
            .to_owned(),
    ];
    let project = project("notify-all", &sinks.concat());
    let done = project.exec(&[], FAILS).env("GITHUB_TOKEN", "ghp-canary-token").go().code(1);
    // One of the sinks takes the message only now: nobody waited for it.
    project.file("go", "");
    assert!(done.stderr().contains("A run has failed: auth_error"), "{}", done.stderr());
    until("all are told", || {
        [&slack, &github, &hook].iter().all(|server| server.requests().len() == 1)
            && project.read("told.txt").contains("Next:")
    });
    let slack = &slack.bodies()[0];
    assert!(slack["text"].as_str().unwrap().contains("*Reason:* `auth_error` (permanent)"), "{slack}");
    let (request, body) = (&github.requests()[0], &github.bodies()[0]);
    assert!(request.starts_with("POST /repos/a/b/issues/7/comments HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer ghp-canary-token\r\n"), "{request}");
    assert!(body["body"].as_str().unwrap().starts_with("### A run has failed: auth_error"), "{body}");
    let payload = &hook.bodies()[0];
    assert!(hook.requests()[0].starts_with("POST /alerts?team=ops "));
    assert_eq!((payload["severity"].as_str(), payload["count"].as_u64()), (Some("high"), Some(1)));
    fits(&schema("notify-webhook"), payload, "webhook");
    assert!(project.read("told.txt").contains("Operation: sh -c"), "{}", project.read("told.txt"));
    // That people were told is a part of the run's record.
    let told: Vec<String> = project
        .events()
        .iter()
        .filter(|event| event["kind"] == "notified")
        .map(|event| event["sink"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, ["chat", "hook", "issue", "mail", "here"]);
    gone(&project);
    assert!(messages(&project).iter().all(|message| message["state"] == "sent"));
    // Nothing of a secret is in the store.
    let kept = std::fs::read(project.state().join("outbox.db")).unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains("canary"));
}

#[test]
fn success_recovery_and_small_faults_are_told_to_nobody() {
    let hook = Server::new(Answers::Say(&[OK]));
    let project = project("notify-none", &sink("hook", "webhook", &hook.url("/")));
    project.exec(&[], "exit 0").go().code(0);
    let recovers = "test -e again && exit 0; touch again; echo npm error code ECONNRESET; exit 1";
    project.exec(&[], recovers).go().code(0);
    project.exec(&[], "echo \"error: unexpected argument '--x' found\"; exit 2").go().code(2);
    assert!(!project.state().join("outbox.db").exists());
    // A run below another one is that one's attempt.
    let inner = format!("{} exec -- sh -c \"{FAILS}\" || exit 0", env!("CARGO_BIN_EXE_backstop"));
    project.exec(&[], &inner).go().code(0);
    assert!(messages(&project).is_empty() && hook.requests().is_empty());
}

#[test]
fn a_server_that_is_slow_down_or_rude_gets_it_in_the_end() {
    for (name, answers, want) in [
        (
            "notify-429",
            Answers::Say(&["HTTP/1.1 429 x\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n", OK]),
            2,
        ),
        (
            "notify-500",
            Answers::Say(&[
                "HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n",
                "HTTP/1.1 503 x\r\ncontent-length: 0\r\n\r\n",
                OK,
            ]),
            3,
        ),
        ("notify-reset", Answers::Reset(2), 3),
        ("notify-hang", Answers::Hang(1), 2),
    ] {
        let server = Server::new(answers);
        let project = project(name, &sink("hook", "webhook", &server.url("/")));
        let from = Instant::now();
        project.run(&["notify", "test"]).go().code(0);
        assert_eq!(server.requests().len(), want, "{name}");
        if name == "notify-429" {
            assert!(from.elapsed() >= Duration::from_secs(1), "the server's wait is a floor");
        }
    }
}

#[test]
fn what_is_refused_is_not_tried_again_and_says_so() {
    let server =
        Server::new(Answers::Say(&["HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nno_team\x1b[m"]));
    let project = project("notify-refused", &sink("chat", "slack", &server.url("/services/canary")));
    let done = project.run(&["notify", "test", "chat", "--json"]).go().code(1);
    fits(&schema("notify-test"), &done.json(), "notify test");
    assert_eq!(done.json()["sinks"][0]["attempts"], 1);
    assert_eq!(server.requests().len(), 1);
    assert!(!done.stdout().contains("canary") && !done.stdout().contains('\x1b'), "{}", done.stdout());
    project.exec(&[], FAILS).go().code(1);
    until("it is given up", || messages(&project).iter().any(|message| message["state"] == "failed"));
    let list = project.run(&["notify", "list"]).go().code(0).stdout();
    assert!(list.contains("failed") && !list.contains("canary"), "{list}");
    fits(
        &schema("notify-list"),
        &project.run(&["notify", "list", "--json"]).go().code(0).json(),
        "notify list",
    );
    gone(&project);
}

#[test]
fn nothing_in_an_error_message_has_a_meaning_anywhere() {
    let (slack, github, hook) = (
        Server::new(Answers::Say(&[OK])),
        Server::new(Answers::Say(&[OK])),
        Server::new(Answers::Say(&[OK])),
    );
    let sinks = [
        sink("chat", "slack", &slack.url("/")),
        sink("issue", "github", &github.url("/")),
        sink("hook", "webhook", &hook.url("/")),
        "[notify.mail]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"cat > told.txt\"]\n".to_owned(),
    ];
    let project = project("notify-hostile", &sinks.concat());
    let hostile = "401 Unauthorized <!channel> <@U1> @everyone [x](http://evil.example) ![i](http://evil.example/i.png) #123 ``` `a` \x1b]52;c;Zm9v\x07\u{202e}$(touch pwned)";
    project.file("says", format!("npm error {hostile}\n"));
    let script = "cat says; exit 1 # <!here> @channel [y](http://evil.example)\n`touch pwned`";
    project.exec(&[], script).env("GITHUB_TOKEN", "x").go().code(1);
    until("all are told", || {
        [&slack, &github, &hook].iter().all(|server| server.requests().len() == 1)
            && project.read("told.txt").contains("Next:")
    });
    let slack = slack.bodies()[0].clone();
    let text = slack["text"].as_str().unwrap();
    assert!(text.contains("&lt;!channel&gt;") && !text.contains(['<', '>']), "{text}");
    assert_eq!((slack["parse"].as_str(), slack["link_names"].as_bool()), (Some("none"), Some(false)));
    let body = github.bodies()[0].clone();
    let comment = body["body"].as_str().unwrap();
    for (how, text) in [("slack", text), ("github", comment)] {
        let plain = outside_code(text);
        for active in ["@", "://", "](", "![", "#123", "<", "$("] {
            assert!(!plain.contains(active), "{how}: {active} in {plain}\nof {text}");
        }
    }
    for text in [text, comment, &project.read("told.txt")] {
        assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    }
    assert!(
        hook.requests()[0].split_once("\r\n\r\n").unwrap().1.chars().all(|c| c >= ' ' && c != '\u{202e}')
    );
    assert!(!project.path().join("pwned").exists());
    gone(&project);
}

#[test]
fn a_storm_is_one_message_with_a_count() {
    let hook = Server::new(Answers::Say(&[OK]));
    let project = project("notify-storm", &sink("hook", "webhook", &hook.url("/")));
    let script = format!(
        "i=0; while [ $i -lt 25 ]; do {bin} exec --quiet -- sh -c \"{FAILS}\" >/dev/null 2>&1; i=$((i+1)); done",
        bin = env!("CARGO_BIN_EXE_backstop")
    );
    let many: Vec<_> = (0..4)
        .map(|_| {
            let mut command = project.program("sh", &["-c", &script]);
            command
                .env("HOME", project.beside("home"))
                .env("XDG_CONFIG_HOME", project.beside("home/.config"));
            command.spawn().unwrap()
        })
        .collect();
    for mut one in many {
        assert!(one.wait().unwrap().success());
    }
    let is_sent = |message: &&Value| message["state"] == "sent";
    until("it is told", || messages(&project).iter().any(|message| is_sent(&message)));
    let messages = messages(&project);
    // All of it is one message. On a machine so slow that more came when it had been gathered for
    // as long as may be, a second one waits for its turn, which nobody here waits for.
    match sender(&project).filter(|_| messages.len() == 2) {
        Some(pid) => kill(&pid),
        None => gone(&project),
    }
    let bodies = hook.bodies();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let count = |message: &Value| message["count"].as_u64().unwrap();
    assert_eq!(messages.iter().map(count).sum::<u64>(), 100, "none of them is lost");
    assert_eq!(messages.iter().filter(is_sent).map(count).sum::<u64>(), count(&bodies[0]));
    assert!(count(&bodies[0]) > 1 && messages.len() <= 2, "{messages:?}");
    assert!(bodies[0]["last_at"].as_str() > bodies[0]["first_at"].as_str());
}

pub(crate) fn kill(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[test]
fn a_killed_sender_loses_nothing_and_it_is_sent_at_least_once() {
    // It hangs once, while the sender is killed; the next sender sends it again.
    let hook = Server::new(Answers::Hang(1));
    let project = project("notify-killed", &sink("hook", "webhook", &hook.url("/")));
    project.exec(&[], FAILS).go().code(1);
    until("it is on its way", || hook.requests().len() == 1);
    kill(&sender(&project).unwrap());
    gone(&project);
    assert_eq!(messages(&project)[0]["state"], "sending");
    project.run(&["notify", "send"]).go().code(0);
    assert_eq!(hook.requests().len(), 2);
    assert_eq!(hook.bodies()[0]["run"], hook.bodies()[1]["run"]);
    assert_eq!(messages(&project)[0]["state"], "sent");
}

#[test]
fn of_two_senders_one_works() {
    let hook = Server::new(Answers::Say(&[OK]));
    let project = project("notify-two", &sink("hook", "webhook", &hook.url("/")));
    for n in 0..3 {
        project.exec(&[], &format!("echo '{n}'; {FAILS}")).go().code(1);
    }
    let many: Vec<_> = (0..6).map(|_| project.run(&["notify", "send"]).command().spawn().unwrap()).collect();
    for mut one in many {
        assert!(one.wait().unwrap().success());
    }
    gone(&project);
    let mut runs: Vec<String> = hook.bodies().iter().map(|body| body["run"].to_string()).collect();
    let all = runs.len();
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), all, "no message is sent twice");
    assert!(messages(&project).iter().all(|message| message["state"] == "sent"));
}

#[test]
fn a_secret_that_only_the_second_has_is_waited_for() {
    let hook = Server::new(Answers::Say(&[OK]));
    let sinks = format!("{}token_env = \"HOOK_TOKEN\"\n", sink("hook", "webhook", &hook.url("/")));
    let project = project("notify-token", &sinks);
    project.exec(&[], FAILS).go().code(1);
    gone(&project);
    assert!(hook.requests().is_empty(), "without its token it is not sent");
    project.exec(&[], FAILS).env("HOOK_TOKEN", "t0ken-canary").go().code(1);
    until("it is sent", || hook.requests().len() == 1);
    assert!(hook.requests()[0].contains("authorization: Bearer t0ken-canary\r\n"));
    assert_eq!(hook.bodies()[0]["count"], 2);
    gone(&project);
    let test = project.run(&["notify", "test"]).go().code(1).stdout();
    assert!(test.contains("the variable HOOK_TOKEN is not set"), "{test}");
}

/// A server that speaks TLS with a certificate of its own authority, answers one request and gives
/// what it was asked. The first value is its port, the second the authority's certificate, which a
/// client has to trust.
fn tls_server() -> (u16, String, std::thread::JoinHandle<String>) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let (stream, _) = listener.accept().unwrap();
        let session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut tls = rustls::StreamOwned::new(session, stream);
        let mut asked = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&asked).contains("\r\n\r\n") {
            let read = tls.read(&mut piece).unwrap();
            asked.extend_from_slice(&piece[..read]);
        }
        tls.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
        tls.conn.send_close_notify();
        let _ = tls.flush();
        String::from_utf8_lossy(&asked).into_owned()
    };
    (port, authority.pem(), std::thread::spawn(serve))
}

#[test]
fn https_is_spoken_and_the_certificate_is_checked() {
    let (port, authority, server) = tls_server();
    let project = project(
        "notify-https",
        &format!(
            "[notify.ops]\ntype = \"webhook\"\nurl = \"https://localhost:{port}/alerts\"\ntoken_env = \"OPS_TOKEN\"\n"
        ),
    );
    let file = project.beside("authority.pem");
    std::fs::write(&file, authority).unwrap();
    let test = || project.run(&["notify", "test"]).env("OPS_TOKEN", "canary-token-1");
    let done = test().env("SSL_CERT_FILE", &file.display().to_string()).go().code(0);
    assert!(done.stdout().contains("sent: answered 201"), "{}", done.stdout());
    let asked = server.join().unwrap().to_ascii_lowercase();
    assert!(asked.starts_with("post /alerts http/1.1\r\n"), "{asked}");
    assert!(asked.contains("authorization: bearer canary-token-1\r\n"), "{asked}");

    // Whoever the certificate's authority is not known to is told so, and nothing is sent.
    let (other, _, _) = tls_server();
    project.file("backstop.toml", sink("ops", "webhook", &format!("https://localhost:{other}/")));
    project.run(&["trust"]).go().code(0);
    let done = test().env("SSL_CERT_FILE", &file.display().to_string()).go().code(1);
    assert!(done.stdout().contains("certificate"), "{}", done.stdout());
}

#[test]
fn an_untrusted_project_tells_nobody() {
    let hook = Server::new(Answers::Say(&[OK]));
    let project = Project::new("notify-untrusted");
    project.file("backstop.toml", sink("hook", "webhook", &hook.url("/")));
    project.exec(&[], FAILS).go().code(1);
    assert!(messages(&project).is_empty());
    project.run(&["notify", "test", "hook"]).go().code(2);
    project.run(&["trust"]).go().code(0);
    project.run(&["notify", "test", "hook"]).go().code(0);
    assert_eq!(hook.requests().len(), 1);
}

#[test]
fn what_is_wrong_with_a_sink_is_said() {
    let project = project("notify-wrong", "[notify.ops]\ntype = \"webhook\"\n");
    let done = project.run(&["notify", "test"]).go().code(1);
    assert!(done.stdout().contains("`notify.ops` is of type webhook and has no `url`"), "{}", done.stdout());
    assert!(done.stdout().contains("hint: set `notify.ops.url`"), "{}", done.stdout());
    let done = project.run(&["notify", "test", "nobody"]).go().code(2);
    assert!(
        done.stderr().contains("there is no sink `nobody`") && done.stderr().contains("sinks are ops"),
        "{}",
        done.stderr()
    );
    // It does not change how a run ends.
    project.exec(&[], FAILS).go().code(1);
    std::fs::write(
        project.beside("home/.config/backstop/config.toml"),
        "[notify.ops]\nurl = \"https://me:canary@x\"\n",
    )
    .unwrap();
    let done = project.run(&["config", "check"]).go().code(1);
    assert!(
        done.stderr().contains("has a user or a password") && !done.stderr().contains("canary"),
        "{}",
        done.stderr()
    );
}

#[test]
fn a_plan_that_halts_is_told() {
    let hook = Server::new(Answers::Say(&[OK]));
    let project = project("notify-plan", &sink("hook", "webhook", &hook.url("/")));
    std::fs::remove_dir(project.path().join(".git")).unwrap();
    project.file("backstop.toml", "");
    let plan = "# Plan\n\n```backstop\ngates = []\n```\n\n| Phase | Name | Depends On |\n|---|---|---|\n| 1 | One | - |\n\n### Phase 1: One\n\n- [ ] it\n\n```backstop\ncommand = 'echo npm error 401 Unauthorized; exit 1'\n```\n";
    project.file("plan.md", plan);
    let done = project.run(&["run", "plan.md", "--isolation", "none", "--commit", "none"]).go();
    let stderr = done.stderr();
    until("it is told", || !hook.requests().is_empty());
    let body = &hook.bodies()[0];
    assert_eq!(body["reason"], "auth_error", "{stderr}");
    for part in ["Next: `backstop run plan.md", "Phase: 1\n"] {
        assert!(body["text"].as_str().unwrap().contains(part), "{part}: {body}");
    }
    assert_eq!(project.kinds().last().unwrap(), "notified");
    gone(&project);
}

#[test]
fn hooks_tell_what_is_over_and_never_one_attempt() {
    let (alerts, issue) = (Server::new(Answers::Say(&[OK])), Server::new(Answers::Say(&[OK])));
    let sinks = [
        sink("alerts", "webhook", &alerts.url("/")),
        sink("issue", "github", &issue.url("/repos/a/b/issues/7/comments")) + "severity = \"low\"\n",
    ];
    let project = project("notify-hooks", &sinks.concat());
    let report = |task: &str, kind: &str, message: &str| {
        let report = serde_json::json!({"task_data": {"task_id": task}, "error": {"type": kind, "message": message},
            "context": {"commands": {"@agent review": "Code review"}}});
        let run = project.run(&["hook", "on-error"]).env("GITHUB_TOKEN", "t").stdin(report.to_string());
        run.go().code(0).json()
    };
    let agent = |event: Value| {
        project.run(&["hook", "agent"]).env("GITHUB_TOKEN", "t").stdin(event.to_string()).go().code(0);
    };
    // One attempt of an agent's is told to nobody, however often; a broken turn is.
    for _ in 0..3 {
        agent(
            serde_json::json!({"hook_event_name": "PostToolUseFailure", "session_id": "s", "tool_name": "Bash",
            "tool_input": {"command": "npm ci"}, "error": "Exit code 1\nnpm error 401 Unauthorized"}),
        );
    }
    assert!(!project.state().join("outbox.db").exists());
    agent(
        serde_json::json!({"hook_event_name": "StopFailure", "session_id": "s", "error": "authentication_failed",
        "last_assistant_message": "Invalid API key"}),
    );
    // Tried again: only who asked for everything is told. Over: whoever has to know.
    assert_eq!(report("slow", "TimeoutError", "too slow")["user_notified"], true);
    assert_eq!(report("denied", "AuthenticationError", "bad token <!channel>")["user_notified"], true);
    let mistyped =
        report("typo", "InvalidCommand", "The command `@agent reviw` was not recognized @everyone");
    assert_eq!((&mistyped["user_notified"], &mistyped["severity"]), (&true.into(), &"low".into()));
    until("all are told", || alerts.requests().len() == 2 && issue.requests().len() == 4);
    let mut told: Vec<String> =
        alerts.bodies().iter().map(|body| body["operation"].as_str().unwrap().to_owned()).collect();
    told.sort();
    assert_eq!(told, ["denied", "turn"]);
    let texts: String = issue.bodies().iter().map(|body| body["body"].as_str().unwrap().to_owned()).collect();
    for part in [
        "## Temporary Issue",
        "(attempt 2/3)",
        "## Unable to Complete Task",
        "**Possible causes:**",
        "## Error in Task Execution",
        "Did you mean `@agent review`?",
        "- `@agent review`: `Code review`",
        "`bad token <!channel>`",
    ] {
        assert!(texts.contains(part), "{part}: {texts}");
    }
    let runs = project.events();
    let told = runs.iter().filter(|event| event["kind"] == "notified").count();
    assert_eq!(told, 6, "what was told is a part of each run's record");
    gone(&project);
}

#[test]
fn what_is_critical_is_told_at_once_with_the_way_out() {
    let alerts = Server::new(Answers::Say(&[OK]));
    let project = project("notify-critical", &sink("alerts", "webhook", &alerts.url("/")));
    project.trusted_file("[host]\ndisk_free_min = \"900TB\"\n");
    let event = serde_json::json!({"hook_event_name": "PostToolUseFailure", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "error": "Exit code 1\ncc: error: No space left on device"});
    project.run(&["hook", "agent"]).stdin(event.to_string()).go().code(0);
    until("it is told", || alerts.requests().len() == 1);
    let told = &alerts.bodies()[0];
    assert_eq!((&told["severity"], &told["reason"]), (&"critical".into(), &"disk_full".into()));
    assert!(told["text"].as_str().unwrap().contains("backstop unfreeze --why"), "{told}");
    project.exec(&[], "true").go().code(125);
    gone(&project);
}

#[test]
fn what_became_worse_is_told_and_each_task_by_its_name() {
    let all = Server::new(Answers::Say(&[OK]));
    let sinks = sink("all", "webhook", &all.url("/")) + "severity = \"low\"\n";
    let project = project("notify-worse", &sinks);
    let report = |task: &str, kind: &str| {
        let report =
            serde_json::json!({"task_data": {"task_id": task}, "error": {"type": kind, "message": "no"}});
        project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0).json()
    };
    // Three attempts: the first two are tried again, the third is the end, and is told as that.
    let retried: Vec<bool> = (0..3).map(|_| report("slow", "TimeoutError")["retry"] == true).collect();
    assert_eq!(retried, [true, true, false]);
    for n in 101..104 {
        report(&format!("task-{n}"), "AuthenticationError");
    }
    let outcome = |body: &Value| body["outcome"].as_str().unwrap().to_owned();
    until("all are told", || all.requests().len() == 3);
    let mut told: Vec<(String, u64)> =
        all.bodies().iter().map(|body| (outcome(body), body["count"].as_u64().unwrap())).collect();
    told.sort();
    let failed = "failed".to_owned();
    assert_eq!(told, [(failed.clone(), 1), (failed, 3), ("retrying".to_owned(), 2)]);
    let tasks = all.bodies().into_iter().find(|body| body["count"] == 3).unwrap();
    assert_eq!(tasks["operations"], serde_json::json!(["task-101", "task-102", "task-103"]));
    gone(&project);
}

#[test]
fn what_a_killed_sender_left_is_sent_by_whoever_comes_by() {
    let (hook, calls) = (Server::new(Answers::Hang(1)), 2);
    let project = project("notify-killed", &sink("hook", "webhook", &hook.url("/")));
    project.exec(&[], FAILS).go().code(1);
    until("it is on its way", || hook.requests().len() == 1);
    let pid = sender(&project).unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
    assert!(killed.success());
    until("the sender is gone", || !is_alive(&pid));
    project.exec(&[], "exit 0").go().code(0);
    until("it is told", || hook.requests().len() == calls);
    gone(&project);
    assert!(messages(&project).iter().all(|message| message["state"] == "sent"));
}

#[test]
fn a_sink_that_is_none_does_not_keep_the_others_from_being_tried() {
    let hook = Server::new(Answers::Say(&[OK]));
    let sinks = "[notify.broken]\ntype = \"webhook\"\n".to_owned() + &sink("good", "webhook", &hook.url("/"));
    let project =
        project("notify-broken", &(sinks + "[notify.secret]\ntype = \"slack\"\ntoken_env = \"NOT_THERE\"\n"));
    let tried = project.run(&["notify", "test", "--json"]).go().code(1).json();
    fits(&schema("notify-test"), &tried, "notify test");
    let sent: Vec<bool> = tried["sinks"].as_array().unwrap().iter().map(|one| one["sent"] == true).collect();
    assert_eq!(sent, [false, true, false]);
    let hints = tried["sinks"].as_array().unwrap().iter().filter(|one| one["hint"].is_string()).count();
    assert_eq!(hints, 2, "{tried}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_critical_is_told_even_where_there_is_no_room_to_queue_it() {
    let alerts = Server::new(Answers::Say(&[OK]));
    let project = project("notify-full", &sink("alerts", "webhook", &alerts.url("/")));
    let state = project.state();
    std::fs::create_dir_all(&state).unwrap();
    // Whoever tells it works on when the command is over, and needs the room until then.
    let told = project.beside("told");
    // The disk of the store is full; loopback stays reachable, because only mounts are apart.
    let script = format!(
        "mount -t tmpfs -o size=2m,mode=700 tmpfs {state} || exit 90; cat /dev/zero > {state}/filler 2>/dev/null; \
         {bin} exec -- dd if=/dev/zero of={state}/more bs=64k; \
         i=0; while [ ! -e {told} ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done; exit 0",
        state = state.display(),
        told = told.display(),
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("it is told", || alerts.requests().len() == 1);
            std::fs::write(&told, "").unwrap();
        });
        in_a_room(&script, || {
            let mut command = project.program("unshare", &[]);
            command
                .env("HOME", project.beside("home"))
                .env("XDG_CONFIG_HOME", project.beside("home/.config"));
            command
        });
    });
    let told = &alerts.bodies()[0];
    assert_eq!((&told["severity"], &told["reason"]), (&"critical".into(), &"disk_full".into()), "{told}");
}

#[test]
fn each_time_a_project_is_frozen_is_told_and_quiet_is_quiet() {
    let alerts = Server::new(Answers::Say(&[OK]));
    let sinks = sink("alerts", "webhook", &alerts.url("/")) + "[notify.here]\ntype = \"terminal\"\n";
    let project = project("notify-frozen", &sinks);
    project.trusted_file("[host]\ndisk_free_min = \"900TB\"\n");
    let full = "echo 'No space left on device' >&2; exit 1";
    for times in [1, 2] {
        let done = project.exec(&["--quiet"], full).go().code(1);
        assert!(!done.stderr().contains("The project is frozen"), "{}", done.stderr());
        until("it is told", || alerts.requests().len() == times);
        project.run(&["unfreeze", "--why", "once more"]).go().code(0);
    }
    let told = &alerts.bodies()[1];
    for part in ["The project is frozen: disk_full", "is left on the disk of", "backstop unfreeze --why TEXT"]
    {
        assert!(told["text"].as_str().unwrap().contains(part), "{part}: {told}");
    }
    assert_eq!(told["outcome"], "frozen");
    gone(&project);
}

#[test]
fn doctor_looks_at_sinks_and_connects_only_when_asked() {
    let project = Project::new("notify-doctor");
    let user = |text: &str| {
        let folder = project.beside("home/.config/backstop");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let sink = format!("[notify.ops]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:{port}/x\"\n");
    user(&sink);
    let text = project.run(&["doctor"]).go().code(0).stdout();
    assert!(text.contains("ops: configured"), "{text}");
    let text = project.run(&["doctor", "--sinks"]).go().code(0).stdout();
    assert!(text.contains("ops: can be reached"), "{text}");
    drop(listener);
    project.run(&["doctor"]).go().code(0);
    let text = project.run(&["doctor", "--sinks"]).go().code(1).stdout();
    assert!(text.contains(&format!("ops: http://127.0.0.1:{port} cannot be reached")), "{text}");
    user(&format!(
        "{sink}token_env = \"OPS_TOKEN_UNSET\"\n[notify.mail]\ntype = \"command\"\ncommand = [\"/no/such/mail\"]\n"
    ));
    let text = project.run(&["doctor"]).go().code(1).stdout();
    assert!(text.contains("ops: the variable OPS_TOKEN_UNSET is not set here"), "{text}");
    assert!(text.contains("mail: the program `/no/such/mail` is not found"), "{text}");
}
