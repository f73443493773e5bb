//! A job of the thread pool.

use super::task_queue::{Claim, TaskQueue};
use lapwing_model::sync::{Mutex, lock};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A job of the pool, which its threads share.
pub(super) struct Job<'a> {
    pub(super) task: &'a (dyn Fn(&Claim) + Sync),
    pub(super) claims: &'a [TaskQueue],
    /// Most tasks of a claim.
    pub(super) max_claim: usize,
    /// Payload of the first task that panicked.
    pub(super) panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job<'_> {
    /// Claims and runs tasks until none are left.
    pub(super) fn work(&self, thread: usize) {
        while let Some(claim) = TaskQueue::next(self.claims, thread, self.max_claim) {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.task)(&claim))) {
                TaskQueue::clear(self.claims);
                lock(&self.panic).get_or_insert(payload);
                return;
            }
        }
    }
}
