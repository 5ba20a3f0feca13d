//! Answers of git that never change: those about objects that are named by their content.
//!
//! A phase asks many times how two trees differ and which tree a commit has, and each question
//! costs a process. What is asked about refs, files or settings is never remembered here.

use super::answer::GitOutput;
use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

/// How many answers are kept. A run that asks more begins anew.
const ANSWERS_MAX: usize = 1024;
/// The longest answer that is kept.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// The answers that one repository gave. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LastingAnswers(Arc<Mutex<HashMap<Vec<OsString>, GitOutput>>>);

impl LastingAnswers {
    pub(crate) fn get(&self, args: &[OsString]) -> Option<GitOutput> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(args).cloned()
    }

    /// Keeps an answer, if it is one: an error may be gone the next time.
    pub(crate) fn keep(&self, args: &[OsString], answer: &GitOutput) {
        let is_answer = matches!(answer.code, 0 | 1) && answer.stderr.is_empty();
        if !is_answer || answer.stdout.len() > ANSWER_BYTES_MAX {
            return;
        }
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        answers.insert(args.to_vec(), answer.clone());
    }
}
