//! Results of read-only tools that are used again for a while. In memory, and small.

use crate::jsonrpc::Raw;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many results are kept.
const RESULTS_MAX: usize = 256;
/// How large a result may be to be kept, in bytes.
const RESULT_BYTES_MAX: usize = 256 << 10;

/// Results that are used again.
#[derive(Debug, Default)]
pub(crate) struct ResultCache(Mutex<HashMap<(String, String), (Instant, Raw)>>);

impl ResultCache {
    /// The result of the same call, where it is not older than `age_max`.
    pub(crate) fn get(&self, tool: &str, arguments: &str, age_max: Duration) -> Option<Raw> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, result) = kept.get(&(tool.to_owned(), arguments.to_owned()))?;
        (at.elapsed() <= age_max).then(|| result.clone())
    }

    /// Keeps a result. Where there are too many, the oldest goes.
    pub(crate) fn put(&self, tool: &str, arguments: &str, result: &Raw) {
        if result.get().len() > RESULT_BYTES_MAX {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= RESULTS_MAX {
            let oldest = kept.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                kept.remove(&oldest);
            }
        }
        kept.insert((tool.to_owned(), arguments.to_owned()), (Instant::now(), result.clone()));
    }
}
