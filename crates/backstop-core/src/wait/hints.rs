//! What an answer says about when to come back: `Retry-After` and its kin, in every dialect, and
//! rate-limit windows.

use super::clock::Clock;
use super::{Wait, bounded, longer, span, until};
use crate::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// Header values longer than this are not read.
const VALUE_BYTES_MAX: usize = 256;
/// How many windows one answer may name.
const WINDOWS_MAX: usize = 32;

/// One rate-limit window that an answer speaks of.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Its name: `requests`, `input-tokens`, `unified-5h`.
    pub name: String,
    /// What is left in it.
    pub remaining: Option<f64>,
    /// What it allows in all.
    pub limit: Option<f64>,
    /// When it is full or open again, from now.
    pub resets_in: Option<Duration>,
    /// Whether the server says that it is closed.
    pub rejected: bool,
    /// Whether the server says that it is open.
    pub is_served: bool,
}

impl Window {
    /// Whether nothing may be sent in it now.
    pub fn is_closed(&self) -> bool {
        self.rejected || self.remaining.is_some_and(|r| r <= 0.0)
    }
}

/// Everything an answer says about when to come back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hints {
    /// The wait that the server asks for outright.
    pub retry_after: Option<Duration>,
    /// Whether the server says that a retry makes sense.
    pub should_retry: Option<bool>,
    /// The windows it speaks of.
    pub windows: Vec<Window>,
    /// The wait that its sentences ask for.
    pub in_words: Option<Duration>,
    /// The same wait as `retry_after`, spelled in milliseconds, which is more exact.
    retry_after_ms: Option<Duration>,
}

impl Hints {
    /// Headers as curl prints them, or as JSON: an object, or a list of pairs. What is no header is
    /// passed over.
    pub fn parse_headers(text: &str) -> Vec<(String, String)> {
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(fields)) => {
                fields.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
            }
            Ok(Value::Array(pairs)) => pairs
                .iter()
                .filter_map(|pair| Some((pair.get(0)?.as_str()?.to_owned(), shown(pair.get(1)?))))
                .collect(),
            _ => text
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
                .collect(),
        }
    }

    /// Reads the headers and the body of an answer.
    pub fn read(headers: &[(String, String)], body: Option<&Value>, clock: &Clock) -> Self {
        let mut hints = Hints::default();
        for (name, value) in headers {
            hints.read_field(name, value, clock);
        }
        if let Some(body) = body {
            hints.read_body(body, clock, 0);
        }
        hints
    }

    /// The wait that the answer asks for: by its fields, else by its sentences.
    pub fn wait(&self) -> Option<Wait> {
        let structured = self.structured().map(|after| Wait { after, is_structured: true });
        structured.or_else(|| self.in_words.map(|after| Wait { after, is_structured: false }))
    }

    /// The wait that it asks for outright.
    pub fn asked(&self) -> Option<Duration> {
        self.retry_after_ms.or(self.retry_after).or(self.in_words)
    }

    /// Whether only a sentence asks for a wait.
    pub fn is_in_words(&self) -> bool {
        self.structured().is_none() && self.in_words.is_some()
    }

    /// The longest reset of a window of which nothing says whether it is used up. In a refusal it
    /// is the one that refused.
    pub fn unexplained_reset(&self) -> Option<Duration> {
        let unexplained = |w: &&Window| w.remaining.is_none() && !w.rejected && !w.is_served;
        self.windows.iter().filter(unexplained).filter_map(|w| w.resets_in).max()
    }

    /// The longest wait that a field asks for: the explicit one, or the reset of a closed window.
    pub(super) fn structured(&self) -> Option<Duration> {
        let closed = self.windows.iter().filter(|w| w.is_closed()).filter_map(|w| w.resets_in).max();
        longer(self.retry_after_ms.or(self.retry_after), closed)
    }

    /// Reads one header, or one field of a body. Returns whether it
    /// speaks of waits in a way that can be read.
    pub(super) fn read_field(&mut self, name: &str, value: &str, clock: &Clock) -> bool {
        if value.len() > VALUE_BYTES_MAX || name.len() > VALUE_BYTES_MAX {
            return false;
        }
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim();
        let asked = match name.replace(['-', '_'], "").as_str() {
            "retryafter" | "resetsat" | "resetat" => retry_after(value, clock),
            "retryafterms" | "xmsretryafterms" | "retrydelayms" => {
                let asked = millis(value);
                self.retry_after_ms = longer(self.retry_after_ms, asked);
                return asked.is_some();
            }
            // Gemini's RetryInfo has `retryDelay`, Codex's backend `resets_in_seconds`.
            "retrydelay" | "retryafterseconds" | "retryaftersecs" | "retryinseconds" | "resetsinseconds"
            | "resetinseconds" => seconds(value).or_else(|| span::whole(value)),
            "xshouldretry" => {
                self.should_retry = value.parse().ok();
                return true;
            }
            _ => return self.read_window(&name, value, clock),
        };
        self.retry_after = longer(self.retry_after, asked);
        asked.is_some()
    }

    fn window(&mut self, name: &str) -> Option<&mut Window> {
        if let Some(index) = self.windows.iter().position(|w| w.name == name) {
            return self.windows.get_mut(index);
        }
        if self.windows.len() >= WINDOWS_MAX {
            return None;
        }
        self.windows.push(Window {
            name: name.to_owned(),
            remaining: None,
            limit: None,
            resets_in: None,
            rejected: false,
            is_served: false,
        });
        self.windows.last_mut()
    }

    fn read_window(&mut self, header: &str, value: &str, clock: &Clock) -> bool {
        if let Some(rest) = header.strip_prefix("anthropic-ratelimit-") {
            self.read_named(rest, value, clock);
        } else if header == "ratelimit" {
            self.read_ietf(value);
        } else if let Some(rest) = header.strip_prefix("x-codex-") {
            self.read_codex(rest, value, clock);
        } else {
            let prefixes =
                ["x-ratelimitbysize-", "ratelimitbysize-", "x-ratelimit-", "x-rate-limit-", "ratelimit-"];
            let Some(rest) = prefixes.iter().find_map(|p| header.strip_prefix(p)) else { return false };
            self.read_generic(rest, value, clock);
        }
        true
    }

    /// Anthropic: `requests-remaining`, `input-tokens-reset`, `unified-5h-status`, `unified-reset`.
    fn read_named(&mut self, rest: &str, value: &str, clock: &Clock) {
        let Some((name, field)) = rest.rsplit_once('-') else { return };
        let Some(window) = self.window(name) else { return };
        match field {
            "remaining" => window.remaining = number(value),
            "limit" => window.limit = number(value),
            "reset" => window.resets_in = retry_after(value, clock),
            "status" => {
                window.rejected = value.eq_ignore_ascii_case("rejected");
                window.is_served = !window.rejected;
            }
            "utilization" => {
                window.rejected |= number(value).is_some_and(|spent| spent >= 1.0);
                window.is_served |= !window.rejected;
            }
            _ => {}
        }
    }

    /// `remaining-requests`, `reset-tokens`, `reset`, `limit-requests`, `remaining-project-tokens`;
    /// also `tokens-remaining`.
    fn read_generic(&mut self, rest: &str, value: &str, clock: &Clock) {
        let (field, name) = match rest.split_once('-') {
            None => (rest, "requests"),
            Some((field @ ("remaining" | "reset" | "limit"), name)) => (field, name),
            Some(_) => match rest.rsplit_once('-') {
                Some((name, field)) => (field, name),
                None => return,
            },
        };
        if !matches!(field, "remaining" | "reset" | "limit") {
            return;
        }
        // Discord: `x-ratelimit-reset-after`.
        let name = if name == "after" { "requests" } else { name };
        let Some(window) = self.window(name) else { return };
        match field {
            "remaining" => window.remaining = number(value),
            "limit" => window.limit = number(value),
            _ => window.resets_in = retry_after(value, clock),
        }
    }

    /// `RateLimit: "default";r=0;t=30, "burst";r=5;t=1`.
    fn read_ietf(&mut self, value: &str) {
        for item in value.split(',').take(WINDOWS_MAX) {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().trim_matches('"').to_owned();
            let Some(window) = self.window(&name) else { return };
            for part in parts {
                match part.split_once('=') {
                    Some(("r", v)) => window.remaining = number(v),
                    Some(("t", v)) => window.resets_in = seconds(v),
                    _ => {}
                }
            }
        }
    }

    /// `primary-used-percent`, `primary-reset-at`.
    fn read_codex(&mut self, rest: &str, value: &str, clock: &Clock) {
        let Some((name, field)) = rest.split_once('-') else { return };
        let Some(window) = self.window(&format!("codex-{name}")) else { return };
        match field {
            "used-percent" => {
                window.rejected = number(value).is_some_and(|percent| percent >= 100.0);
                window.is_served = !window.rejected;
            }
            "reset-at" | "reset-after-seconds" => window.resets_in = retry_after(value, clock),
            _ => {}
        }
    }
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches(['"', '\'']);
    // `NaN`, `inf` and `1e400` parse as floats, and are no numbers for us.
    text.parse::<f64>().ok().filter(|n| n.is_finite())
}

fn seconds(text: &str) -> Option<Duration> {
    number(text).and_then(bounded)
}

fn millis(text: &str) -> Option<Duration> {
    number(text).and_then(|n| bounded(n / 1000.0))
}

/// RFC 9110: seconds or an HTTP date; SDKs accept fractions. Resets are written in the same ways,
/// and as epoch seconds, epoch milliseconds, spans and dates of other formats.
fn retry_after(value: &str, clock: &Clock) -> Option<Duration> {
    number(value).and_then(|n| reset_number(n, clock)).or_else(|| span::whole(value)).or_else(|| {
        let at = Timestamp::parse_http_date(value).or_else(|| Timestamp::parse_rfc3339(value))?;
        until(at, clock)
    })
}

/// A bare number: epoch milliseconds, epoch seconds or seconds from now, told apart by size.
fn reset_number(n: f64, clock: &Clock) -> Option<Duration> {
    if !n.is_finite() || n < 0.0 {
        return None;
    }
    if n > 1e9 {
        let millis = if n > 1e12 { n } else { n * 1000.0 };
        // A float that is too large saturates, and the timestamp holds it within its years.
        return until(Timestamp::from_millis(millis as i64), clock);
    }
    bounded(n)
}

#[cfg(test)]
mod tests {
    use super::super::WAIT_MAX;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339("2025-08-21T12:40:00Z").unwrap()
    }

    fn wait(headers: &[(&str, &str)]) -> Option<f64> {
        let headers: Vec<_> = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Hints::read(&headers, None, &Clock::utc(now())).wait().map(|w| w.after.as_secs_f64())
    }

    #[test]
    fn every_dialect_of_headers() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<f64>);
        let cases: &[Case<'_>] = &[
            (&[("Retry-After", "41")], Some(41.0)),
            (&[("retry-after", "1.5")], Some(1.5)),
            (&[("retry-after", "Thu, 21 Aug 2025 12:41:00 GMT")], Some(60.0)),
            (&[("retry-after", "7999")], Some(7999.0)),
            (&[("retry-after", "2"), ("retry-after-ms", "1500")], Some(1.5)),
            (&[("x-ms-retry-after-ms", "35000")], Some(35.0)),
            (
                &[
                    ("anthropic-ratelimit-input-tokens-remaining", "0"),
                    ("anthropic-ratelimit-input-tokens-reset", "2025-08-21T12:40:59Z"),
                ],
                Some(59.0),
            ),
            (
                &[
                    ("anthropic-ratelimit-requests-remaining", "5"),
                    ("anthropic-ratelimit-requests-reset", "2025-08-21T12:40:59Z"),
                ],
                None,
            ),
            (
                &[
                    ("anthropic-ratelimit-unified-status", "rejected"),
                    ("anthropic-ratelimit-unified-reset", "1755780060"),
                ],
                Some(60.0),
            ),
            (
                &[
                    ("anthropic-ratelimit-unified-5h-status", "rejected"),
                    ("anthropic-ratelimit-unified-5h-reset", "2025-08-21T14:40:00Z"),
                ],
                Some(7200.0),
            ),
            (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6m0s")], Some(360.0)),
            (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "12ms")], Some(0.012)),
            (
                &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "1h2m3.5s")],
                Some(3723.5),
            ),
            (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1755780060")], Some(60.0)),
            (&[("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1755780060000")], Some(60.0)),
            (&[("ratelimit", "\"default\";r=0;t=30")], Some(30.0)),
            (&[("ratelimit", "\"default\";r=3;t=30, \"burst\";r=0;t=5")], Some(5.0)),
            (&[("ratelimit-remaining", "0"), ("ratelimit-reset", "30")], Some(30.0)),
            (
                &[("x-ratelimitbysize-remaining-minute", "0"), ("x-ratelimitbysize-reset-minute", "12")],
                Some(12.0),
            ),
            (
                &[("x-codex-primary-used-percent", "100"), ("x-codex-primary-reset-at", "1755780060")],
                Some(60.0),
            ),
            // A window that has passed is no limit.
            (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1655780060")], Some(0.0)),
        ];
        for (headers, want) in cases {
            assert_eq!(wait(headers), *want, "{headers:?}");
        }
    }

    #[test]
    fn bodies_carry_hints_too() {
        let cases = [
            (
                json!({"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}]}}),
                34.4,
            ),
            (
                json!({"error": {"message": "Rate limit reached. Please try again in 11.054s. Visit x"}}),
                11.054,
            ),
            (json!({"error": {"message": "Try again in 35 seconds."}}), 35.0),
            (
                json!({"error": {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1755780060000"}}}}),
                60.0,
            ),
            (json!({"error": {"type": "usage_limit_reached", "resets_at": 1_755_780_060}}), 60.0),
            (json!({"detail": "Please retry after 5 minutes"}), 300.0),
        ];
        for (body, want) in cases {
            let got = Hints::read(&[], Some(&body), &Clock::utc(now())).wait().map(|w| w.after.as_secs_f64());
            assert_eq!(got, Some(want), "{body}");
        }
    }

    #[test]
    fn hostile_values_are_no_hints_or_bounded_ones() {
        for value in ["-1", "NaN", "inf", "", "soon", &"9".repeat(64 * 1024), "1s2", "--5s"] {
            assert_eq!(wait(&[("retry-after", value)]), None, "{value:.20}");
        }
        for value in ["1000000000000000000000000000000", "Fri, 31 Dec 9998 23:59:59 GMT"] {
            assert_eq!(wait(&[("retry-after", value)]), Some(WAIT_MAX.as_secs_f64()), "{value}");
        }
        let many: Vec<_> =
            (0..1000).map(|n| (format!("x-ratelimit-remaining-{n}"), "0".to_owned())).collect();
        assert!(Hints::read(&many, None, &Clock::utc(now())).windows.len() <= WINDOWS_MAX);
    }

    #[test]
    fn the_server_may_forbid_a_retry() {
        let hints = Hints::read(&[("x-should-retry".into(), "false".into())], None, &Clock::utc(now()));
        assert_eq!(hints.should_retry, Some(false));
    }

    proptest! {
        #[test]
        fn any_header_gives_a_bounded_wait(name in "[a-zA-Z-]{0,30}", value in any::<String>(), at: i64) {
            for name in [name.as_str(), "retry-after", "x-ratelimit-reset", "ratelimit", "anthropic-ratelimit-tokens-reset"] {
                let hints = Hints::read(&[(name.to_owned(), value.clone())], Some(&json!({"message": value})), &Clock::utc(Timestamp::from_millis(at)));
                prop_assert!(hints.wait().is_none_or(|w| w.after <= WAIT_MAX));
            }
        }
    }
}
