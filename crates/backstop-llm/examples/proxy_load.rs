//! A provider that answers at once and a client that asks as fast as it can, for
//! `benches/proxy.py`.
//!
//!   proxy_load upstream serves; prints its port proxy_load ask PORT PATH CONNECTIONS COUNT prints
//!   p50 and p99 in microseconds, and requests a second proxy_load stream PORT PATH COUNT prints
//!   the p50 of the time to the first byte of the body proxy_load open PORT PATH STREAMS opens
//!   streams that stay open; prints a line, waits for a line
//!
//! PROXY_LOAD_HEADERS has more headers of each request, as `name: value` lines.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)] // A program for a benchmark.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const ANSWER: &str = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#;
const EVENTS: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hello\"},\"finish_reason\":null}]}\n\n";
const END: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |n: usize| words[n].as_str();
    let number = |n: usize| words[n].parse::<usize>().unwrap();
    match word(0) {
        "upstream" => upstream(),
        "ask" => ask(word(1), word(2), number(3), number(4)),
        "stream" => stream(word(1), word(2), number(3)),
        "open" => open(word(1), word(2), number(3)),
        other => panic!("{other}?"),
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn upstream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let serve = move || {
            stream.set_nodelay(true).unwrap();
            let mut reader = BufReader::new(stream);
            while let Some(body) = request(&mut reader) {
                let text = String::from_utf8_lossy(&body);
                let out = reader.get_mut();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                let written = if text.contains("stay open") {
                    out.write_all(format!("{head}{}", chunk(EVENTS)).as_bytes()).unwrap();
                    std::thread::sleep(Duration::from_secs(60));
                    return;
                } else if text.contains("\"stream\":true") {
                    out.write_all(format!("{head}{}{}0\r\n\r\n", chunk(EVENTS), chunk(END)).as_bytes())
                } else {
                    let length = ANSWER.len();
                    out.write_all(format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{ANSWER}").as_bytes())
                };
                if written.is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(serve).unwrap();
    }
}

/// A request's body.
fn request(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn post(path: &str, more: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"m"{more},"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "word ".repeat(200)
    );
    let more = std::env::var("PROXY_LOAD_HEADERS").unwrap_or_default();
    let more: String = more.lines().flat_map(|line| [line, "\r\n"]).collect();
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nauthorization: Bearer sk-test\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads an answer; gives when the first byte of its body came.
fn answer(reader: &mut BufReader<TcpStream>) -> Instant {
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "hung up");
        let lower = line.to_ascii_lowercase();
        assert!(!lower.starts_with("http/") || lower.contains(" 200 "), "{line}");
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        chunked |= lower.contains("chunked");
        if line == "\r\n" {
            break;
        }
    }
    let mut first = None;
    loop {
        let size = if chunked {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            usize::from_str_radix(line.trim(), 16).unwrap()
        } else {
            length
        };
        first.get_or_insert_with(Instant::now);
        let mut piece = vec![0; size + if chunked { 2 } else { 0 }];
        reader.read_exact(&mut piece).unwrap();
        if size == 0 || !chunked {
            return first.unwrap();
        }
    }
}

fn connect(port: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    BufReader::new(stream)
}

fn ask(port: &str, path: &str, connections: usize, count: usize) {
    let request = post(path, "");
    let began = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let client = || {
            let mut reader = connect(port);
            let mut times = Vec::new();
            for _ in 0..count / connections {
                let from = Instant::now();
                reader.get_mut().write_all(&request).unwrap();
                answer(&mut reader);
                times.push(from.elapsed());
            }
            times
        };
        let clients: Vec<_> = (0..connections).map(|_| scope.spawn(client)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let elapsed = began.elapsed();
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_nanos() as f64 / 1000.0;
    println!("{:.1} {:.1} {:.0}", at(50), at(99), times.len() as f64 / elapsed.as_secs_f64());
}

fn stream(port: &str, path: &str, count: usize) {
    let request = post(path, ",\"stream\":true");
    let mut reader = connect(port);
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let from = Instant::now();
            reader.get_mut().write_all(&request).unwrap();
            answer(&mut reader).duration_since(from)
        })
        .collect();
    times.sort();
    println!("{:.1}", times[times.len() / 2].as_nanos() as f64 / 1000.0);
}

fn open(port: &str, path: &str, streams: usize) {
    let request = post(path, ",\"stream\":true,\"user\":\"stay open\"");
    let opened: Vec<BufReader<TcpStream>> = (0..streams)
        .map(|_| {
            let mut reader = connect(port);
            reader.get_mut().write_all(&request).unwrap();
            let mut line = String::new();
            while !line.starts_with("data:") {
                line.clear();
                reader.read_line(&mut line).unwrap();
            }
            reader
        })
        .collect();
    println!("{}", opened.len());
    let _ = std::io::stdin().read_line(&mut String::new());
}
