//! The profiler: measures ops on live devices, one op at a time, under the conditions of an engine. A
//! throttled device takes the time of its model.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceError, DeviceInfo, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_traces::Clock;

use super::live::LiveDevice;
use lapwing_plan::profile::{DeviceProfile, Machine, Profile, VERSION, nanos};

mod caches;
mod chain;
mod choice;
mod device;
mod grid;
mod inputs;
mod log;
mod settled;
mod sync;

pub use choice::choice_time;
use device::{Conditions, DeviceBench};
pub use grid::rows_max;
use grid::{Measurement, Priority, measurements};

/// Input of the profiler.
pub struct MeasureParts<'a> {
    /// Devices, in the order of their numbers. They must be idle.
    pub devices: Vec<MeasuredDevice>,
    /// Ops of the model.
    pub graph: &'a Arc<Graph>,
    /// Slots in which the devices store their outputs.
    pub slots: SlotPool,
    /// Pages of the shared KV cache; their content is overwritten.
    pub pages: u32,
    /// Rows of a page.
    pub page_rows: usize,
    /// Maximum rows of a chunk.
    pub chunk_rows: usize,
    /// The machine.
    pub machine: Machine,
    /// Name of the model.
    pub model: String,
    /// Version of the program.
    pub program: String,
    /// Clock of the measurement.
    pub clock: Arc<dyn Clock>,
    /// Time limits.
    pub limits: Limits,
    /// What is measured.
    pub points: Points,
}

/// A device to measure.
pub struct MeasuredDevice {
    /// The device, as an engine uses it.
    pub device: LiveDevice,
    /// The device as planners see it.
    pub info: DeviceInfo,
    /// Description beyond the name: threads, rates.
    pub description: String,
}

/// Limits of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum runs of each op, after one warm-up run. Fewer are measured once they agree.
    pub runs: usize,
    /// Time after which no further run of an op starts. At least one run is measured.
    pub per_op: Duration,
    /// Time per device after which the remaining measurements are skipped. The least important ones
    /// come last; one op of each kind is always measured.
    pub per_device: Duration,
}

/// The points that are measured, each an op with a number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// All of the grid.
    All,
    /// The most important ones: of each op the least, the middle and the largest number of rows.
    Few,
}

impl Default for Limits {
    /// Seven runs, 150 ms for each op, a minute for each device.
    fn default() -> Limits {
        Limits { runs: 7, per_op: Duration::from_millis(150), per_device: Duration::from_secs(60) }
    }
}

/// Progress of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureProgress<'a> {
    /// Name of the device.
    pub device: &'a str,
    /// Op to measure next, with its shape.
    pub what: String,
    /// Finished measurements, over all devices.
    pub done: usize,
    /// Planned measurements, over all devices.
    pub of: usize,
}

/// Why no profile was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A device failed.
    #[error("measuring {what} failed: {source}")]
    Device {
        /// The op.
        what: String,
        /// Cause.
        source: DeviceError,
    },
    /// The caller cancelled the measurement.
    #[error("the measurement was cancelled; no profile was stored")]
    Cancelled,
    /// A thread could not be started.
    #[error("could not start a thread to measure synchronisation: {source}")]
    Thread {
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// Measures every device: each distinct op, undivided and with shares of its output channels, for the
/// row counts of a grid. Calls `progress` before each measurement; a break cancels.
///
/// # Errors
/// [`MeasureError`] if a device fails, or if `progress` breaks.
pub fn measure(
    parts: MeasureParts<'_>,
    progress: &mut dyn FnMut(&MeasureProgress<'_>) -> ControlFlow<()>,
) -> Result<Profile, MeasureError> {
    let MeasureParts { devices, graph, limits, .. } = &parts;
    let points = parts.points;
    let several = devices.len() > 1;
    let plans: Vec<Vec<Measurement>> = devices
        .iter()
        .map(|device| {
            let rows = (parts.chunk_rows, parts.pages_rows());
            let planned = measurements(graph, &device.info, rows.0, rows.1, several).into_iter();
            planned.filter(|one| points == Points::All || one.priority <= Priority::Share).collect()
        })
        .collect();
    // One more of each device: the whole model.
    let of = plans.iter().map(|plan| plan.len() + 1).sum();
    let (limits, clock) = (*limits, Arc::clone(&parts.clock));
    let sync = sync::time(&clock)?;
    let copy_bytes_per_second = sync::copy_rate(&parts);
    let cache_rows = rows_max(parts.chunk_rows).min(parts.pages_rows());
    let MeasureParts { devices, graph, page_rows, machine, model, program, chunk_rows, .. } = parts;
    let mut profiles = Vec::new();
    let mut done = 0;
    for (MeasuredDevice { device, info, description }, plan) in devices.into_iter().zip(plans) {
        let _pinned = device.pin_thread();
        let conditions = Conditions { graph, page_rows, clock: Arc::clone(&clock), limits };
        let mut bench = DeviceBench::new(device, &info, conditions);
        let begin = clock.now();
        let asked = plan.len();
        let fixed = bench.prepared(&info, cache_rows)?;
        let mut samples = Vec::with_capacity(plan.len());
        for measurement in plan {
            let what = measurement.to_string();
            let step = MeasureProgress { device: &info.name, what, done, of };
            if progress(&step).is_break() {
                return Err(MeasureError::Cancelled);
            }
            done += 1;
            let spent = Duration::from_nanos(clock.now().0 - begin.0);
            if spent < limits.per_device || measurement.priority == Priority::Kind {
                samples.push(bench.sample(&measurement, fixed.submit_idle)?);
            }
        }
        let what = chain::WHAT.to_owned();
        if progress(&MeasureProgress { device: &info.name, what, done, of }).is_break() {
            return Err(MeasureError::Cancelled);
        }
        done += 1;
        let ops = Duration::from_nanos(clock.now().0 - begin.0);
        let time = chain::Time { submit: fixed.submit_idle, ops };
        chain::fit_to_whole(&mut bench, &info, time, &mut samples)?;
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
    /// Rows of the KV cache.
    fn pages_rows(&self) -> usize {
        self.pages as usize * self.page_rows
    }
}

#[cfg(test)]
mod tests;
