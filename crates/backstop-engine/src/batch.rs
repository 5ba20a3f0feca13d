//! Runs many operations with a limit on how many run at once. Each has its own attempts.

use crate::{Engine, Finished, Operation};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

impl Engine {
    /// Runs all operations, at most `at_once` at a time. Each has its own attempts; the retry
    /// budget is shared. The results are in the order of the operations; `None` where an operation
    /// panicked.
    pub async fn batch<O>(
        &self,
        operations: impl IntoIterator<Item = (String, O)>,
        at_once: usize,
    ) -> Vec<Option<Finished<O::Output>>>
    where
        O: Operation + 'static,
        O::Output: 'static,
    {
        let slots = Arc::new(Semaphore::new(at_once.max(1)));
        let mut tasks = JoinSet::new();
        let mut count = 0;
        for (index, (name, operation)) in operations.into_iter().enumerate() {
            let (engine, slots) = (self.clone(), Arc::clone(&slots));
            count = index + 1;
            tasks.spawn(async move {
                // The semaphore is never closed.
                let _slot = slots.acquire_owned().await;
                (index, engine.run(&name, operation).await)
            });
        }
        let mut answers: Vec<Option<Finished<O::Output>>> =
            std::iter::repeat_with(|| None).take(count).collect();
        while let Some(done) = tasks.join_next().await {
            if let Ok((index, finished)) = done {
                answers[index] = Some(finished);
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use crate::{Attempt, Engine};
    use backstop_core::{Reason, profile};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn each_has_its_own_chances_and_few_run_at_once() {
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let operations = (0..20u32).map(|n| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            let operation = move |attempt: Attempt| {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    // Every third needs all its attempts, one never succeeds.
                    match n {
                        7 => Err(backstop_core::Fault::new(Reason::ToolFailed)),
                        n if n % 3 == 0 && attempt.number < 3 => {
                            Err(backstop_core::Fault::new(Reason::ToolFailed))
                        }
                        n => Ok(n),
                    }
                }
            };
            (format!("op {n}"), operation)
        });
        let answers = Engine::new(profile("tool").unwrap()).batch(operations, 4).await;
        assert_eq!(answers.len(), 20);
        for (n, answer) in answers.into_iter().enumerate() {
            let answer = answer.unwrap();
            assert_eq!(answer.result.is_ok(), n != 7);
            assert_eq!(answer.attempts, if n == 7 || n % 3 == 0 { 3 } else { 1 });
        }
        assert_eq!(most.load(Ordering::SeqCst), 4);
    }
}
