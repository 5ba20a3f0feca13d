//! Numbers for the ids of runs, of those who record thousands a second.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that nobody else has, for [`Opening::random`](crate::Opening::random): asking
/// the system for each would cost every call and request a system call.
#[derive(Debug)]
pub struct RunNumbers {
    seed: [u64; 2],
    count: AtomicU64,
}

impl RunNumbers {
    /// Numbers that begin anew with each of these.
    pub fn new(random: fn() -> u64) -> Self {
        Self { seed: [random(), random()], count: AtomicU64::new(0) }
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, self.count.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_number_comes_twice() {
        let numbers = RunNumbers::new(|| 4);
        let all: HashSet<u64> = (0..10_000).map(|_| numbers.next()).collect();
        assert_eq!(all.len(), 10_000);
    }
}
