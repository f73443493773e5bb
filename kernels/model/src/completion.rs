//! Completion flag: one word beside an output buffer or a mailbox that signals new data to one
//! receiver, which can poll it, spin on it, or sleep until it is set (the polling flag of
//! HeteroLLM's fast synchronisation).

use std::time::Duration;

use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

const EMPTY: usize = 0;
const SET: usize = 1;
const PARKED: usize = 2;

/// A flag that any thread sets and one thread at a time waits for.
///
/// Protocol: the sender publishes data (writes the output, fills the queue), then calls
/// [`Flag::set`]. The receiver calls [`Flag::take`], *then* reads the data, and waits for the flag
/// only if there was none: a flag set after `take` ends that wait immediately, so no interleaving
/// loses a message. Setting the flag costs a system call only if the receiver is parked.
///
/// The flag has its own cache lines, so that polling it does not slow down writes beside it.
#[repr(align(128))]
#[derive(Debug)]
pub struct Flag {
    word: AtomicUsize,
    /// The parked thread; a sender reads it only after it has seen `PARKED`.
    sleeper: Mutex<Option<Thread>>,
}

impl Default for Flag {
    fn default() -> Flag {
        Flag::new()
    }
}

impl Flag {
    /// A flag that is not set.
    pub fn new() -> Flag {
        Flag { word: AtomicUsize::new(EMPTY), sleeper: Mutex::new(None) }
    }

    /// Sets the flag and wakes the receiver if it is parked; returns whether it was parked. Earlier
    /// writes of the calling thread are visible to a receiver that has seen the flag.
    pub fn set(&self) -> bool {
        if self.word.swap(SET, Ordering::AcqRel) != PARKED {
            return false;
        }
        let sleeper = lock(&self.sleeper).clone();
        if let Some(sleeper) = sleeper {
            sleeper.unpark();
        }
        true
    }

    /// Whether the flag is set; for polling.
    pub fn is_set(&self) -> bool {
        self.word.load(Ordering::Acquire) == SET
    }

    /// Clears the flag and returns whether it was set. For the receiver only.
    pub fn take(&self) -> bool {
        self.word.swap(EMPTY, Ordering::AcqRel) == SET
    }

    /// Sleeps until the flag is set, and leaves it set. For the receiver only.
    pub fn park(&self) {
        if self.announce() {
            while !self.is_set() {
                thread::park();
            }
        }
    }

    /// Sleeps until the flag is set, at most for `timeout`, but possibly shorter (spurious wake-ups);
    /// returns whether the flag is set, and leaves it set. For the receiver only, which measures the
    /// time slept itself.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        if !self.announce() {
            return true;
        }
        thread::park_timeout(timeout);
        let awake = self.word.compare_exchange(PARKED, EMPTY, Ordering::AcqRel, Ordering::Acquire);
        awake == Err(SET)
    }

    /// Marks the calling thread as parked, unless the flag is set; returns whether it did.
    fn announce(&self) -> bool {
        {
            let me = thread::current();
            let mut sleeper = lock(&self.sleeper);
            if sleeper.as_ref().is_none_or(|known| known.id() != me.id()) {
                *sleeper = Some(me);
            }
        }
        let word = self.word.compare_exchange(EMPTY, PARKED, Ordering::AcqRel, Ordering::Acquire);
        word.is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_flag_set_before_the_wait_ends_it_immediately() {
        let flag = Flag::new();
        assert!(!flag.set(), "no thread was parked");
        flag.park();
        assert!(flag.park_timeout(Duration::from_secs(3600)));
        assert!(flag.take() && !flag.take());
    }

    #[test]
    fn after_a_timeout_no_thread_is_parked() {
        let flag = Flag::new();
        assert!(!flag.park_timeout(Duration::from_micros(1)));
        assert!(!flag.set(), "the receiver no longer sleeps, so there is no thread to wake");
        assert!(flag.take());
    }

    #[test]
    fn ten_thousand_uses_miss_no_flag() {
        let (there, back) = (Flag::new(), Flag::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    there.park();
                    assert!(there.take());
                    back.set();
                }
            });
            for _ in 0..10_000 {
                there.set();
                back.park();
                assert!(back.take());
            }
        });
    }
}

#[cfg(all(test, loom))]
mod interleavings {
    use super::*;
    use crate::sync::Arc;
    use loom::thread::spawn;

    /// Messages, here only counted, and the flag beside them.
    type Queue = (AtomicUsize, Flag);

    fn send(queue: &Queue) {
        queue.0.fetch_add(1, Ordering::Relaxed);
        queue.1.set();
    }

    fn receive(queue: &Queue, wanted: usize, sleep: fn(&Flag)) {
        let mut seen = 0;
        while seen < wanted {
            queue.1.take();
            seen += queue.0.swap(0, Ordering::Relaxed);
            if seen < wanted {
                sleep(&queue.1);
            }
        }
        assert_eq!(seen, wanted);
    }

    /// Loom mistakes a wake of a joining thread for the end of the thread it joins, so the first
    /// thread of the model only joins and is never woken.
    fn check(senders: usize, each: usize, sleep: fn(&Flag)) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(4);
        model.check(move || {
            let queue = Arc::new((AtomicUsize::new(0), Flag::new()));
            let mut threads = Vec::new();
            for _ in 0..senders {
                let queue = Arc::clone(&queue);
                threads.push(spawn(move || (0..each).for_each(|_| send(&queue))));
            }
            threads.push(spawn(move || receive(&queue, senders * each, sleep)));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn no_flag_is_missed_whichever_comes_first() {
        check(1, 1, Flag::park);
    }

    #[test]
    fn a_second_message_is_not_lost_in_the_wake_of_the_first() {
        check(1, 2, Flag::park);
    }

    #[test]
    fn two_senders_at_once_lose_nothing() {
        check(2, 1, Flag::park);
    }

    #[test]
    fn a_sleep_that_ends_as_the_flag_is_set_loses_nothing() {
        check(1, 2, |flag| {
            if !flag.park_timeout(Duration::from_micros(1)) {
                flag.park();
            }
        });
    }

    #[test]
    fn a_flag_is_reused_and_a_late_wake_ends_no_later_wait() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(4);
        model.check(|| {
            let flags = Arc::new([Flag::new(), Flag::new()]);
            let threads = [0, 1].map(|me| {
                let flags = Arc::clone(&flags);
                spawn(move || {
                    let (mine, other) = (&flags[me], &flags[1 - me]);
                    for _ in 0..2 {
                        if me == 0 {
                            other.set();
                        }
                        mine.park();
                        assert!(mine.take(), "woken without a flag");
                        if me == 1 {
                            other.set();
                        }
                    }
                })
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
