//! Cost of a message (send → the other thread's handler starts), beside other actor libraries
//! and channels, and what a decode step's bookkeeping costs.
//!
//! The sender is a thread that never sleeps, kept on one core; receivers run on another. It sends
//! 2 µs after the last message was handled, when a receiver that polls for a while is still awake,
//! and 200 µs after it, when all that ever park have parked. How fast a parked thread comes back is
//! the operating system's affair: the bare park and unpark beside it show its floor. Medians only,
//! the best of several blocks.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use lapwing_actors::drive::mailbox::Mailbox;
use lapwing_actors::drive::wait::{Cores, WaitKey, Waiter};
use lapwing_traces::event::WaitMode;
use lapwing_traces::{Clock, OsClock};

#[path = "support/decode_step.rs"]
mod decode_step;
#[path = "support/engine.rs"]
#[expect(dead_code, reason = "shared with the bench of decisions")]
mod engine;
#[path = "support/others.rs"]
mod others;
#[path = "support/thread_time.rs"]
#[expect(dead_code, reason = "shared with the bench of waits")]
mod thread_time;

use thread_time::stay_on_core;

/// Blocks of each kind of receiver.
const BLOCKS: usize = 5;
/// Idle time before a message in ns, and messages.
const GAPS: [(u64, usize); 2] = [(2_000, 1000), (200_000, 150)];
/// Promised for a receiver that is awake, and for one that is parked, in µs.
const AWAKE_US: f64 = 1.0;
const PARKED_US: f64 = 10.0;
/// Where the operating system itself takes longer to wake a thread: at most this much more.
const ABOVE_FLOOR: f64 = 1.25;

/// Where handlers say when they began.
pub(crate) struct Probe {
    clock: OsClock,
    /// Nanoseconds of the latest hop, plus one; 0 until it has arrived.
    hop: AtomicU64,
}

impl Probe {
    fn now(&self) -> u64 {
        self.clock.now().0
    }

    /// A handler begins with a message that was sent then.
    fn arrived(&self, sent: u64) {
        let hop = self.now().saturating_sub(sent) + 1;
        self.hop.store(hop, Ordering::Release);
    }
}

/// A receiver that runs: sends it a message, which is the time.
pub(crate) struct Running {
    send: Box<dyn FnMut(u64)>,
    /// Ends after `send` is dropped.
    thread: Option<JoinHandle<()>>,
}

/// Starts a thread that receives.
#[expect(clippy::disallowed_methods, reason = "a bench of threads makes threads")]
pub(crate) fn receiver(run: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    Some(thread::spawn(run))
}

fn ours(mode: WaitMode, probe: &Arc<Probe>) -> Running {
    let (mailbox, inbox) = Mailbox::new("receiver", 8);
    let probe = Arc::clone(probe);
    let thread = receiver(move || {
        let clock = Arc::new(OsClock::start());
        // One for the sender, one for this.
        let mut waiter = Waiter::new(mode, clock, Cores::new(2));
        while let Ok((sent, _)) = inbox.recv(&mut waiter, WaitKey::default()) {
            probe.arrived(sent);
        }
    });
    let send = Box::new(move |now| mailbox.send(now).unwrap_or_else(|error| panic!("{error}")));
    Running { send, thread }
}

/// One line of the table.
struct Line {
    name: &'static str,
    start: fn(&Arc<Probe>) -> Running,
    /// Median hop in ns after each gap.
    hops: [f64; 2],
}

fn lines() -> Vec<Line> {
    let line = |name, start| Line { name, start, hops: [f64::INFINITY; 2] };
    vec![
        line("Lapwing, spin", |probe| ours(WaitMode::Spin, probe)),
        line("Lapwing, callback (park)", |probe| ours(WaitMode::Callback, probe)),
        line("Lapwing, sleep-then-spin", |probe| ours(WaitMode::SleepThenSpin, probe)),
        line("bare word, polled", others::word),
        line("bare park and unpark", others::park),
        line("flume, polled", others::flume_polled),
        line("flume, recv", others::flume_blocking),
        line("tokio mpsc, blocking_recv", others::tokio_blocking),
        line("tokio mpsc, task", others::tokio_task),
        line("kameo", others::kameo_actor),
        line("ractor", others::ractor_actor),
    ]
}

/// Median hop in ns.
fn hops(running: &mut Running, probe: &Probe, gap: u64, messages: usize) -> f64 {
    let mut hops: Vec<u64> = (0..messages)
        .map(|_| {
            let until = probe.now() + gap;
            while probe.now() < until {
                std::hint::spin_loop();
            }
            probe.hop.store(0, Ordering::Relaxed);
            (running.send)(probe.now());
            loop {
                match probe.hop.load(Ordering::Acquire) {
                    0 => std::hint::spin_loop(),
                    hop => break hop - 1,
                }
            }
        })
        .collect();
    hops.sort_unstable();
    hops[hops.len() / 2] as f64
}

fn measure(lines: &mut [Line]) {
    let probe = Arc::new(Probe { clock: OsClock::start(), hop: AtomicU64::new(0) });
    for _ in 0..BLOCKS {
        for line in &mut *lines {
            // Threads start on the core of who starts them.
            stay_on_core(1);
            let mut running = (line.start)(&probe);
            stay_on_core(0);
            // It starts, and learns how long it waits.
            hops(&mut running, &probe, 200_000, 30);
            for (best, (gap, messages)) in line.hops.iter_mut().zip(GAPS) {
                *best = best.min(hops(&mut running, &probe, gap, messages));
            }
            let Running { send, thread } = running;
            drop(send);
            if let Some(thread) = thread {
                let _ = thread.join();
            }
        }
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut lines = lines();
    measure(&mut lines);
    println!("receiver                      after 2 µs   after 200 µs");
    for line in &lines {
        let [soon, late] = line.hops.map(|ns| ns / 1e3);
        println!("{:<28} {soon:>8.2} µs {late:>11.2} µs", line.name);
    }
    let (awake, parked, floor) = (lines[0].hops[0], lines[1].hops[1], lines[4].hops[1]);
    let allowed = PARKED_US.max(floor / 1e3 * ABOVE_FLOOR);
    let awake_kept = awake / 1e3 <= AWAKE_US;
    let parked_kept = parked / 1e3 <= allowed;
    let word = |kept| if kept { "kept" } else { "NOT KEPT" };
    println!("a hop to a receiver that is awake takes at most {AWAKE_US} µs: {}", word(awake_kept));
    print!("a hop to a parked receiver takes at most {allowed:.1} µs: {}", word(parked_kept));
    if floor / 1e3 * ABOVE_FLOOR > PARKED_US {
        print!(" ({PARKED_US} µs is less than this system allows: see its bare park and unpark)");
    }
    println!();
    let step_kept = decode_step::share(awake)? <= 0.01;
    println!("a decode step's bookkeeping is at most 1 % of it: {}", word(step_kept));
    let kept = awake_kept && parked_kept && step_kept;
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
