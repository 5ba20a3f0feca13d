//! A provider on this machine that does what a test's script says, and a proxy in front of it.

use crate::harness::{Project, until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How the provider answers one request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// These pieces, with a pause before each but the first.
    Drip(Vec<Vec<u8>>, Duration),
    /// These bytes, then a reset.
    Reset(Vec<u8>),
    /// Nothing, until the client hangs up.
    Silence,
}

/// A request as it arrived.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub(crate) struct Provider {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    hung_up: Arc<Mutex<usize>>,
    pieces_written: Arc<AtomicUsize>,
}

impl Provider {
    /// Answers the n-th request, counted from 0, as `script` says.
    pub(crate) fn new(script: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, hung_up): (Arc<Mutex<Vec<Seen>>>, Arc<Mutex<usize>>) = Default::default();
        let pieces_written = Arc::<AtomicUsize>::default();
        let (all, gone, script) = (Arc::clone(&seen), Arc::clone(&hung_up), Arc::new(script));
        let written = Arc::clone(&pieces_written);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (all, gone, script) = (Arc::clone(&all), Arc::clone(&gone), Arc::clone(&script));
                let written = Arc::clone(&written);
                std::thread::spawn(move || {
                    let Some(request) = read_request(&mut stream) else { return };
                    let n = {
                        let mut all = all.lock().unwrap();
                        all.push(request.clone());
                        all.len() - 1
                    };
                    answer(stream, script(n, &request), &gone, &written);
                });
            }
        });
        Self { port, seen, hung_up, pieces_written }
    }

    /// Answers with these in order; the last one repeats.
    pub(crate) fn says(replies: Vec<Vec<u8>>) -> Self {
        Self::new(move |n, _| Reply::Bytes(replies[n.min(replies.len() - 1)].clone()))
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn hung_up(&self) -> usize {
        *self.hung_up.lock().unwrap()
    }

    /// How many pieces of dripping answers were taken from it.
    pub(crate) fn pieces_written(&self) -> usize {
        self.pieces_written.load(Ordering::SeqCst)
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn answer(mut stream: TcpStream, reply: Reply, gone: &Mutex<usize>, written: &AtomicUsize) {
    match reply {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes);
        }
        Reply::Drip(pieces, pause) => {
            for (n, piece) in pieces.iter().enumerate() {
                if n > 0 {
                    std::thread::sleep(pause);
                }
                if stream.write_all(piece).and_then(|()| stream.flush()).is_err() {
                    *gone.lock().unwrap() += 1;
                    return;
                }
                written.fetch_add(1, Ordering::SeqCst);
            }
        }
        Reply::Reset(bytes) => {
            let _ = stream.write_all(&bytes);
            // What was sent is read first: a reset drops what is under way.
            std::thread::sleep(Duration::from_millis(100));
            reset_on_close(&stream);
        }
        Reply::Silence => {
            let _ = stream.read(&mut [0; 1]);
            *gone.lock().unwrap() += 1;
        }
    }
}

/// Lets a connection end with a reset.
fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).unwrap();
    // SAFETY: the option is a `linger` of this size, and the socket is open.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        );
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { head, body, at: Instant::now() })
}

/// A whole answer with a length.
pub(crate) fn json(status: u16, headers: &str, body: &Value) -> Vec<u8> {
    whole(status, &format!("content-type: application/json\r\n{headers}"), &body.to_string())
}

pub(crate) fn whole(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The head of a stream of events that ends with the connection.
pub(crate) fn stream(events: &str) -> Vec<u8> {
    let chunk = format!("{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
    format!("{STREAM_HEAD}{chunk}").into_bytes()
}

/// The same without its end: the connection is cut.
pub(crate) fn cut_stream(events: &str) -> Vec<u8> {
    let chunk = if events.is_empty() { String::new() } else { format!("{:x}\r\n{events}\r\n", events.len()) };
    format!("{STREAM_HEAD}{chunk}").into_bytes()
}

pub(crate) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";

/// A proxy that runs.
pub(crate) struct ProxyProcess {
    pub(crate) port: u16,
    child: Child,
    stderr: Arc<Mutex<String>>,
}

impl ProxyProcess {
    /// `backstop proxy` with all three APIs at one provider.
    pub(crate) fn start(project: &Project, provider: &Provider, flags: &[&str]) -> Self {
        let origin = provider.origin();
        let upstreams: Vec<String> =
            ["anthropic", "openai", "gemini"].iter().map(|name| format!("{name}={origin}")).collect();
        let mut args = vec!["proxy", "--listen", "127.0.0.1:0"];
        for upstream in &upstreams {
            args.extend(["--upstream", upstream.as_str()]);
        }
        args.extend(flags);
        Self::with(project, &args)
    }

    pub(crate) fn with(project: &Project, args: &[&str]) -> Self {
        Self::spawn(project.run(args).command())
    }

    pub(crate) fn spawn(mut command: std::process::Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let stderr: Arc<Mutex<String>> = Arc::default();
        let mut port = None;
        while port.is_none() {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "{}", stderr.lock().unwrap());
            port =
                line.trim().strip_prefix("serving at http://127.0.0.1:").and_then(|port| port.parse().ok());
            stderr.lock().unwrap().push_str(&line);
        }
        let rest = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|n| n > 0) {
                rest.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { port: port.unwrap(), child, stderr }
    }

    /// The most memory that it has had, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Sends a request and reads its whole answer.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &str) -> Answered {
        self.raw(&format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        ))
    }

    pub(crate) fn raw(&self, request: &str) -> Answered {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        Answered::read(&mut stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Asks for the end.
    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Asks for the end and waits for it.
    pub(crate) fn end(self) -> i32 {
        self.terminate();
        self.ended()
    }

    /// Waits for the end.
    pub(crate) fn ended(mut self) -> i32 {
        let mut code = None;
        until("the proxy ends", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client got.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether the body came to its end.
    pub(crate) complete: bool,
}

impl Answered {
    pub(crate) fn read(stream: &mut impl Read) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((text.as_str(), ""));
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let (body, complete) = if head.contains("transfer-encoding: chunked") {
            dechunked(rest)
        } else {
            let length =
                head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            (rest.to_owned(), length.is_none_or(|length: usize| length == rest.len()))
        };
        Self { status, head, body, complete }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

fn dechunked(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { return (body, false) };
        if size == 0 {
            return (body, true);
        }
        let Some(piece) = after.get(..size) else { return (body, false) };
        body.push_str(piece);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}
