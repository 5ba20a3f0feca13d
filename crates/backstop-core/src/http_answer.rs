//! A server's answer as text, as far as a limit can be learned from it.

use crate::Hints;
use serde_json::Value;

/// A server's answer: status, headers and a body that is JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpAnswer {
    /// The HTTP status.
    pub status: Option<u16>,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body, where it is JSON.
    pub body: Option<Value>,
}

impl HttpAnswer {
    /// Reads an answer as `curl -i` prints it: a status line, headers, an empty line, a body. Only
    /// the headers or only a JSON body will do. `None` where it is none of these.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.replace("\r\n", "\n");
        let mut rest = text.trim_start();
        if let Ok(body) = serde_json::from_str::<Value>(rest) {
            let headers = Hints::parse_headers(rest);
            return (body.is_object() || body.is_array()).then_some(Self {
                status: None,
                headers,
                body: Some(body),
            });
        }
        let mut answer = Self { status: None, headers: Vec::new(), body: None };
        // A redirect or `100 Continue` comes before the answer that counts: the last one.
        loop {
            let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
            answer.status = status_of(head);
            answer.headers = Hints::parse_headers(head);
            rest = body.trim_start();
            if status_of(rest).is_none() {
                break;
            }
        }
        answer.body = serde_json::from_str(rest).ok();
        let is_answer = answer.status.is_some() || !answer.headers.is_empty();
        is_answer.then_some(answer)
    }
}

/// The status in a status line such as `HTTP/1.1 429 Too Many Requests`, where `text` begins with
/// one.
fn status_of(text: &str) -> Option<u16> {
    let (_, rest) = text.strip_prefix("HTTP/")?.split_once(' ')?;
    rest.split_whitespace().next()?.parse().ok().filter(|status| (100..600).contains(status))
}
