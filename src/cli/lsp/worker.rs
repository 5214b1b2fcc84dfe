//! The thread that checks open documents, so that the session can read messages meanwhile.
//!
//! Invariant: at most one state of a document waits, the newest. Each result has the generation of the checked state,
//! and the session drops it if the document has a newer one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::judge::DocumentChecker;
use super::problems::Problem;

/// A state of an open document that is to be checked.
pub(super) struct CheckJob {
    pub(super) uri: String,
    /// Number of this state; it grows with every change of a document or of the settings.
    pub(super) generation: u64,
    /// Name of the file.
    pub(super) file: String,
    pub(super) text: Arc<str>,
    pub(super) judge: Arc<DocumentChecker>,
}

impl CheckJob {
    fn check_catching_panics(self) -> CheckedDocument {
        let check = || self.judge.check(&self.file, &self.text);
        let problems = catch_unwind(AssertUnwindSafe(check)).ok();
        CheckedDocument { uri: self.uri, generation: self.generation, problems }
    }
}

/// The problems that a check found in a state of a document.
#[derive(Debug)]
pub(super) struct CheckedDocument {
    pub(super) uri: String,
    pub(super) generation: u64,
    /// `None` if the check panicked; the panic is reported on stderr.
    pub(super) problems: Option<Vec<Problem>>,
}

/// States of documents that wait to be checked, the one that waits longest first.
#[derive(Default)]
pub(super) struct CheckQueue {
    jobs: Mutex<VecDeque<CheckJob>>,
    ready: Condvar,
}

impl CheckQueue {
    /// Adds a job. It replaces an older job for the same document.
    pub(super) fn push_or_replace_same_document(&self, job: CheckJob) {
        let mut jobs = self.lock();
        match jobs.iter_mut().find(|waiting| waiting.uri == job.uri) {
            Some(waiting) => *waiting = job,
            None => jobs.push_back(job),
        }
        self.ready.notify_one();
    }

    /// Checks states as they arrive and passes each result to `done`, until that returns false.
    pub(super) fn run_check_loop(&self, done: impl Fn(CheckedDocument) -> bool) {
        loop {
            let jobs = self.ready.wait_while(self.lock(), |jobs| jobs.is_empty());
            let job = jobs.unwrap_or_else(PoisonError::into_inner).pop_front();
            if job.is_some_and(|job| !done(job.check_catching_panics())) {
                return;
            }
        }
    }

    /// Checks the state that waits longest; `None` if none waits.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_oldest_job(&self) -> Option<CheckedDocument> {
        let job = self.lock().pop_front()?;
        Some(job.check_catching_panics())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CheckJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
