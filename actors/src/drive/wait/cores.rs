//! Counts runnable threads, so that no thread polls while all cores have work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;

/// Waits without polling after the first preempted poll. Each further preemption doubles them.
const PAUSE_FIRST: u32 = 16;
/// Maximum consecutive waits without polling.
const PAUSE_MAX: u32 = 1024;

/// Runnable threads of this engine and number of cores, shared by all its waiters. Threads of other
/// programs are not counted, but a preempted poll reveals them: it pauses polling of all waiters for a
/// number of waits that doubles each time.
#[derive(Clone, Debug)]
pub struct Cores {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    total: usize,
    busy: AtomicUsize,
    /// Remaining waits of the pause.
    paused: AtomicU32,
    /// Length of the next pause, in waits.
    pause_next: AtomicU32,
}

impl Cores {
    /// A machine with `total` cores.
    pub fn new(total: usize) -> Cores {
        Cores {
            shared: Arc::new(Shared {
                total,
                busy: AtomicUsize::new(0),
                paused: AtomicU32::new(0),
                pause_next: AtomicU32::new(PAUSE_FIRST),
            }),
        }
    }

    /// The cores that the process may use.
    pub fn of_machine() -> Cores {
        Cores::new(thread::available_parallelism().map_or(1, |cores| cores.get()))
    }

    /// Number of cores.
    pub fn total(&self) -> usize {
        self.shared.total
    }

    /// Runnable threads, polling threads included.
    pub fn runnable(&self) -> usize {
        self.shared.busy.load(Ordering::Relaxed)
    }

    /// Counts `threads` threads as runnable until the guard is dropped.
    pub fn busy(&self, threads: usize) -> Busy {
        self.shared.busy.fetch_add(threads, Ordering::Relaxed);
        Busy { shared: Arc::clone(&self.shared), threads }
    }

    /// Allows the calling thread to poll if a core is free, and `spare` more beside it. The thread counts
    /// as runnable until the guard is dropped. `None` if too few cores are free, or during a pause.
    pub fn try_poll(&self, spare: usize) -> Option<Busy> {
        let left = self.shared.paused.load(Ordering::Relaxed);
        if left > 0 {
            // A race between two waiters may shorten the pause by one wait, which is harmless.
            self.shared.paused.store(left - 1, Ordering::Relaxed);
            return None;
        }
        let busy = self.busy(1);
        self.may_go_on(spare).then_some(busy)
    }

    /// Whether a polling thread, which is counted itself, still has a core of its own, with `spare`
    /// others free.
    pub fn may_go_on(&self, spare: usize) -> bool {
        self.runnable().saturating_add(spare) <= self.shared.total
    }

    /// Whether a thread that is not counted could poll with `spare` other cores free.
    pub fn has_free(&self, spare: usize) -> bool {
        self.runnable().saturating_add(1 + spare) <= self.shared.total
    }

    /// Records a preempted poll: another thread needs the core.
    pub fn preempted(&self) {
        let pause = self.shared.pause_next.load(Ordering::Relaxed);
        self.shared.paused.store(pause, Ordering::Relaxed);
        self.shared.pause_next.store((pause * 2).min(PAUSE_MAX), Ordering::Relaxed);
    }

    /// Records a poll that ended with its message, without preemption.
    pub fn undisturbed(&self) {
        let pause = self.shared.pause_next.load(Ordering::Relaxed);
        if pause > PAUSE_FIRST {
            self.shared.pause_next.store(pause / 2, Ordering::Relaxed);
        }
    }
}

/// Guard of threads that are counted as runnable.
#[derive(Debug)]
pub struct Busy {
    shared: Arc<Shared>,
    threads: usize,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.shared.busy.fetch_sub(self.threads, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_polls_while_all_cores_have_work() {
        let cores = Cores::new(2);
        let pool = cores.busy(2);
        assert!(cores.try_poll(0).is_none());
        assert_eq!(cores.runnable(), 2, "a refused poller is not counted");
        drop(pool);
        let one = cores.busy(1);
        assert!(cores.try_poll(1).is_none() && !cores.has_free(1), "no core would stay free");
        let poll = cores.try_poll(0);
        assert!(poll.is_some() && cores.may_go_on(0));
        let other = cores.busy(1);
        assert!(!cores.may_go_on(0), "a poller must give way to work that begins later");
        drop((one, poll, other));
        assert_eq!(cores.runnable(), 0);
    }

    #[test]
    fn each_preempted_poll_doubles_the_pause_up_to_a_limit() {
        let cores = Cores::new(8);
        let pause = |cores: &Cores| {
            cores.preempted();
            (0..).take_while(|_| cores.try_poll(0).is_none()).count() as u32
        };
        assert_eq!(pause(&cores), PAUSE_FIRST);
        assert_eq!(pause(&cores), 2 * PAUSE_FIRST);
        let longest = (0..20).map(|_| pause(&cores)).max();
        assert_eq!(longest, Some(PAUSE_MAX));
        (0..20).for_each(|_| cores.undisturbed());
        assert_eq!(pause(&cores), PAUSE_FIRST);
    }
}
