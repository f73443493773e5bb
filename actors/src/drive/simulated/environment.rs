//! What devices in virtual time share, and what disturbs them: memory bandwidth, a renderer on the
//! queue of one of them, noise; and what they did. Without any of it a device's run is one event,
//! as its model says.

use std::time::Duration;

use lapwing_traces::Nanos;

use lapwing_plan::DeviceId;

/// The environment of a simulated run: what its devices share, and what disturbs them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// Bandwidth that all devices share, in GB/s (bytes per nanosecond); `None` is no limit.
    pub memory: Option<f64>,
    /// Something that draws on one of the devices.
    pub gpu_interference: Option<GpuInterference>,
    /// Scatter of times.
    pub noise: Option<Noise>,
    /// From the end of work on one device until another has what follows, beside the
    /// synchronisation that its model tells of: the way of a message to another thread.
    pub hand_over: Duration,
    /// Graphs that a plan asks for before it runs take no time: they were made before.
    pub prepared: bool,
    /// How long a hand-over between devices polls, of the time before a run; 0 if nothing polls.
    pub spin: Duration,
    /// The devices compute no values, so that parts are put together in time only.
    pub shapes_only: bool,
}

/// Frames on a device's queue, which runs kernels to their end. A frame that is due while one
/// waits or runs is dropped; a kernel that has waited for a frame runs before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuInterference {
    /// The device.
    pub device: DeviceId,
    /// From frame to frame; 0 is a single frame.
    pub period: Duration,
    /// Of the device, for a frame.
    pub time: Duration,
}

/// Scatter of the time that a run takes beside its submission: a normal distribution, cut off at a
/// tenth of the modelled time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Same seed, same times.
    pub seed: u64,
    /// Standard deviation as a share of the time.
    pub spread: f64,
}

/// What devices did until now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Of each device.
    pub devices: Vec<DeviceUsage>,
    /// At least one device computes.
    pub any: Nanos,
    /// At least two do.
    pub several: Nanos,
    /// The longest chain of runs that have ended, and of merges between them, of which each needs
    /// the one before, with the times that they take alone.
    pub critical: Nanos,
    /// Bytes moved.
    pub bytes: f64,
    /// Stages whose inputs came from another device, or from several.
    pub hand_overs: usize,
    /// Stages whose parts were put together.
    pub merges: usize,
    /// Time of that.
    pub copying: Nanos,
    /// Preparation of graphs on the spot, in ms.
    pub preparing_ms: f64,
    /// Frames that were finished.
    pub frames: usize,
}

/// What a device did until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage {
    /// Computes.
    pub busy: Nanos,
    /// Computes while another does.
    pub co_run: Nanos,
    /// Is submitted to, and synchronised with.
    pub waiting: Nanos,
    /// Polls, as part of `waiting`, of hand-overs that have ended.
    pub spinning: Nanos,
    /// Is held up by frames.
    pub held: Nanos,
    /// Puts parts together.
    pub merging: Nanos,
    /// Does nothing; with `busy`, `waiting`, `held` and `merging` it makes up all time.
    pub idle: Nanos,
    /// Time that its runs that have ended take by its model, without a share of anything.
    pub alone: Nanos,
    /// Runs.
    pub runs: usize,
}
