//! Which tasks of a job nobody has begun: a run of neighbours for each thread.

use crate::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// Tasks of one thread that nobody has begun. It takes them from the front, so that what it reads
/// lies side by side and what it has asked for ahead is what it reads next; others take from the
/// back, as far as possible from there. On cache lines of its own, as two of them are fetched
/// together.
#[repr(align(128))]
pub(super) struct Claims(AtomicU64);

impl Claims {
    pub(super) fn none() -> Claims {
        Claims(AtomicU64::new(0))
    }

    /// Divides `tasks` among so many threads. Nobody may take any meanwhile.
    ///
    /// # Panics
    /// When there are 2³² or more.
    pub(super) fn divide(all: &[Claims], tasks: usize) {
        assert!(u32::try_from(tasks).is_ok(), "{tasks} tasks");
        let edge = |thread: usize| Claims::edge(tasks, all.len(), thread);
        for (thread, claims) in all.iter().enumerate() {
            claims.0.store(word(edge(thread)..edge(thread + 1)), Ordering::Relaxed);
        }
    }

    /// First task of a thread's run, of so many tasks and threads.
    pub(super) fn edge(tasks: usize, threads: usize, thread: usize) -> usize {
        (tasks * thread).checked_div(threads).unwrap_or(0)
    }

    /// The thread whose run has a task.
    pub(super) fn thread_of(tasks: usize, threads: usize, task: usize) -> usize {
        ((task + 1) * threads - 1) / tasks
    }

    /// Leaves out all that are not begun.
    pub(super) fn clear(all: &[Claims]) {
        all.iter().for_each(|claims| claims.0.store(0, Ordering::Relaxed));
    }

    /// A task for a thread: the next of its own, or if there are none, the last of another's.
    pub(super) fn next(all: &[Claims], thread: usize) -> Option<usize> {
        // There may be fewer tasks than threads.
        let (before, from) = all.split_at(thread.min(all.len()));
        let own = from.first().and_then(|own| own.take(|tasks| tasks.next()));
        let mut others = from.iter().skip(1).chain(before);
        own.or_else(|| others.find_map(|other| other.take(|tasks| tasks.next_back())))
    }

    fn take(&self, one: impl Fn(&mut Range<usize>) -> Option<usize>) -> Option<usize> {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let mut tasks = (now >> 32) as usize..(now & u64::from(u32::MAX)) as usize;
            let taken = one(&mut tasks)?;
            let left = word(tasks);
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

    #[test]
    fn a_task_is_taken_twice_or_never() {
        for (threads, tasks) in [(1, 5), (1, 1), (2, 8), (3, 8), (3, 3), (4, 1000)] {
            for greedy in 0..threads + 1 {
                let all: Vec<Claims> = (0..threads).map(|_| Claims::none()).collect();
                Claims::divide(&all, tasks);
                let mut taken = vec![0; tasks];
                let others = (0..threads).filter_map(|thread| Claims::next(&all, thread));
                others.for_each(|task| taken[task] += 1);
                while let Some(task) = Claims::next(&all, greedy) {
                    taken[task] += 1;
                }
                assert!(taken.iter().all(|times| *times == 1), "{threads} {tasks}: {taken:?}");
                assert!((0..threads).all(|thread| Claims::next(&all, thread).is_none()));
            }
        }
    }

    #[test]
    fn a_thread_jumps_among_its_tasks_or_takes_what_another_reads_next() {
        let all = [Claims::none(), Claims::none()];
        Claims::divide(&all, 8);
        let order: Vec<usize> = (0..4).filter_map(|_| Claims::next(&all, 1)).collect();
        assert_eq!(order, [4, 5, 6, 7]);
        assert_eq!(Claims::next(&all, 0), Some(0));
        assert_eq!(Claims::next(&all, 1), Some(3));
        Claims::clear(&all);
        assert_eq!(Claims::next(&all, 0), None);
    }
}
