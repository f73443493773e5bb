//! What the parts of a chunk's stages took, and which other devices computed meanwhile. The scheduler learns from it how much devices slow
//! each other down.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::sync::{AtomicU64, Mutex, Ordering, lock};
use lapwing_plan::DeviceId;
use lapwing_traces::Nanos;

use super::Delivery;

/// A set of devices. One beyond the 64th is in no set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSet(u64);

impl DeviceSet {
    /// A single device.
    pub fn of(device: usize) -> DeviceSet {
        DeviceSet(u32::try_from(device).ok().and_then(|at| 1_u64.checked_shl(at)).unwrap_or(0))
    }

    /// Those of both sets.
    #[must_use]
    pub fn with(self, other: DeviceSet) -> DeviceSet {
        DeviceSet(self.0 | other.0)
    }

    /// Those that are not in another set.
    #[must_use]
    pub fn without(self, other: DeviceSet) -> DeviceSet {
        DeviceSet(self.0 & !other.0)
    }

    /// Whether it has no device.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its devices, in order.
    pub fn devices(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |device| self.0 >> device & 1 == 1)
    }
}

/// The devices that compute at present.
#[derive(Debug, Default)]
pub struct Computing(AtomicU64);

/// What a part of a stage took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTime {
    /// Number of the stage in the route.
    pub stage: usize,
    /// Number of the part in the stage.
    pub part: usize,
    /// The device.
    pub device: DeviceId,
    /// From its begin to its end.
    pub time: Duration,
    /// Other devices that computed both at its begin and at its end.
    pub beside: DeviceSet,
}

/// What the parts of a chunk's stages took so far.
#[derive(Debug, Default)]
pub struct Runs {
    computing: Arc<Computing>,
    ended: Mutex<Vec<RunTime>>,
}

impl Runs {
    /// Those of a chunk, beside others of the same engine.
    pub fn new(computing: &Arc<Computing>) -> Runs {
        Runs { computing: Arc::clone(computing), ended: Mutex::default() }
    }

    /// Takes those that have ended, in order.
    pub fn take(&self) -> Vec<RunTime> {
        std::mem::take(&mut *lock(&self.ended))
    }
}

/// A run that a device has begun. Dropped, it counts as over, and its time is not known.
#[derive(Debug)]
pub struct Begun {
    since: Nanos,
    beside: DeviceSet,
    own: DeviceSet,
    computing: Arc<Computing>,
}

impl Begun {
    /// Records that a device begins a delivery. `None` if nothing is predicted for its chunk.
    pub fn new(delivery: &Delivery, now: Nanos) -> Option<Begun> {
        let runs = delivery.chunk().runs.as_ref()?;
        let (own, computing) = (DeviceSet::of(delivery.device().0), Arc::clone(&runs.computing));
        let others = DeviceSet(computing.0.fetch_or(own.0, Ordering::Relaxed)).without(own);
        Some(Begun { since: now, beside: others, own, computing })
    }

    /// Records that it has computed it.
    pub fn end(self, delivery: &Delivery, now: Nanos) {
        let Some(runs) = &delivery.chunk().runs else { return };
        let present = DeviceSet(self.computing.0.load(Ordering::Relaxed));
        let run = RunTime {
            stage: delivery.chunk().cursor,
            part: delivery.part_index(),
            device: delivery.device(),
            time: now.since(self.since),
            beside: DeviceSet(self.beside.0 & present.0),
        };
        lock(&runs.ended).push(run);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.computing.0.fetch_and(!self.own.0, Ordering::Relaxed);
    }
}
