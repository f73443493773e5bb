//! A completion flag: one word beside an output buffer or a mailbox that says "there is
//! something", for one receiver that may look at it, spin on it, or sleep until it is set (S2-35).

use std::time::Duration;

use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

const EMPTY: usize = 0;
const SET: usize = 1;
const PARKED: usize = 2;

/// A flag that any thread sets and one thread at a time waits for.
///
/// Protocol: the sender publishes (writes the output, fills the queue), then calls [`Flag::set`].
/// The receiver calls [`Flag::take`], *then* looks at what was published, and waits for the flag
/// only if it found nothing: a flag set after `take` ends that wait at once, so that no interleaving
/// loses a message. Setting costs a system call only when the receiver is parked.
///
/// The flag has cache lines of its own: who polls it does not slow down the writer of its neighbour.
#[repr(align(128))]
#[derive(Debug)]
pub struct Flag {
    word: AtomicUsize,
    /// Who parks; read by a sender only after it has seen `PARKED`.
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

    /// Sets the flag, and wakes the receiver if it is parked; tells whether it was. What the
    /// calling thread wrote before is visible to a receiver that has seen the flag.
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

    /// Clears the flag, and tells whether it was set. For the receiver only.
    pub fn take(&self) -> bool {
        self.word.swap(EMPTY, Ordering::AcqRel) == SET
    }

    /// Sleeps until the flag is set; leaves it set. For the receiver only.
    pub fn park(&self) {
        if self.announce() {
            while !self.is_set() {
                thread::park();
            }
        }
    }

    /// Sleeps until the flag is set or `timeout` is over, or shorter; tells whether the flag is
    /// set, and leaves it so. For the receiver only, which looks at its clock to see how long it
    /// has slept.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        if !self.announce() {
            return true;
        }
        thread::park_timeout(timeout);
        let awake = self.word.compare_exchange(PARKED, EMPTY, Ordering::AcqRel, Ordering::Acquire);
        awake == Err(SET)
    }

    /// Says that the calling thread is about to sleep, unless the flag is set.
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
    fn a_flag_set_before_the_wait_ends_it_at_once() {
        let flag = Flag::new();
        assert!(!flag.set(), "nobody was parked");
        flag.park();
        assert!(flag.park_timeout(Duration::from_secs(3600)));
        assert!(flag.take() && !flag.take());
    }

    #[test]
    fn a_timeout_leaves_nobody_parked() {
        let flag = Flag::new();
        assert!(!flag.park_timeout(Duration::from_micros(1)));
        assert!(!flag.set(), "the receiver no longer sleeps, so that waking it is wasted");
        assert!(flag.take());
    }

    #[test]
    fn a_flag_is_used_ten_thousand_times_without_a_miss() {
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

    /// Loom takes the wake of a thread that is being joined for the end of the joined one; so the
    /// model's first thread only joins, and is never woken.
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
