//! The unclaimed tasks of a job: a contiguous range for each thread, with work stealing.

use lapwing_model::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// The unclaimed tasks of one thread. The thread claims from the front, so that it reads memory in
/// order and its prefetches are what it reads next; others steal from the back. Aligned to two
/// cache lines, since the hardware fetches them in pairs.
///
/// If a job allows claims of several tasks, a claim takes three quarters of the tasks left in the
/// queue: few claims in all, and small last ones, so that threads finish at about the same time
/// (guided self-scheduling: Polychronopoulos and Kuck, 1987).
#[repr(align(128))]
pub(super) struct TaskQueue(AtomicU64);

/// Consecutive tasks that a thread has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Number of the thread.
    pub(crate) thread: usize,
    pub(crate) tasks: Range<usize>,
    /// End of the thread's own tasks after this claim, which it will most likely continue with.
    pub(crate) end: usize,
}

impl TaskQueue {
    pub(super) fn none() -> TaskQueue {
        TaskQueue(AtomicU64::new(0))
    }

    /// Divides `tasks` evenly among the queues. No thread may claim meanwhile.
    ///
    /// # Panics
    /// When there are 2³² tasks or more.
    pub(super) fn divide(all: &[TaskQueue], tasks: usize) {
        assert!(u32::try_from(tasks).is_ok(), "{tasks} tasks");
        let edge = |thread: usize| TaskQueue::edge(tasks, all.len(), thread);
        for (thread, claims) in all.iter().enumerate() {
            claims.0.store(word(edge(thread)..edge(thread + 1)), Ordering::Relaxed);
        }
    }

    /// First task of a thread's range, out of `tasks` on `threads` threads.
    pub(super) fn edge(tasks: usize, threads: usize, thread: usize) -> usize {
        (tasks * thread).checked_div(threads).unwrap_or(0)
    }

    /// Drops all unclaimed tasks.
    pub(super) fn clear(all: &[TaskQueue]) {
        all.iter().for_each(|claims| claims.0.store(0, Ordering::Relaxed));
    }

    /// Claims up to `max_claim` tasks for a thread: the next of its own, or else the last of
    /// another thread.
    pub(super) fn next(all: &[TaskQueue], thread: usize, max_claim: usize) -> Option<Claim> {
        let count = |left: &Range<usize>| (left.len() * 3).div_ceil(4).min(max_claim);
        // There may be fewer tasks than threads.
        let (before, from) = all.split_at(thread.min(all.len()));
        let own = from.first().and_then(|own| {
            own.take(|left| {
                let tasks = left.start..left.start + count(left);
                (Claim { thread, tasks: tasks.clone(), end: left.end }, tasks.end..left.end)
            })
        });
        let mut others = from.iter().skip(1).chain(before);
        own.or_else(|| {
            others.find_map(|other| {
                other.take(|left| {
                    let tasks = left.end - count(left)..left.end;
                    (
                        Claim { thread, tasks: tasks.clone(), end: tasks.end },
                        left.start..tasks.start,
                    )
                })
            })
        })
    }

    /// Claims the part of the queue that `split` selects, and keeps the rest.
    fn take(&self, split: impl Fn(&Range<usize>) -> (Claim, Range<usize>)) -> Option<Claim> {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let tasks = (now >> 32) as usize..(now & u64::from(u32::MAX)) as usize;
            if tasks.is_empty() {
                return None;
            }
            let (taken, left) = split(&tasks);
            let left = word(left);
            match self.0.compare_exchange_weak(now, left, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(taken),
                Err(other) => now = other,
            }
        }
    }
}

fn word(tasks: Range<usize>) -> u64 {
    (tasks.start as u64) << 32 | tasks.end as u64
}

#[cfg(all(test, not(loom)))]
mod tests;
