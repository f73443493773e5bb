//! Who needs a core: nobody polls when all of them have work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;

/// Waits without polling after the first preempted poll; doubled by each further one.
const PAUSE_FIRST: u32 = 16;
/// Most waits without polling in a row.
const PAUSE_MAX: u32 = 1024;

/// Count of this engine's threads that want to run, against the cores there are; shared by all
/// its waiters. Threads of others are not counted, but felt: a poll that was preempted keeps
/// everyone from polling for a number of waits that doubles each time.
#[derive(Clone, Debug)]
pub struct Cores {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    total: usize,
    busy: AtomicUsize,
    /// Waits that still go without polling.
    paused: AtomicU32,
    /// Length of the next such pause.
    pause_next: AtomicU32,
}

impl Cores {
    /// A machine with that many cores.
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

    /// The cores that this process may use.
    pub fn of_machine() -> Cores {
        Cores::new(thread::available_parallelism().map_or(1, |cores| cores.get()))
    }

    /// Cores there are.
    pub fn total(&self) -> usize {
        self.shared.total
    }

    /// Threads that want to run, pollers included.
    pub fn runnable(&self) -> usize {
        self.shared.busy.load(Ordering::Relaxed)
    }

    /// Counts `threads` threads as wanting to run, until the guard is dropped.
    pub fn busy(&self, threads: usize) -> Busy<'_> {
        self.shared.busy.fetch_add(threads, Ordering::Relaxed);
        Busy { cores: self, threads }
    }

    /// Lets the calling thread poll if a core is left for it: then it counts as busy until the
    /// guard is dropped. None while the threads that want to run are as many as the cores.
    pub fn try_poll(&self) -> Option<Busy<'_>> {
        let left = self.shared.paused.load(Ordering::Relaxed);
        if left > 0 {
            // Two waiters may count one wait; the pause is then one shorter.
            self.shared.paused.store(left - 1, Ordering::Relaxed);
            return None;
        }
        let busy = self.busy(1);
        self.may_go_on().then_some(busy)
    }

    /// Whether who polls, and is counted, still has a core of its own.
    pub fn may_go_on(&self) -> bool {
        self.runnable() <= self.shared.total
    }

    /// A poll was preempted: somebody else needs the core.
    pub fn preempted(&self) {
        let pause = self.shared.pause_next.load(Ordering::Relaxed);
        self.shared.paused.store(pause, Ordering::Relaxed);
        self.shared.pause_next.store((pause * 2).min(PAUSE_MAX), Ordering::Relaxed);
    }

    /// A poll ended with its message, undisturbed.
    pub fn undisturbed(&self) {
        let pause = self.shared.pause_next.load(Ordering::Relaxed);
        if pause > PAUSE_FIRST {
            self.shared.pause_next.store(pause / 2, Ordering::Relaxed);
        }
    }
}

/// Threads counted as wanting to run.
#[derive(Debug)]
pub struct Busy<'a> {
    cores: &'a Cores,
    threads: usize,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.cores.shared.busy.fetch_sub(self.threads, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_polls_when_all_cores_have_work() {
        let cores = Cores::new(2);
        let pool = cores.busy(2);
        assert!(cores.try_poll().is_none());
        assert_eq!(cores.runnable(), 2, "a refused poller is not counted");
        drop(pool);
        let one = cores.busy(1);
        let poll = cores.try_poll();
        assert!(poll.is_some() && cores.may_go_on());
        let other = cores.busy(1);
        assert!(!cores.may_go_on(), "a poller must give way to work that begins later");
        drop((one, poll, other));
        assert_eq!(cores.runnable(), 0);
    }

    #[test]
    fn a_preempted_poll_pauses_polling_ever_longer_but_not_for_good() {
        let cores = Cores::new(8);
        let pause = |cores: &Cores| {
            cores.preempted();
            (0..).take_while(|_| cores.try_poll().is_none()).count() as u32
        };
        assert_eq!(pause(&cores), PAUSE_FIRST);
        assert_eq!(pause(&cores), 2 * PAUSE_FIRST);
        let longest = (0..20).map(|_| pause(&cores)).max();
        assert_eq!(longest, Some(PAUSE_MAX));
        (0..20).for_each(|_| cores.undisturbed());
        assert_eq!(pause(&cores), PAUSE_FIRST);
    }
}
