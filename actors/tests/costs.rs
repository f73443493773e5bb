//! Short forms of the benches of hops and waits: wide bounds on ratios of times measured in turn.
//!
//! Other programs make a measurement worse, never better, so each claim has several attempts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lapwing_actors::drive::mailbox::{Inbox, Mailbox};
use lapwing_actors::drive::wait::{Cores, WaitKey, Waiter};
use lapwing_traces::event::WaitMode;
use lapwing_traces::{Clock, Nanos, OsClock};

#[path = "../benches/support/decode_step.rs"]
mod decode_step;
#[path = "../benches/support/engine.rs"]
#[expect(dead_code, reason = "shared with the benches")]
mod engine;
#[path = "../benches/support/thread_time.rs"]
#[expect(dead_code, reason = "shared with the benches")]
mod thread_time;

use thread_time::thread_cpu_ns;

/// Attempts to meet a bound; on an idle machine the first one does.
const ATTEMPTS: usize = 40;
/// Sent instead of a time to stop a thread.
const STOP: u64 = u64::MAX;

/// Tests that measure time run one after another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether two threads can run at the same time; where they cannot, nothing ever polls.
fn has_two_cores() -> bool {
    thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

/// Value below which a tenth of them lie.
fn fastest_tenth(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 10]
}

/// Whether a bound is met within some attempts; the measurements otherwise.
fn within_attempts(mut attempt: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut missed = Vec::new();
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(found) => missed.push(found),
        }
    }
    Err(missed.join("\n"))
}

#[test]
fn the_bookkeeping_of_a_decode_step_takes_less_than_a_tenth_of_it() {
    let _alone = alone();
    let attempt = || match decode_step::share(0.0).expect("whole streams") {
        share if share <= 0.1 => Ok(()),
        share => Err(format!("{:.1} %", share * 100.0)),
    };
    // Each attempt takes seconds.
    let missed = (0..3).map(|_| attempt()).find(Result::is_ok);
    assert!(missed.is_some(), "{:?}", attempt());
}

/// Sends messages that are the time, `gap` ns apart, to a thread that calls `arrived` for each; the
/// fastest tenth of the times from one to the other.
fn hop(probe: &Probe, (gap, messages): (u64, usize), mut send: impl FnMut(u64)) -> u64 {
    let hops = (0..messages).map(|_| {
        let until = probe.now() + gap;
        while probe.now() < until {
            std::hint::spin_loop();
        }
        probe.hop.store(0, Ordering::Relaxed);
        send(probe.now());
        loop {
            match probe.hop.load(Ordering::Acquire) {
                0 => std::hint::spin_loop(),
                hop => break hop - 1,
            }
        }
    });
    fastest_tenth(hops.collect())
}

/// Where a receiver says when a message arrived.
struct Probe {
    clock: OsClock,
    /// Nanoseconds of the latest hop, plus one; 0 until it has arrived.
    hop: AtomicU64,
}

impl Probe {
    fn new() -> Probe {
        Probe { clock: OsClock::start(), hop: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        self.clock.now().0
    }

    fn arrived(&self, sent: u64) {
        self.hop.store(self.now().saturating_sub(sent) + 1, Ordering::Release);
    }
}

/// Hop through a mailbox to a thread that waits in this mode, in ns.
fn mailbox_hop(mode: WaitMode, block: (u64, usize)) -> u64 {
    let probe = Probe::new();
    let (mailbox, inbox) = Mailbox::new("receiver", 8);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut waiter = Waiter::new(mode, Arc::new(OsClock::start()), Cores::new(2));
            while let Ok((sent, _)) = inbox.recv(&mut waiter, WaitKey::default()) {
                probe.arrived(sent);
            }
        });
        let mailbox = mailbox;
        hop(&probe, block, |now| mailbox.send(now).expect("a receiver"))
    })
}

/// Hop to a parked thread through nothing but a word, in ns: the operating system's part.
fn bare_hop(block: (u64, usize)) -> u64 {
    let (probe, word) = (Probe::new(), AtomicU64::new(0));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            loop {
                match word.swap(0, Ordering::Acquire) {
                    0 => thread::park(),
                    STOP => return,
                    sent => probe.arrived(sent),
                }
            }
        });
        let send = |now| {
            word.store(now, Ordering::Release);
            receiver.thread().unpark();
        };
        let hop = hop(&probe, block, send);
        send(STOP);
        hop
    })
}

/// Idle ns before a message, and messages.
const BLOCK: (u64, usize) = (200_000, 100);

#[test]
fn a_message_wakes_a_parked_thread_as_fast_as_a_bare_unpark_and_a_polling_one_faster() {
    let _alone = alone();
    if !has_two_cores() {
        return;
    }
    within_attempts(|| {
        let (parked, bare) = (mailbox_hop(WaitMode::Callback, BLOCK), bare_hop(BLOCK));
        let polled = mailbox_hop(WaitMode::Spin, BLOCK);
        match parked <= 2 * bare && polled <= bare / 2 {
            true => Ok(()),
            false => Err(format!("parked {parked} ns, bare {bare} ns, polled {polled} ns")),
        }
    })
    .expect("parked <= 2 bare, polled <= bare / 2");
}

/// A thread that sends a message at a time that it is told.
struct Signaller<'a> {
    clock: &'a Arc<dyn Clock>,
    orders: Mailbox<Nanos>,
    inbox: Inbox<Nanos>,
}

/// Waits for one signal after a time.
struct Signal {
    /// From the signal to the wake, in ns.
    late: u64,
    /// CPU time of the waiting thread, in ns.
    cpu: u64,
}

impl Signaller<'_> {
    fn wait(&self, waiter: &mut Waiter, length: Duration) -> Signal {
        self.orders.send(self.clock.now() + length).expect("a signaller");
        let before = thread_cpu_ns();
        let (sent, _) = self.inbox.recv(waiter, WaitKey::default()).expect("a signal");
        let woken = self.clock.now();
        let cpu = thread_cpu_ns().saturating_sub(before);
        Signal { late: woken.0.saturating_sub(sent.0), cpu }
    }
}

const LENGTH: Duration = Duration::from_millis(1);
/// A signaller is off the cores until this long before its time, as a driver's thread is.
const EARLY: Duration = Duration::from_micros(200);

/// Fastest tenth of the lateness and of the CPU time of waits in each mode, in turn.
fn waits(modes: [WaitMode; 3]) -> [(u64, u64); 3] {
    let clock: Arc<dyn Clock> = Arc::new(OsClock::start());
    let (orders, todo) = Mailbox::<Nanos>::new("signaller", 1);
    let (mailbox, inbox) = Mailbox::new("receiver", 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            let cores = Cores::new(usize::MAX);
            let mut waiter = Waiter::new(WaitMode::Callback, Arc::clone(&clock), cores);
            while let Ok((at, _)) = todo.recv(&mut waiter, WaitKey::default()) {
                let now = clock.now();
                let left = Duration::from_nanos(at.0.saturating_sub(now.0));
                thread::park_timeout(left.saturating_sub(EARLY));
                while clock.now() < at {
                    std::hint::spin_loop();
                }
                if mailbox.send(clock.now()).is_err() {
                    return;
                }
            }
        });
        let signaller = Signaller { clock: &clock, orders, inbox };
        let mut waiters = modes.map(|mode| Waiter::new(mode, Arc::clone(&clock), Cores::new(2)));
        let mut signals = modes.map(|_| Vec::new());
        for block in 0..4 {
            for (waiter, signals) in waiters.iter_mut().zip(&mut signals) {
                let found = (0..10).map(|_| signaller.wait(waiter, LENGTH));
                // The first block is for learning.
                signals.extend(found.filter(|_| block > 0));
            }
        }
        signals.map(|signals| {
            let of = |value: fn(&Signal) -> u64| fastest_tenth(signals.iter().map(value).collect());
            (of(|signal| signal.late), of(|signal| signal.cpu))
        })
    })
}

#[test]
fn a_predicted_wait_is_no_later_than_a_parked_one_and_takes_half_the_cpu_time_of_polling() {
    let _alone = alone();
    if !has_two_cores() || thread_cpu_ns() == 0 {
        return;
    }
    within_attempts(|| {
        let [parked, predicted, polled] =
            waits([WaitMode::Callback, WaitMode::SleepThenSpin, WaitMode::Spin]);
        // On a busy machine a predicted wait parks, and is as late as a parked one.
        let in_time = 4 * predicted.0 <= 5 * parked.0 && polled.0 <= parked.0;
        match in_time && 2 * predicted.1 <= polled.1 {
            true => Ok(()),
            false => Err(format!(
                "(late, CPU time) in ns: parked {parked:?}, predicted {predicted:?}, polled {polled:?}"
            )),
        }
    })
    .expect("at most 1.25 times as late as parked, half the CPU time of polled");
}
