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
mod tests {
    use super::*;

    fn divided(threads: usize, tasks: usize) -> Vec<TaskQueue> {
        let all: Vec<TaskQueue> = (0..threads).map(|_| TaskQueue::none()).collect();
        TaskQueue::divide(&all, tasks);
        all
    }

    #[test]
    fn a_task_is_taken_twice_or_never() {
        for (threads, tasks) in [(1, 5), (1, 1), (2, 8), (3, 8), (3, 3), (4, 1000)] {
            for (greedy, most) in (0..threads + 1).flat_map(|g| [1, 3, 1000].map(|most| (g, most)))
            {
                let all = divided(threads, tasks);
                let mut taken = vec![0; tasks];
                let others = (0..threads).filter_map(|thread| TaskQueue::next(&all, thread, most));
                others.for_each(|claim| claim.tasks.for_each(|task| taken[task] += 1));
                while let Some(claim) = TaskQueue::next(&all, greedy, most) {
                    assert!((1..=most).contains(&claim.tasks.len()), "{claim:?} of {most}");
                    claim.tasks.for_each(|task| taken[task] += 1);
                }
                assert!(taken.iter().all(|times| *times == 1), "{threads} {tasks}: {taken:?}");
                assert!((0..threads).all(|thread| TaskQueue::next(&all, thread, most).is_none()));
            }
        }
    }

    #[test]
    fn a_thread_jumps_among_its_tasks_or_takes_what_another_reads_next() {
        let all = divided(2, 8);
        let one = |thread| TaskQueue::next(&all, thread, 1).map(|claim| (claim.tasks, claim.end));
        let order: Vec<_> = (0..4).filter_map(|_| one(1)).collect();
        assert_eq!(order, [(4..5, 8), (5..6, 8), (6..7, 8), (7..8, 8)]);
        assert_eq!(one(0), Some((0..1, 4)));
        assert_eq!(one(1), Some((3..4, 4)));
        TaskQueue::clear(&all);
        assert_eq!(one(0), None);
    }

    #[test]
    fn the_last_claim_of_a_thread_is_as_large_as_its_first() {
        let all = divided(2, 48);
        let some = |thread| TaskQueue::next(&all, thread, 100).map(|claim| claim.tasks);
        let own: Vec<_> = (0..3).filter_map(|_| some(0)).collect();
        assert_eq!(own, [0..18, 18..23, 23..24]);
        assert_eq!(some(1), Some(24..42));
        // The other's, from its far end.
        assert_eq!([some(0), some(0), some(0)], [Some(43..48), Some(42..43), None]);
    }
}
