//! Builds devices from their specifications.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::live::LiveDevice;
use lapwing_kernels::cpu::{Activations, CoreSet, Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Blocking, Device, DeviceInfo, OpSet, PerModel, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::npu::array::Array;
use lapwing_kernels::npu::{
    BackendInfo, NpuDevice, NpuDeviceParts, OutlierCounter, Scales, Systolic,
};
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::array::{Preparation, SystolicArray};
use lapwing_plan::rate::{ArrayModel, ArrayRate, RateModel};
use lapwing_plan::time::{TimeModel, TimePerModel};
use lapwing_traces::Clock;
use lapwing_traces::text::counted;

mod in_place;
#[cfg(any(feature = "openvino", feature = "qnn"))]
mod library;
mod opencl;
mod openvino;
mod qnn;

pub(crate) use in_place::InPlace;

use super::{Backend, DeviceSpec, Pace, Rates, calibrate};
use crate::config::Threads;
use crate::engine::draft_model::DraftModel;
use crate::error::Error;
use crate::ranges::{RangeSource, RangesError};

/// Data that all devices of an engine share.
pub(crate) struct Shared<'a> {
    pub(crate) graph: &'a Arc<Graph>,
    pub(crate) file: &'a WeightFile,
    pub(crate) kv: &'a Arc<KvStore>,
    pub(crate) slots: &'a SlotPool,
    /// Memory of a device of which `kv` and `slots` are made.
    #[cfg_attr(not(feature = "opencl"), expect(dead_code, reason = "no device has such memory"))]
    pub(crate) in_place: &'a InPlace,
    /// The draft model, which the device of its number holds, too.
    pub(crate) draft: Option<&'a DraftModel>,
    pub(crate) isa: Isa,
    pub(crate) activations: Activations,
    /// Set if native devices have to be timed.
    pub(crate) clock: Option<&'a dyn Clock>,
    /// Folder for compiled programs of OpenCL devices; that of the graphs of NPUs is beside it.
    #[cfg_attr(
        not(any(feature = "opencl", feature = "openvino", feature = "qnn")),
        expect(dead_code, reason = "no device compiles")
    )]
    pub(crate) programs: Option<PathBuf>,
    /// Ranges of activations, for devices with activations in integers of fixed scales.
    pub(crate) ranges: RangeSource,
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
    (number, spec): (usize, &DeviceSpec),
    assigned: &Threads,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    if let Backend::OpenCl(settings) = &spec.backend {
        return opencl::build((number, spec), settings, shared);
    }
    if let Backend::OpenVino(device) = &spec.backend {
        return openvino::build(spec, device, (assigned, shared));
    }
    if let Backend::Qnn(processor) = &spec.backend {
        return qnn::build(spec, processor, shared);
    }
    let (threads, cores) = (assigned.count, assigned.cores.as_ref());
    let Shared { graph, file, kv, slots, isa, activations, clock, .. } = shared;
    let cpu = Cpu::on_cores(threads, cores, *isa)?.with_activations(*activations);
    // Weights are packed, and rates are measured, on the cores that later compute.
    let _pinned = cpu.pool().pin_caller()?;
    let given = cpu.pool().threads();
    if given < threads {
        let most = format!("at most {given}, the limit on threads of this system (`ulimit -u`)");
        return Err(Error::config("threads", threads, &most));
    }
    let draft = shared.draft.filter(|draft| draft.device == number);
    let name = spec.name.clone();
    let (graph, slots) = (Arc::clone(graph), (*slots).clone());
    let ops = Arc::clone(&graph);
    let mut outliers = None;
    let mut device: Box<dyn Device> = if spec.is_static() {
        let parts = NpuDeviceParts { name, graph, slots, budget: spec.graphs.budget };
        let npu = npu(spec, cpu, parts, shared)?;
        outliers = npu.1;
        npu.0
    } else {
        let draft_parts = draft.map(|draft| CpuDeviceParts {
            name: name.clone(),
            cpu: cpu.clone(),
            graph: Arc::clone(&draft.graph),
            kv: Arc::clone(&draft.kv),
            slots: slots.clone(),
        });
        let parts = CpuDeviceParts { name, cpu, graph, kv: Arc::clone(kv), slots };
        let device = Blocking::new(info(spec), CpuDevice::new(parts, file)?);
        match draft.zip(draft_parts) {
            None => Box::new(device),
            Some((draft, parts)) => {
                let draft = CpuDevice::new(parts, &draft.file)?;
                Box::new(PerModel::new(device, [Blocking::new(info(spec), draft)]))
            }
        }
    };
    let info = device.info().clone();
    let clock = clock.filter(|_| spec.pace == Pace::Native);
    let rates = clock.and_then(|clock| calibrate::rates(&mut *device, &ops, clock));
    let timed = rates.map(|(gflops, gbps)| Rates { gflops, gbps, ..estimated(threads) });
    let rates = timed.unwrap_or_else(|| estimated(threads));
    let time = time_per_model(spec, (&ops, draft), rates)?;
    let held = spec.is_throttled().then(|| Arc::clone(&time));
    let kernels = kernels(spec, (threads, cores), (*isa, *activations));
    let cores = cores.map(|cores| cores.of_thread(0, threads));
    Ok(Built {
        device: LiveDevice { device, time: held, cores },
        info,
        time,
        timed,
        capacity: None,
        kernels,
        notes: Vec::new(),
        outliers,
    })
}

/// A device of prepared graphs on a systolic array, and the counter of its outliers, if it has any.
fn npu(
    spec: &DeviceSpec,
    cpu: Cpu,
    parts: NpuDeviceParts,
    shared: &Shared<'_>,
) -> Result<(Box<dyn Device>, Option<OutlierCounter>), Error> {
    let backend = systolic(spec, cpu, &parts, shared)?;
    let outliers = backend.outliers();
    let device = NpuDevice::new(parts, Box::new(backend), shared.file);
    let info = with_sizes(spec, device.info().clone());
    Ok((Box::new(Blocking::new(info, device)), outliers))
}

/// The systolic array of a device, with fixed scales if the specification has int8 activations.
fn systolic(
    spec: &DeviceSpec,
    cpu: Cpu,
    parts: &NpuDeviceParts,
    shared: &Shared<'_>,
) -> Result<Systolic, Error> {
    let array = Array { size: array(spec).size };
    let backend = Systolic::new(&parts.name, (cpu, array), &parts.graph, shared.file)?;
    let Some(int8) = spec.array().and_then(|array| array.int8) else { return Ok(backend) };
    let ranges = shared.ranges.get(shared.file, "int8")?;
    let scales = Scales::new(&parts.graph, &ranges, int8).map_err(RangesError::Scales)?;
    Ok(backend.with_scales(&parts.graph, Arc::new(scales)))
}

fn array(spec: &DeviceSpec) -> SystolicArray {
    match (&spec.backend, spec.pace) {
        (Backend::Systolic(settings), Pace::Throttled(rates)) => SystolicArray {
            size: settings.array,
            flops: rates.gflops * 1e9,
            ratio_floor: settings.floor,
        },
        _ => SystolicArray::default(),
    }
}

/// What a device built from this specification says of itself, for planning without the device. A
/// simulated device works in host memory.
pub fn info(spec: &DeviceSpec) -> DeviceInfo {
    let info = DeviceInfo::new(&*spec.name, spec.kind);
    if let Backend::OpenCl(_) = &spec.backend {
        return DeviceInfo { ops: OpSet::DECODER, ..info };
    }
    if !info.is_static() {
        return info;
    }
    let backend = match &spec.backend {
        Backend::OpenVino(_) => BackendInfo::float_library("openvino"),
        Backend::Qnn(processor) => BackendInfo::half_library("qnn", processor.weights),
        _ => Systolic::backend_info(Array { size: array(spec).size }, 1),
    };
    with_sizes(spec, backend.device_info(&spec.name, spec.graphs.budget))
}

/// An NPU's own description, with the graph sizes that the specification allows.
fn with_sizes(spec: &DeviceSpec, info: DeviceInfo) -> DeviceInfo {
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
    Ok(match (&spec.backend, spec.pace) {
        (_, Pace::Native) => Arc::new(RateModel::new(graph, real).map_err(wrong)?),
        (Backend::Systolic(settings), Pace::Throttled(rates)) => {
            let preparation = Preparation {
                fixed: settings.prepare,
                per_row_weight: settings.prepare_gweight.as_secs_f64() * 1e-9,
            };
            let rates = ArrayRate { array: array(spec), rate: rates, preparation };
            Arc::new(ArrayModel::new(graph, rates).map_err(wrong)?)
        }
        (_, Pace::Throttled(rates)) => Arc::new(RateModel::new(graph, rates).map_err(wrong)?),
    })
}

/// As [`time_model`], for the model of `graph` and for the draft model, if the device holds one.
fn time_per_model(
    spec: &DeviceSpec,
    (graph, draft): (&Arc<Graph>, Option<&DraftModel>),
    real: Rates,
) -> Result<Arc<dyn TimeModel>, Error> {
    let target = time_model(spec, graph, real)?;
    let Some(draft) = draft else { return Ok(target) };
    let draft = time_model(spec, &draft.graph, real)?;
    Ok(Arc::new(TimePerModel::new(target, [draft])))
}

fn kernels(
    spec: &DeviceSpec,
    (threads, cores): (usize, Option<&CoreSet>),
    (isa, activations): (Isa, Activations),
) -> String {
    let exact = match activations {
        Activations::Int8 => String::new(),
        other => format!(", with {} activations", other.name()),
    };
    let on = cores.map(|cores| format!(", pinned to cores {cores}")).unwrap_or_default();
    let own =
        format!("{}{exact} on {}{on} ({})", isa.name(), counted(threads, "thread"), isa.explain());
    match (&spec.backend, spec.pace) {
        (_, Pace::Native) => own,
        (Backend::Systolic(settings), Pace::Throttled(rates)) => format!(
            "emulated: systolic array of {0} × {0} in software, throttled to {1} GFLOP/s and {2} GB/s; computed by \
             {own}",
            settings.array, rates.gflops, rates.gbps
        ),
        (_, Pace::Throttled(rates)) => {
            format!(
                "emulated: {own}, throttled to {} GFLOP/s and {} GB/s",
                rates.gflops, rates.gbps
            )
        }
    }
}

#[cfg(test)]
mod tests;
