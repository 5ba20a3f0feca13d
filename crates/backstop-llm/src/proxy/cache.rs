//! Answers to identical requests that say that they want the same answer: in memory, bounded.

use backstop_core::Sha256;
use backstop_http::Headers;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes all answers may have.
const BYTES_MAX: usize = 16 << 20;
/// How many bytes one answer may have.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;

/// An answer that is used again.
#[derive(Debug)]
pub(super) struct Cached {
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

/// The answers that may be used again.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    by_key: HashMap<String, Arc<Cached>>,
    order: VecDeque<String>,
    bytes: usize,
}

/// The key of a request that wants the same answer each time (`temperature` is 0); none for others.
pub(super) fn key(upstream: &str, target: &str, credential: Option<&str>, body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let temperature = value.get("temperature").or_else(|| value.pointer("/generationConfig/temperature"));
    if temperature?.as_f64()? != 0.0 {
        return None;
    }
    let mut digest = Sha256::of(upstream);
    for part in [target.as_bytes(), credential.unwrap_or_default().as_bytes(), body] {
        digest.update([0]);
        digest.update(part);
    }
    Some(digest.hex())
}

impl Cache {
    pub(super) fn get(&self, key: &str) -> Option<Arc<Cached>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_key.get(key).cloned()
    }

    pub(super) fn put(&self, key: String, answer: Cached) {
        if answer.body.len() > ANSWER_BYTES_MAX {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.by_key.contains_key(&key) {
            return;
        }
        all.bytes += answer.body.len();
        all.order.push_back(key.clone());
        all.by_key.insert(key, Arc::new(answer));
        while all.bytes > BYTES_MAX {
            let Some(oldest) = all.order.pop_front() else { break };
            if let Some(gone) = all.by_key.remove(&oldest) {
                all.bytes -= gone.body.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_that_want_the_same_answer_have_a_key() {
        let of = |body: &str| key("openai", "/v1", Some("a"), body.as_bytes());
        assert!(of(r#"{"temperature":0}"#).is_some());
        assert!(of(r#"{"generationConfig":{"temperature":0.0}}"#).is_some());
        assert_ne!(of(r#"{"temperature":0}"#), key("openai", "/v1", Some("b"), br#"{"temperature":0}"#));
        for other in ["{}", r#"{"temperature":0.1}"#, "x"] {
            assert_eq!(of(other), None);
        }
    }

    #[test]
    fn the_oldest_answers_go_first() {
        let cache = Cache::default();
        let answer = |n: usize| Cached { status: 200, headers: Headers::new(), body: vec![0; n] };
        for n in 0..20 {
            cache.put(n.to_string(), answer(ANSWER_BYTES_MAX));
        }
        assert!(cache.get("0").is_none() && cache.get("19").is_some());
        cache.put("big".to_owned(), answer(ANSWER_BYTES_MAX + 1));
        assert!(cache.get("big").is_none());
    }
}
