//! https through `curl`: Backstop has no encryption of its own.
//!
//! All that may be a secret (the address, the headers, the body) goes to curl on its standard input, as a config; nothing of
//! it is on the command line, where everybody on the machine could read it. The user's own `.curlrc` is not read.

use super::http;
use super::http::Answer;
use super::program::{Ran, run};
use backstop_config::Address;
use backstop_core::{Dispatch, Signal, Surface};
use backstop_engine::Failed;
use std::time::Duration;

/// The arguments: nothing of them depends on what is sent. `--disable` has to be the first.
const ARGUMENTS: &[&str] = &[
    "--disable",
    "--config",
    "-",
    "--silent",
    "--show-error",
    "--include",
    "--suppress-connect-headers",
    "--proto",
    "=https",
    "--max-filesize",
    "1048576",
];

/// What curl's own exit codes say, as clients call it; the others are told in curl's words.
const CODES: &[(i64, &str, Dispatch)] = &[
    (5, "ENOTFOUND", Dispatch::NotDispatched),
    (6, "ENOTFOUND", Dispatch::NotDispatched),
    (7, "ECONNREFUSED", Dispatch::NotDispatched),
    (28, "ETIMEDOUT", Dispatch::Lost),
    (35, "ECONNRESET", Dispatch::NotDispatched),
    (52, "ECONNRESET", Dispatch::Lost),
    (55, "EPIPE", Dispatch::Lost),
    (56, "ECONNRESET", Dispatch::Lost),
    (60, "CERT_UNTRUSTED", Dispatch::NotDispatched),
];

/// Sends it through curl, and gives the answer.
pub(super) fn post(
    address: &Address,
    headers: &[(String, String)],
    body: &str,
    limits: http::Limits,
) -> Result<Answer, Failed> {
    let argv: Vec<String> = ["curl"].iter().chain(ARGUMENTS).map(ToString::to_string).collect();
    let config = config(address, headers, body, limits);
    // Curl has its own clock; ours is for a curl that does not keep to it.
    let ran = run(&argv, None, config.as_bytes(), limits.total + Duration::from_secs(5))?;
    answer(ran)
}

fn answer(ran: Ran) -> Result<Answer, Failed> {
    let found = Answer::parse(&ran.stdout);
    if found.status.is_some() && (ran.exit == Some(0) || !found.is_success()) {
        return Ok(found);
    }
    let known = CODES.iter().find(|(code, _, _)| Some(*code) == ran.exit);
    Err(Failed::from(Signal {
        surface: Surface::Response,
        dispatch: known.map_or(Dispatch::Lost, |(_, _, dispatch)| *dispatch),
        errno: known.map(|(_, errno, _)| (*errno).to_owned()),
        timed_out: ran.timed_out,
        stderr: ran.stderr,
        ..Signal::default()
    }))
}

/// The config that curl reads.
fn config(address: &Address, headers: &[(String, String)], body: &str, limits: http::Limits) -> String {
    let mut out = format!(
        "url = {}\nrequest = \"POST\"\nmax-time = \"{}\"\nconnect-timeout = \"{}\"\nuser-agent = \"backstop/{}\"\n",
        quoted(&address.whole()),
        limits.total.as_secs().max(1),
        limits.step.as_secs().max(1),
        env!("CARGO_PKG_VERSION")
    );
    let usual =
        [("content-type", "application/json"), ("expect", "")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    for (name, value) in usual.iter().chain(headers) {
        out.push_str(&format!("header = {}\n", quoted(format!("{name}: {value}").trim_end())));
    }
    // Raw: a body that begins with `@` is no file.
    out.push_str(&format!("data-raw = {}\n", quoted(body)));
    out
}

/// A value in a config of curl's: nothing in it ends it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_sent_ends_a_line_of_the_config() {
        let address = Address::parse("https://h/x?y=z").unwrap();
        let limits = http::Limits { step: Duration::from_secs(5), total: Duration::from_secs(10) };
        let nasty = "a\"\nurl = \"http://evil\"\r\\\u{0}";
        let config = config(&address, &[("authorization".into(), nasty.into())], nasty, limits);
        assert_eq!(config.lines().filter(|line| line.starts_with("url = ")).count(), 1, "{config}");
        assert_eq!(config.lines().count(), 9, "{config}");
        assert!(config.contains("header = \"expect:\"\n"), "{config}");
    }

    #[test]
    fn what_curl_says_is_told() {
        let ran = |exit, stdout: &str| Ran {
            exit: Some(exit),
            timed_out: false,
            stdout: stdout.as_bytes().to_vec(),
            stderr: b"curl: (7) no".to_vec(),
        };
        assert_eq!(answer(ran(0, "HTTP/2 201\r\n\r\n{}")).unwrap().status, Some(201));
        assert_eq!(answer(ran(22, "HTTP/2 500\r\n\r\n{}")).unwrap().status, Some(500));
        // The head came, and then it broke off: nobody knows.
        assert!(answer(ran(56, "HTTP/2 200\r\n\r\n")).is_err());
        assert!(answer(ran(7, "")).is_err());
    }
}
