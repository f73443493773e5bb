//! The environment of devices in virtual time (shared memory bandwidth, a renderer on the GPU's queue,
//! noise) and the devices' usage. Without an environment, a device's run is one event of its modelled
//! time.

use std::time::Duration;

use lapwing_plan::DeviceId;
use lapwing_traces::Nanos;
use lapwing_traces::analysis::Concurrent;

/// The environment of a simulated run: shared resources and disturbances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// Bandwidth that all devices share, in GB/s (bytes per nanosecond); `None` is no limit.
    pub memory: Option<f64>,
    /// A renderer that draws frames on one of the devices.
    pub gpu_interference: Option<GpuInterference>,
    /// Random variation of run times.
    pub noise: Option<Noise>,
    /// Latency of a message from one device's thread to another's, in addition to the synchronisation
    /// that the device's model includes.
    pub hand_over: Duration,
    /// Whether graphs that a plan requests before it runs take no time, because they were prepared
    /// offline.
    pub prepared: bool,
    /// Polling time of a synchronisation between devices, as part of the time before a run; 0 without
    /// polling.
    pub spin: Duration,
    /// Whether the devices compute no values, so a merge takes time but merges nothing.
    pub shapes_only: bool,
}

/// Frames on a device's queue, which runs kernels to completion. A frame that becomes due while
/// another waits or is drawn is dropped. A kernel that has waited for a frame runs before the next
/// frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuInterference {
    /// The device.
    pub device: DeviceId,
    /// Time from frame to frame; 0 draws a single frame.
    pub period: Duration,
    /// Device time of a frame.
    pub time: Duration,
}

/// Random variation of a run's time without its submission: a normal distribution, cut off below at a
/// tenth of the modelled time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Seed of the random numbers; the same seed gives the same times.
    pub seed: u64,
    /// Standard deviation as a share of the time.
    pub spread: f64,
}

/// Usage of all devices until now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Usage of each device.
    pub devices: Vec<DeviceUsage>,
    /// Time in which at least one device computes.
    pub any: Nanos,
    /// Time in which at least two devices compute.
    pub several: Nanos,
    /// Time in which devices compute each set of kinds of work.
    pub concurrent: Concurrent,
    /// Length of the longest dependency chain of completed runs and of the merges between them, with
    /// the times that they take without contention.
    pub critical: Nanos,
    /// Bytes moved.
    pub bytes: f64,
    /// Number of synchronisations: stages whose inputs came from other devices.
    pub hand_overs: usize,
    /// Number of stages whose parts were merged.
    pub merges: usize,
    /// Time of the merges.
    pub copying: Nanos,
    /// Time of graph preparation during runs, in ms.
    pub preparing_ms: f64,
    /// Number of finished frames.
    pub frames: usize,
}

/// Usage of one device until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage {
    /// Time computing.
    pub busy: Nanos,
    /// Time computing while another device computes.
    pub co_run: Nanos,
    /// Time of submissions and synchronisations.
    pub waiting: Nanos,
    /// Polling time, as part of `waiting`, of completed synchronisations.
    pub spinning: Nanos,
    /// Time stalled by frames.
    pub held: Nanos,
    /// Time merging parts.
    pub merging: Nanos,
    /// Idle time; `busy`, `waiting`, `held`, `merging` and `idle` add up to all time.
    pub idle: Nanos,
    /// Modelled time of its completed runs without contention.
    pub alone: Nanos,
    /// Number of runs.
    pub runs: usize,
}
