//! How an actor waits for its next message. Predicted sleep followed by polling is the fast
//! synchronisation of HeteroLLM (arXiv 2501.14794).
//!
//! The receiving end of a mailbox is a *link*. Each link waits in one of four modes:
//!
//! | mode | receiver | cost for the sender |
//! |---|---|---|
//! | `Blocking` | blocks in the channel | that of the channel |
//! | `Callback` | parks; the message unparks it | a system call |
//! | `Spin` | polls the flag of the mailbox | an atomic swap |
//! | `SleepThenSpin` | sleeps until `predicted − margin`, polls until `predicted + margin`, then parks | a swap; also a system call if the message is early or far too late |
//!
//! A sleep is a park with a timeout, so an early message ends it. The prediction is the median of the
//! latest waits of the same kind in any mode ([`Predictor`]). The margin is the overshoot of sleeps,
//! measured at the start of the thread and with every sleep since, plus the spread of the latest
//! waits ([`Overshoot`], [`Plan`]). While all cores of the machine are busy, or for a while after a
//! preempted poll, every mode parks instead of polling ([`Cores`]).
//!
//! While a worker polls, it also asks the driver of its device for the end of a run, because some drivers
//! tell it late ([`Device::completion_probe`](lapwing_kernels::device::Device::completion_probe)).
//!
//! By default the workers of several devices choose between `SleepThenSpin` and `Callback` for each
//! wait ([`LinkMode::Chosen`]). Polling saves the time that the system takes to wake a parked thread.
//! It pays where that is a noticeable share of the predicted wait ([`Plan::pays`]) and where a core
//! stays free beside the polling thread: on a machine without one, polling slows down the device that
//! the receiver waits for, and everything else.
//!
//! Every wait yields a [`WaitRecord`], which the timeline shows with the error of the prediction.

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

/// Kind of a wait: the op before it, its rows and the device. The layer is not part of the key, so a
/// wait in one layer predicts the same wait in the next layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WaitKey {
    /// Number of the op or stage after which the receiver waits, as assigned by the caller.
    pub op: u32,
    /// Rows of the op, rounded up to a power of two.
    pub rows: u32,
    /// Number of the device that waits.
    pub device: u32,
}

impl WaitKey {
    /// Key of waits after op `op` with `rows` rows, on a device.
    pub fn new(op: u32, rows: usize, device: usize) -> WaitKey {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let rows = rows.checked_next_power_of_two().unwrap_or(u32::MAX);
        WaitKey { op, rows, device: u32::try_from(device).unwrap_or(u32::MAX) }
    }
}

/// How a link chooses the mode of its waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMode {
    /// `SleepThenSpin` for each wait in which it pays, otherwise `Callback`.
    Chosen,
    /// That of the worker of a single device: `Chosen` if the device's driver can be asked whether a run
    /// has ended ([`Device::completion_probe`](lapwing_kernels::device::Device::completion_probe)),
    /// otherwise `Callback`.
    Single,
    /// The same mode for all waits.
    Fixed(WaitMode),
}

impl LinkMode {
    /// The mode of the worker of a device, whose driver can be asked or not.
    pub fn of_driver(self, has_probe: bool) -> LinkMode {
        match (self, has_probe) {
            (LinkMode::Single, true) => LinkMode::Chosen,
            (LinkMode::Single, false) => LinkMode::Fixed(WaitMode::Callback),
            (mode, _) => mode,
        }
    }
}

impl From<WaitMode> for LinkMode {
    fn from(mode: WaitMode) -> LinkMode {
        LinkMode::Fixed(mode)
    }
}

/// The wait modes of an engine's links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Mode of the workers' mailboxes.
    pub device_links: LinkMode,
    /// Other modes for some workers, by device number; the last entry of a device applies.
    pub exceptions: Vec<(usize, LinkMode)>,
    /// Mode of the scheduler's mailbox.
    pub scheduler_link: LinkMode,
}

impl Waits {
    /// Default modes for an engine of `devices` devices. Several devices wait for each other for
    /// predictable times, and a late wake-up delays the next op of the chunk, so their workers poll
    /// where that pays. So does the worker of a single device whose driver can be asked for the end of a
    /// run. Any other single device waits for new requests, and the scheduler for callers; polling would
    /// only burn a core there.
    pub fn for_devices(devices: usize) -> Waits {
        let park = LinkMode::Fixed(WaitMode::Callback);
        let device_links = if devices > 1 { LinkMode::Chosen } else { LinkMode::Single };
        Waits { device_links, exceptions: Vec::new(), scheduler_link: park }
    }

    /// Mode of the worker of a device.
    pub fn of_device(&self, device: usize) -> LinkMode {
        let exception = self.exceptions.iter().rev().find(|(number, _)| *number == device);
        exception.map_or(self.device_links, |(_, mode)| *mode)
    }
}

/// A finished wait. All times are of the receiver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRecord {
    /// Mode of the wait: the configured mode, or `Callback` if the receiver had to park instead of poll.
    pub mode: WaitMode,
    /// Start.
    pub since: Nanos,
    /// Time at which the receiver had the message.
    pub end: Nanos,
    /// Predicted length in ns; `None` without enough earlier waits of its kind.
    pub predicted: Option<u64>,
    /// Planned time from the end of the sleep to the predicted end, in ns.
    pub margin: u64,
    /// Time asleep from the start, in ns.
    pub slept: u64,
    /// Time of polling after the sleep, in ns.
    pub spun: u64,
    /// Time parked after polling, because the message was far too late, in ns.
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

    /// The wait as a timeline event; `target` is the span that the receiver waited for.
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
