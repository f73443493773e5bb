//! The profiler (S2-37): measures ops on live devices, one at a time, as they run in an engine; a
//! throttled device is held to its model's time.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceError, DeviceInfo, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_traces::Clock;

use super::live::LiveDevice;
use lapwing_plan::profile::{DeviceProfile, Machine, Profile, VERSION, nanos};

mod device;
mod grid;
mod hand_over;

use device::Bench;
pub use grid::rows_max;
use grid::{Ask, Rank, asks};

/// What is measured.
pub struct MeasureParts<'a> {
    /// Devices, by their number. They must run nothing else.
    pub devices: Vec<Measured>,
    /// The model's ops.
    pub graph: &'a Arc<Graph>,
    /// Where the devices' results lie.
    pub slots: SlotPool,
    /// Pages of the KV cache that the devices share; their content is lost.
    pub pages: u32,
    /// Rows of a page.
    pub page_rows: usize,
    /// Most rows of a chunk.
    pub chunk_rows: usize,
    /// The machine.
    pub machine: Machine,
    /// Name of the model.
    pub model: String,
    /// Version of the program.
    pub program: String,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// When to stop.
    pub limits: Limits,
}

/// A device that is measured.
pub struct Measured {
    /// The device, as an engine would have it.
    pub device: LiveDevice,
    /// What planners know of it.
    pub info: DeviceInfo,
    /// What it is beyond its name: threads, rates.
    pub description: String,
}

/// How long measuring may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most runs of each op, beside one to warm up.
    pub runs: usize,
    /// No further run of an op after that time, but at least one.
    pub per_op: Duration,
    /// For each device: after that time the rest is left out, the least important; one op of each
    /// kind is measured in any case.
    pub per_device: Duration,
}

impl Default for Limits {
    /// Seven runs, 150 ms for each op, a minute for each device.
    fn default() -> Limits {
        Limits { runs: 7, per_op: Duration::from_millis(150), per_device: Duration::from_secs(60) }
    }
}

/// How far measuring is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureProgress<'a> {
    /// Device.
    pub device: &'a str,
    /// Op, with its shape.
    pub what: String,
    /// Measured so far, over all devices.
    pub done: usize,
    /// To be measured, over all devices.
    pub of: usize,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A device failed.
    #[error("measuring {what} failed: {source}")]
    Device {
        /// The op.
        what: String,
        /// What happened.
        source: DeviceError,
    },
    /// It was told to stop.
    #[error("measuring was interrupted; nothing was stored")]
    Cancelled,
    /// The operating system gives no thread.
    #[error("no thread could be started to measure hand-overs: {source}")]
    Thread {
        /// What it said.
        source: std::io::Error,
    },
}

/// Measures every device: each distinct op, whole and with shares of its features, for row counts
/// on a grid. `progress` is told before each and may end it.
///
/// # Errors
/// [`MeasureError`] when a device fails, or `progress` breaks off.
pub fn measure(
    parts: MeasureParts<'_>,
    progress: &mut dyn FnMut(&MeasureProgress<'_>) -> ControlFlow<()>,
) -> Result<Profile, MeasureError> {
    let MeasureParts { devices, graph, limits, .. } = &parts;
    let several = devices.len() > 1;
    let plans: Vec<Vec<Ask>> = devices
        .iter()
        .map(|device| asks(graph, &device.info, (parts.chunk_rows, parts.pages_rows(), several)))
        .collect();
    let of = plans.iter().map(Vec::len).sum();
    let (limits, clock) = (*limits, Arc::clone(&parts.clock));
    let sync = hand_over::time(&clock)?;
    let copy_bytes_per_second = hand_over::copy_rate(&parts);
    let MeasureParts { devices, graph, page_rows, machine, model, program, chunk_rows, .. } = parts;
    let mut profiles = Vec::new();
    let mut done = 0;
    for (Measured { device, info, description }, plan) in devices.into_iter().zip(plans) {
        let mut bench = Bench::new(device, (graph, page_rows), (Arc::clone(&clock), limits));
        let begin = clock.now();
        let asked = plan.len();
        let fixed = bench.fixed(&info)?;
        let mut samples = Vec::with_capacity(plan.len());
        for ask in plan {
            let what = ask.to_string();
            let step = MeasureProgress { device: &info.name, what, done, of };
            if progress(&step).is_break() {
                return Err(MeasureError::Cancelled);
            }
            done += 1;
            let spent = Duration::from_nanos(clock.now().0 - begin.0);
            if spent < limits.per_device || ask.rank == Rank::Kind {
                samples.push(bench.sample(&ask, fixed.submit_idle)?);
            }
        }
        profiles.push(DeviceProfile {
            name: info.name,
            kind: info.kind.name().to_owned(),
            description,
            submit_idle_ns: nanos(fixed.submit_idle),
            submit_queued_ns: nanos(fixed.submit_queued),
            crossing_ns: nanos(fixed.crossing),
            convert_ns_per_byte: bench.convert_ns_per_byte(),
            prepares: bench.take_prepares(),
            asked,
            samples,
        });
    }
    Ok(Profile {
        version: VERSION,
        program,
        machine,
        model,
        chunk_rows,
        devices: profiles,
        sync,
        copy_bytes_per_second,
    })
}

impl MeasureParts<'_> {
    /// Rows that the KV cache holds.
    fn pages_rows(&self) -> usize {
        self.pages as usize * self.page_rows
    }
}

#[cfg(test)]
mod tests;
