//! Builds devices from their specifications.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::live::LiveDevice;
use lapwing_kernels::device::{DeviceInfo, MemoryDomain};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::npu::{ActivationRanges, OutlierCounter};
use lapwing_plan::array::{Preparation, SystolicArray};
use lapwing_plan::rate::{ArrayModel, ArrayRate, RateModel};
use lapwing_plan::time::{TimeModel, TimePerModel};
use lapwing_traces::Clock;

#[cfg(any(feature = "openvino", feature = "qnn"))]
pub(super) mod library;
pub(super) mod on_threads;

use super::{DeviceSpec, Pace, Rates, calibrate};
use crate::config::Threads;
use crate::engine::draft_model::DraftModel;
use crate::engine::opened::{EngineMemory, Opened};
use crate::error::Error;
use crate::ranges::RangeSource;

/// What all devices of an engine share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) opened: &'a Opened,
    pub(crate) memory: &'a EngineMemory,
    /// Set if native devices have to be timed.
    pub(crate) clock: Option<&'a dyn Clock>,
}

impl<'a> Shared<'a> {
    /// The draft model, if the device of this number holds it.
    pub(crate) fn draft_on(&self, number: usize) -> Option<&'a DraftModel> {
        self.memory.draft.as_ref().filter(|draft| draft.device == number)
    }

    /// Ranges of activations of that kind, for devices with activations in integers of fixed scales.
    pub(super) fn ranges(&self, kind: &str) -> Result<Arc<ActivationRanges>, Error> {
        RangeSource::of(&self.opened.settings).get(&self.opened.file, kind)
    }
}

/// A device, with the description that planners and reports need.
pub(crate) struct Built {
    pub(crate) device: LiveDevice,
    pub(crate) info: DeviceInfo,
    /// Predicts its times.
    pub(crate) time: Arc<dyn TimeModel>,
    /// The rates of a native device, if it was timed.
    pub(crate) timed: Option<Rates>,
    /// Bytes of its own memory, if it has any.
    pub(crate) capacity: Option<u64>,
    /// One line on its kernels and the rates it is throttled to.
    pub(crate) kernels: String,
    /// What was not used, and why.
    pub(crate) notes: Vec<String>,
    /// Counts the outliers of a device with int8 activations of fixed scales.
    pub(crate) outliers: Option<OutlierCounter>,
}

/// Builds a device with these threads. `number` is its number in the engine.
pub(crate) fn build(
    number: usize,
    spec: &DeviceSpec,
    threads: &Threads,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    spec.backend.get().build(number, spec, threads, shared)
}

/// The systolic array of a device, or the default one.
pub(super) fn array(spec: &DeviceSpec) -> SystolicArray {
    match (spec.array(), spec.pace) {
        (Some(settings), Pace::Throttled(rates)) => SystolicArray {
            size: settings.array,
            flops: rates.gflops * 1e9,
            ratio_floor: settings.floor,
        },
        _ => SystolicArray::default(),
    }
}

/// What the device of that number, built from this specification, says of itself, for planning without the device. A
/// simulated device works in host memory, unless the specification gives it memory of its own.
pub fn info(number: usize, spec: &DeviceSpec) -> DeviceInfo {
    let info = spec.backend.get().info(spec);
    match spec.memory {
        Some(_) => DeviceInfo { memory: MemoryDomain::Device(number), ..info },
        None => info,
    }
}

/// An NPU's own description, with the graph sizes that the specification allows.
pub(super) fn with_sizes(spec: &DeviceSpec, info: DeviceInfo) -> DeviceInfo {
    DeviceInfo { sizes: spec.graphs.sizes.clone(), ..info }
}

/// Estimated rates of a CPU, from its number of threads alone.
pub fn estimated(threads: usize) -> Rates {
    Rates {
        gflops: 30.0 * threads as f64,
        gbps: 12.0,
        submit_queued: Duration::ZERO,
        submit_idle: Duration::from_micros(5),
        sync: Duration::from_micros(5),
    }
}

/// The time model that a device is throttled to; for a native device, a model of the rates `real`.
pub fn time_model(
    spec: &DeviceSpec,
    graph: &Arc<Graph>,
    real: Rates,
) -> Result<Arc<dyn TimeModel>, Error> {
    let graph = Arc::clone(graph);
    let wrong = |error: lapwing_plan::rate::RateError| {
        Error::config("device", &spec.name, &format!("a device with valid rates: {error}"))
    };
    Ok(match (spec.array(), spec.pace) {
        (_, Pace::Native) => Arc::new(RateModel::new(graph, real).map_err(wrong)?),
        (Some(settings), Pace::Throttled(rates)) => {
            let preparation = Preparation {
                fixed: settings.prepare,
                per_row_weight: settings.prepare_gweight.as_secs_f64() * 1e-9,
            };
            let rates = ArrayRate { array: array(spec), rate: rates, preparation };
            Arc::new(ArrayModel::new(graph, rates).map_err(wrong)?)
        }
        (_, Pace::Throttled(rates)) => {
            let model = RateModel::new(graph, rates).map_err(wrong)?;
            Arc::new(match spec.memory {
                Some(memory) => model.with_link(memory.link).map_err(wrong)?,
                None => model,
            })
        }
    })
}

/// As [`time_model`], for the model of `graph` and for the draft model, if the device holds one.
pub(super) fn time_per_model(
    spec: &DeviceSpec,
    graph: &Arc<Graph>,
    draft: Option<&DraftModel>,
    real: Rates,
) -> Result<Arc<dyn TimeModel>, Error> {
    let target = time_model(spec, graph, real)?;
    let Some(draft) = draft else { return Ok(target) };
    let draft = time_model(spec, &draft.graph, real)?;
    Ok(Arc::new(TimePerModel::new(target, [draft])))
}

#[cfg(test)]
mod tests;
