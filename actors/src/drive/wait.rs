//! How an actor waits for its next message (S2-35).
//!
//! The receiving end of a mailbox is a *link*, and each link waits in one of four modes:
//!
//! | mode | what the receiver does | a sender pays |
//! |---|---|---|
//! | `Blocking` | the channel's own blocking receive | what the channel does |
//! | `Callback` | parks at once; the message's completion unparks it | a system call |
//! | `Spin` | polls the flag beside the mailbox until it is set | an atomic swap |
//! | `SleepThenSpin` | sleeps until `predicted − margin`, polls until `predicted + margin`, then parks | a swap; a system call if it comes early or far too late |
//!
//! A sleep is a park with a timeout, so that an early message ends it. The prediction is the median
//! of the latest waits of the same kind ([`Predictor`]), whichever mode they were spent in; the
//! margin is what sleeps overshoot by, as measured at the thread's start and with every sleep since,
//! plus the spread of those waits ([`Overshoot`], [`Plan`]). Nobody polls while the machine's cores
//! are all busy, or where polling has just been preempted: then every mode parks ([`Cores`]).
//!
//! Every wait gives a [`WaitRecord`], which goes onto the timeline with the prediction's error.

use lapwing_traces::Nanos;
use lapwing_traces::event::{NameId, SpanId, WaitInfo, WaitMode};

mod cores;
mod overshoot;
mod plan;
mod predictor;
mod waiter;

pub use cores::{Busy, Cores};
pub use overshoot::Overshoot;
pub use plan::{MARGIN_MAX_NS, MARGIN_MIN_NS, Plan};
pub use predictor::{Predicted, Predictor};
pub use waiter::{WaitFor, Waiter};

/// Which waits are alike: those after the same op, for as many rows, on the same device. The layer
/// is not part of it: a wait in one layer predicts the same wait in the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WaitKey {
    /// Number of the op or stage after which the receiver waits; the caller's own.
    pub op: u32,
    /// Its rows, rounded up to a power of two.
    pub rows: u32,
    /// Number of the device that waits.
    pub device: u32,
}

impl WaitKey {
    /// Key of the waits after op `op` with `rows` rows on a device.
    pub fn new(op: u32, rows: usize, device: usize) -> WaitKey {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let rows = rows.checked_next_power_of_two().unwrap_or(u32::MAX);
        WaitKey { op, rows, device: u32::try_from(device).unwrap_or(u32::MAX) }
    }
}

/// How the links of an engine wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Mailboxes of the devices' workers.
    pub device_links: WaitMode,
    /// Devices, by their number, whose workers wait in another mode.
    pub exceptions: Vec<(usize, WaitMode)>,
    /// Mailbox of the scheduler.
    pub scheduler_link: WaitMode,
}

impl Waits {
    /// What suits an engine of that many devices. Devices that hand work to each other wait for
    /// predictable times, and a late wake delays the next op of the same chunk. A single device
    /// waits for new requests, and the scheduler for callers: to poll there would only burn a core.
    pub fn for_devices(devices: usize) -> Waits {
        let device_links = if devices > 1 { WaitMode::SleepThenSpin } else { WaitMode::Callback };
        Waits { device_links, exceptions: Vec::new(), scheduler_link: WaitMode::Callback }
    }

    /// How the worker of that device waits.
    pub fn of_device(&self, device: usize) -> WaitMode {
        let exception = self.exceptions.iter().rev().find(|(number, _)| *number == device);
        exception.map_or(self.device_links, |(_, mode)| *mode)
    }
}

/// A wait, as it turned out. All times are of the receiver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRecord {
    /// How it was spent: as configured, or `Callback` where it had to park instead.
    pub mode: WaitMode,
    /// When it began.
    pub since: Nanos,
    /// When the message was in the receiver's hands.
    pub end: Nanos,
    /// Predicted length in ns; none without enough waits of its kind before it.
    pub predicted: Option<u64>,
    /// Sleeping was to end this much before the predicted end, in ns.
    pub margin: u64,
    /// Slept from the beginning on, in ns.
    pub slept: u64,
    /// Polled after that, in ns.
    pub spun: u64,
    /// Parked after that because the message was far too late, in ns.
    pub parked: u64,
}

impl WaitRecord {
    /// Length in ns.
    pub fn actual(&self) -> u64 {
        self.end.0.saturating_sub(self.since.0)
    }

    /// Actual − predicted length, in ns.
    pub fn error(&self) -> Option<i64> {
        let clamp = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        self.predicted.map(|predicted| clamp(self.actual()) - clamp(predicted))
    }

    /// As an event of the timeline; `target` is the span that was waited for.
    pub fn info(&self, name: NameId, target: Option<SpanId>) -> WaitInfo {
        WaitInfo {
            name,
            since: self.since,
            target,
            mode: self.mode,
            predicted: self.predicted.unwrap_or(0),
            margin: self.margin,
            slept: self.slept,
            spun: self.spun,
        }
    }
}
