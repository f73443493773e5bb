use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use lapwing_traces::OsClock;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::*;
use crate::drive::mailbox::{Closed, Inbox, Mailbox};
use crate::drive::wait::Waits;

mod choice;

const MODES: [WaitMode; 4] =
    [WaitMode::Callback, WaitMode::Blocking, WaitMode::Spin, WaitMode::SleepThenSpin];

fn waiter(mode: WaitMode) -> Waiter {
    Waiter::new(mode, Arc::new(OsClock::start()), Cores::new(64))
}

/// A waiter that predicts waits of `ns`.
fn taught(mode: WaitMode, ns: u64) -> Waiter {
    let mut waiter = waiter(mode);
    (0..8).for_each(|_| waiter.predictor.learn(WaitKey::default(), ns));
    waiter
}

fn pause(us: u64) {
    thread::park_timeout(Duration::from_micros(us));
}

/// Waits once for a message that is sent after `us`. If the message arrives before the thread runs,
/// the thread has not waited and tries again.
fn wait_once(waiter: &mut Waiter, us: u64) -> WaitRecord {
    let attempt = || {
        let (mailbox, inbox) = Mailbox::new("test", 1);
        thread::scope(|scope| {
            scope.spawn(move || {
                pause(us);
                mailbox.send(7).unwrap();
            });
            let (message, record) = inbox.recv(waiter, WaitKey::default()).unwrap();
            assert_eq!(message, 7);
            record
        })
    };
    std::iter::repeat_with(attempt).take(100).flatten().next().expect("one wait in 100 tries")
}

/// Sends the numbers below ten thousand with random pauses and at most 64 messages in flight.
fn send_at_random(mailbox: &Mailbox<u32>, room: &Inbox<()>, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut waiter = waiter(WaitMode::Callback);
    for number in 0..10_000 {
        room.recv(&mut waiter, WaitKey::default()).unwrap();
        match random.next_u32() % 64 {
            0..8 => (0..random.next_u32() % 4000).for_each(|_| spin_loop()),
            8 => pause(u64::from(random.next_u32() % 200)),
            _ => {}
        }
        mailbox.send(number).unwrap();
    }
}

#[test]
fn no_mode_loses_one_of_ten_thousand_random_messages() {
    for mode in MODES {
        let (mailbox, inbox) = Mailbox::new("test", 64);
        let (back, room) = Mailbox::new("room", 64);
        (0..64).for_each(|_| back.send(()).unwrap());
        thread::scope(|scope| {
            scope.spawn(move || send_at_random(&mailbox, &room, mode as u64));
            let mut waiter = waiter(mode);
            for number in 0..10_000 {
                let (message, record) = inbox.recv(&mut waiter, WaitKey::default()).unwrap();
                assert_eq!(message, number, "{mode:?}");
                if let Some(record) = record {
                    let known = record.slept + record.spun + record.parked;
                    assert!(known <= record.actual(), "{record:?}");
                }
                let _ = back.send(());
            }
            let end = inbox.recv(&mut waiter, WaitKey::default());
            assert_eq!(end, Err(Closed), "{mode:?}: the sender is gone");
        });
    }
}

#[test]
fn an_early_message_ends_the_sleep() {
    let mut waiter = taught(WaitMode::SleepThenSpin, 60_000_000_000);
    let record = wait_once(&mut waiter, 500);
    assert_eq!(record.predicted, Some(60_000_000_000));
    assert!(record.actual() < 10_000_000_000, "slept on for the predicted minute");
    assert!(record.slept > 0 && record.spun == 0);
    assert!(record.error().unwrap() < -50_000_000_000);
}

/// A waiter that predicts waits of `ns`, by a clock that each reading advances by a microsecond: whatever else
/// runs on the machine, the thread's own steps take the same time.
fn counted(mode: WaitMode, ns: u64) -> Waiter {
    let clock = Arc::new(Steps { readings: AtomicU64::new(0), each: READING, step: 0 });
    let mut waiter = Waiter::new(mode, clock, Cores::new(64));
    (0..8).for_each(|_| waiter.predictor.learn(WaitKey::default(), ns));
    waiter
}

/// Nanoseconds by which a reading advances the clock of [`counted`].
const READING: u64 = 1_000;

#[test]
fn a_prediction_far_too_short_ends_in_a_park() {
    let attempt = |_| {
        let record = wait_once(&mut counted(WaitMode::SleepThenSpin, 50_000), 20_000);
        assert!(record.spun <= 10 * READING, "{record:?}");
        record.parked > 0
    };
    // A message that finds the thread still asleep on a busy machine ends the wait before.
    assert!((0..100).any(attempt), "no wait of 100 ended in a park");
}

#[test]
fn the_first_waits_of_a_kind_park_and_predict_nothing() {
    let mut waiter = waiter(WaitMode::SleepThenSpin);
    let record = wait_once(&mut waiter, 200);
    assert_eq!((record.predicted, record.mode, record.spun), (None, WaitMode::Callback, 0));
    assert!(record.slept > 0);
}

#[test]
fn with_all_cores_busy_every_mode_parks() {
    for mode in [WaitMode::Spin, WaitMode::SleepThenSpin] {
        let mut waiter = counted(mode, 100_000);
        let cores = Cores::new(2);
        waiter.cores = cores.clone();
        let pool = cores.busy(2);
        let record = wait_once(&mut waiter, 300);
        // It may also have slept until the message arrived, without polling.
        assert!(record.mode == WaitMode::Callback || record.spun == 0, "{record:?}");
        assert!(record.spun <= 3 * READING, "{record:?}");
        drop(pool);
    }
}

#[test]
fn a_polling_thread_yields_the_last_core() {
    let cores = Cores::new(2);
    // By this clock the thread is never preempted, which would end its polling for another reason.
    let clock = Arc::new(Steps { readings: AtomicU64::new(0), each: 1, step: 0 });
    let mut waiter = Waiter::new(WaitMode::Spin, clock, cores.clone());
    let (mailbox, inbox) = Mailbox::new("test", 1);
    thread::scope(|scope| {
        scope.spawn(move || {
            while cores.runnable() == 0 {
                pause(50);
            }
            let pool = cores.busy(2);
            while cores.runnable() > 2 {
                pause(50);
            }
            mailbox.send(()).unwrap();
            drop(pool);
        });
        let ((), record) = inbox.recv(&mut waiter, WaitKey::default()).unwrap();
        assert_eq!(record.unwrap().mode, WaitMode::Callback);
    });
}

/// A clock that advances by `each` ns per reading, and once by `step` ns more.
struct Steps {
    readings: AtomicU64,
    each: u64,
    step: u64,
}

impl Clock for Steps {
    fn now(&self) -> Nanos {
        let readings = self.readings.fetch_add(1, Ordering::Relaxed);
        Nanos(readings * self.each + if readings > 40 { self.step } else { 0 })
    }
}

#[test]
fn a_clock_that_jumps_or_stands_still_delays_no_message() {
    for (each, step) in [(0, 0), (1, 0), (1000, 0), (1000, 3_600_000_000_000), (0, 1_000_000)] {
        for mode in MODES {
            let clock = Arc::new(Steps { readings: AtomicU64::new(0), each, step });
            let mut waiter = Waiter::new(mode, clock, Cores::new(64));
            for _ in 0..5 {
                wait_once(&mut waiter, 100);
            }
        }
    }
}

#[test]
fn a_dropped_sender_ends_the_wait() {
    for mode in MODES {
        let (mailbox, inbox) = Mailbox::<()>::new("test", 1);
        let other = mailbox.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                drop(other);
                pause(300);
                drop(mailbox);
            });
            let end = inbox.recv(&mut taught(mode, 1_000_000), WaitKey::default());
            assert_eq!(end, Err(Closed), "{mode:?}");
        });
    }
}

#[test]
fn a_wait_until_a_time_never_ends_early() {
    for mode in MODES {
        let mut waiter = waiter(mode);
        for us in [0, 1, 50, 200, 2000] {
            let at = waiter.now() + Duration::from_micros(us);
            waiter.until(at);
            assert!(waiter.now() >= at);
        }
    }
}

/// A probe that sets the flag at its third call, and the number of its calls.
fn sets_at_third_call(flag: &Arc<Flag>) -> (Notify, Arc<AtomicUsize>) {
    let (asked, flag) = (Arc::new(AtomicUsize::new(0)), Arc::clone(flag));
    let count = Arc::clone(&asked);
    let ask = move || {
        if count.fetch_add(1, Ordering::Relaxed) == 2 {
            flag.set();
        }
    };
    (Arc::new(ask), asked)
}

#[test]
fn a_polling_thread_calls_the_probe() {
    let flag = Arc::new(Flag::new());
    let (ask, asked) = sets_at_third_call(&flag);
    let mut waiter = waiter(WaitMode::Spin).with_probe(Some(ask));
    waiter.cores = Cores::new(64);
    let mut looks = 0;
    let ready = || {
        looks += 1;
        (looks > 1).then_some(())
    };
    let (_, record) = waiter.wait(WaitFor { flag: &flag, key: WaitKey::default() }, ready);
    assert_eq!(record.map(|record| record.mode), Some(WaitMode::Spin));
    assert_eq!((asked.load(Ordering::Relaxed), looks), (3, 2));
}

#[test]
fn a_parked_thread_calls_the_probe_only_while_a_run_is_under_way() {
    let rows = [
        (WaitMode::SleepThenSpin, true, true),
        (WaitMode::SleepThenSpin, false, false),
        (WaitMode::Callback, true, false),
    ];
    for (mode, is_probing, asks) in rows {
        let flag = Arc::new(Flag::new());
        let (ask, asked) = sets_at_third_call(&flag);
        let mut waiter = waiter(mode).with_probe(Some(ask));
        waiter.set_probing(is_probing);
        let mut looks = 0;
        let ready = || {
            looks += 1;
            (looks > 1).then_some(())
        };
        thread::scope(|scope| {
            if !asks {
                let flag = &flag;
                scope.spawn(move || {
                    thread::park_timeout(Duration::from_millis(20));
                    flag.set()
                });
            }
            waiter.wait(WaitFor { flag: &flag, key: WaitKey::default() }, ready);
        });
        let wanted = if asks { 3 } else { 0 };
        assert_eq!(asked.load(Ordering::Relaxed), wanted, "{mode:?}, {is_probing}");
    }
}
