//! Which tasks of a job nobody has begun: a run of neighbours for each thread.

use crate::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// Tasks of one thread that nobody has begun. It takes them from the front, so that what it reads
/// lies side by side and what it has asked for ahead is what it reads next; others take from the
/// back, as far as possible from there. On cache lines of its own, as two of them are fetched
/// together.
///
/// Where a job lets a thread claim several tasks at once, it claims three quarters of those that are
/// left, of its own or of another's: a few claims in all, and the last ones so small that threads
/// end at about the same time (guided self-scheduling: Polychronopoulos and Kuck, 1987).
#[repr(align(128))]
pub(super) struct TaskQueue(AtomicU64);

/// Neighbouring tasks that a thread has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Number of the thread.
    pub(crate) thread: usize,
    pub(crate) tasks: Range<usize>,
    /// Up to here, the tasks that follow are the thread's own as well: it will most likely go on with
    /// them.
    pub(crate) end: usize,
}

impl TaskQueue {
    pub(super) fn none() -> TaskQueue {
        TaskQueue(AtomicU64::new(0))
    }

    /// Divides `tasks` among so many threads. Nobody may take any meanwhile.
    ///
    /// # Panics
    /// When there are 2³² or more.
    pub(super) fn divide(all: &[TaskQueue], tasks: usize) {
        assert!(u32::try_from(tasks).is_ok(), "{tasks} tasks");
        let edge = |thread: usize| TaskQueue::edge(tasks, all.len(), thread);
        for (thread, claims) in all.iter().enumerate() {
            claims.0.store(word(edge(thread)..edge(thread + 1)), Ordering::Relaxed);
        }
    }

    /// First task of a thread's run, of so many tasks and threads.
    pub(super) fn edge(tasks: usize, threads: usize, thread: usize) -> usize {
        (tasks * thread).checked_div(threads).unwrap_or(0)
    }

    /// Leaves out all that are not begun.
    pub(super) fn clear(all: &[TaskQueue]) {
        all.iter().for_each(|claims| claims.0.store(0, Ordering::Relaxed));
    }

    /// At most so many tasks for a thread: the next of its own, or if there are none, the last of
    /// another's.
    pub(super) fn next(all: &[TaskQueue], thread: usize, most: usize) -> Option<Claim> {
        let count = |left: &Range<usize>| (left.len() * 3).div_ceil(4).min(most);
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

    /// Takes what `some` takes of the tasks, and leaves what it leaves.
    fn take(&self, some: impl Fn(&Range<usize>) -> (Claim, Range<usize>)) -> Option<Claim> {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let tasks = (now >> 32) as usize..(now & u64::from(u32::MAX)) as usize;
            if tasks.is_empty() {
                return None;
            }
            let (taken, left) = some(&tasks);
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
