//! Builds devices whose work CPU threads do: CPUs, throttled ones, and systolic arrays in software.

use std::sync::Arc;

use lapwing_actors::drive::live::LiveDevice;
use lapwing_kernels::cpu::{Activations, CoreSet, Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Blocking, Device, OwnMemory, PerModel};
use lapwing_kernels::npu::array::Array;
use lapwing_kernels::npu::{NpuDevice, NpuDeviceParts, OutlierCounter, Scales, Systolic};
use lapwing_traces::text::counted;

use super::{Built, Shared, array, calibrate, estimated, info, time_per_model, with_sizes};
use crate::config::{Chosen, Threads};
use crate::devices::{DeviceSpec, Pace, Rates};
use crate::engine::opened::Opened;
use crate::error::Error;
use crate::ranges::RangesError;

/// Builds a CPU, or a device that is emulated on CPU threads.
pub(in crate::devices) fn build(
    number: usize,
    spec: &DeviceSpec,
    assigned: &Threads,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    let (threads, cores) = (assigned.count, assigned.cores.as_ref());
    let Shared { opened, memory, clock } = shared;
    let Opened { graph, file, .. } = opened;
    let Chosen { isa, activations, .. } = opened.chosen;
    let cpu = Cpu::on_cores(threads, cores, isa)?.with_activations(activations);
    // Weights are packed, and rates are measured, on the cores that later compute.
    let _pinned = cpu.pool().pin_caller()?;
    let given = cpu.pool().threads();
    if given < threads {
        let most = format!("at most {given}, the limit on threads of this system (`ulimit -u`)");
        return Err(Error::config("threads", threads, &most));
    }
    let draft = shared.draft_on(number);
    let name = spec.name.clone();
    let (graph, slots) = (Arc::clone(graph), memory.slots.clone());
    let ops = Arc::clone(&graph);
    let mut outliers = None;
    let mut device: Box<dyn Device> = if spec.is_static() {
        let parts = NpuDeviceParts { name, graph, slots, budget: spec.graphs.budget };
        let npu = npu(spec, cpu, parts, shared)?;
        outliers = npu.1;
        npu.0
    } else {
        let of = info(number, spec);
        let draft_parts = draft.map(|draft| CpuDeviceParts {
            name: name.clone(),
            cpu: cpu.clone(),
            graph: Arc::clone(&draft.graph),
            kv: Arc::clone(&draft.kv),
            slots: slots.clone(),
        });
        let parts =
            CpuDeviceParts { name, cpu, graph, kv: Arc::clone(&memory.kv), slots: slots.clone() };
        let own = CpuDevice::new(parts, file)?;
        match (draft.zip(draft_parts), spec.memory) {
            (None, None) => Box::new(Blocking::new(of, own)),
            (None, Some(_)) => Box::new(OwnMemory::new(of, own, Arc::clone(&ops), slots)),
            (Some((draft, parts)), None) => {
                let draft = CpuDevice::new(parts, &draft.file)?;
                let first = Blocking::new(of.clone(), own);
                Box::new(PerModel::new(first, [Blocking::new(of, draft)]))
            }
            (Some((draft, parts)), Some(_)) => {
                let second = CpuDevice::new(parts, &draft.file)?;
                let first = OwnMemory::new(of.clone(), own, Arc::clone(&ops), slots.clone());
                let second = OwnMemory::new(of, second, Arc::clone(&draft.graph), slots);
                Box::new(PerModel::new(first, [second]))
            }
        }
    };
    let info = device.info().clone();
    let clock = clock.filter(|_| spec.pace == Pace::Native);
    let rates = clock.and_then(|clock| calibrate::rates(&mut *device, &ops, clock));
    let timed = rates.map(|(gflops, gbps)| Rates { gflops, gbps, ..estimated(threads) });
    let rates = timed.unwrap_or_else(|| estimated(threads));
    let time = time_per_model(spec, &ops, draft, rates)?;
    let held = spec.is_throttled().then(|| Arc::clone(&time));
    let kernels = kernels(spec, threads, cores, isa, activations);
    let cores = cores.map(|cores| cores.of_thread(0, threads));
    Ok(Built {
        device: LiveDevice { device, time: held, cores },
        info,
        time,
        timed,
        capacity: spec.memory.map(|memory| memory.bytes),
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
    let device = NpuDevice::new(parts, Box::new(backend), &shared.opened.file);
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
    let backend = Systolic::new(&parts.name, cpu, array, &parts.graph, &shared.opened.file)?;
    let Some(int8) = spec.array().and_then(|array| array.int8) else { return Ok(backend) };
    let ranges = shared.ranges("int8")?;
    let scales = Scales::new(&parts.graph, &ranges, int8).map_err(RangesError::Scales)?;
    Ok(backend.with_scales(&parts.graph, Arc::new(scales)))
}

fn kernels(
    spec: &DeviceSpec,
    threads: usize,
    cores: Option<&CoreSet>,
    isa: Isa,
    activations: Activations,
) -> String {
    let exact = match activations {
        Activations::Int8 => String::new(),
        other => format!(", with {} activations", other.name()),
    };
    let on = cores.map(|cores| format!(", pinned to cores {cores}")).unwrap_or_default();
    let own =
        format!("{}{exact} on {}{on} ({})", isa.name(), counted(threads, "thread"), isa.explain());
    match (spec.array(), spec.pace) {
        (_, Pace::Native) => own,
        (Some(settings), Pace::Throttled(rates)) => format!(
            "emulated: systolic array of {0} × {0} in software, throttled to {1} GFLOP/s and {2} GB/s; computed by \
             {own}",
            settings.array, rates.gflops, rates.gbps
        ),
        (_, Pace::Throttled(rates)) => {
            let memory = spec.memory.map(|crate::devices::OwnMemory { bytes, link }| {
                let mib = bytes as f64 / f64::from(1 << 20);
                format!(", with {mib:.1} MiB of its own behind {} GB/s", link.gbps)
            });
            format!(
                "emulated: {own}, throttled to {} GFLOP/s and {} GB/s{}",
                rates.gflops,
                rates.gbps,
                memory.unwrap_or_default()
            )
        }
    }
}
