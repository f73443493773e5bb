//! The components of a simulated engine, and its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lapwing_kernels::device::{Device, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_plan::time::TimeModel;
use lapwing_traces::{Clock, Nanos};

use crate::scheduler::Scheduler;

/// A device in virtual time: true values from `device`, modelled time from `time`.
pub struct SimulatedDevice {
    /// Computes values.
    pub device: Box<dyn Device>,
    /// Gives the modelled time of each run.
    pub time: Arc<dyn TimeModel>,
}

/// The components of a simulated engine.
pub struct SimulationParts {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Devices, by their number.
    pub devices: Vec<SimulatedDevice>,
    /// The ops of each model, by its number.
    pub graphs: Vec<Arc<Graph>>,
    /// Pool of the buffers that hold results.
    pub slots: SlotPool,
    /// Rate at which parts are merged, in bytes per second; with an infinite rate, merging takes no time.
    pub copy_rate: f64,
}

/// The virtual clock, which all parts share.
#[derive(Debug, Default)]
pub(super) struct VirtualClock(pub(super) AtomicU64);

impl Clock for VirtualClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}
