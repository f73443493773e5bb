//! A machine's run in virtual time.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{
    SimulatedDevice, Simulation, SimulationParts, Surroundings,
};
use lapwing_actors::drive::soc::Shapes;
use lapwing_actors::message::{Generate, SchedulerMessage, StreamEvent, Submit, Task};
use lapwing_actors::plan::cost::Modelled;
use lapwing_actors::plan::planner::{Planner, PlannerParts};
use lapwing_actors::plan::strategy::{StrategyOptions, by_name};
use lapwing_actors::policy::Fcfs;
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_actors::sequence::Door;
use lapwing_kernels::device::{DeviceInfo, SlotPool};
use lapwing_kernels::kv::KvPool;
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::WeightFile;
use lapwing_traces::Nanos;

use super::{Machine, MachineRequest, MachineRun};
use crate::devices::build;
use crate::simulate::SimulateError;

/// Defaults of an engine: rows of a chunk, and chunks in flight with one device and with several.
const CHUNK_ROWS: usize = 512;
const PERMITS: (usize, usize) = (2, 4);

pub(super) fn run(
    machine: &Machine,
    request: &MachineRequest<'_>,
) -> Result<MachineRun, SimulateError> {
    let wrong = |reason: String| SimulateError::Run { reason };
    let MachineRequest { strategy, prompt, decode, .. } = *request;
    let mut simulation = start(machine, request)?;
    let (sink, stream) = ChannelSink::new(decode + 4);
    let generate = Generate {
        sampler: Sampler::new(SamplingParams::greedy(), &[]),
        stop_ids: [].into(),
        tokens_max: decode + 1,
    };
    let ticket = Door::new(1).try_take().ok_or_else(|| wrong("no ticket".to_owned()))?;
    let (task, trace) = (Task::Generate(Box::new(generate)), tracing::Span::none());
    let submit = Submit { ids: vec![0; prompt], task, sink, ticket, traced: false, trace };
    simulation.send_at(Nanos(0), SchedulerMessage::Submit(Box::new(submit)));
    let mut tokens: Vec<Nanos> = Vec::new();
    while simulation.step() {
        for event in stream.try_iter() {
            match event.message {
                StreamEvent::Token(_) => tokens.push(simulation.now()),
                StreamEvent::Failed(error) => return Err(wrong(error.to_string())),
                StreamEvent::Scores(_) | StreamEvent::Finished(_) => {}
            }
        }
    }
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => Ok(MachineRun {
            prefill: Duration::from_nanos(first.0),
            makespan: Duration::from_nanos(last.0),
        }),
        _ => Err(wrong(format!("'{strategy}' came to no token"))),
    }
}

fn start(machine: &Machine, request: &MachineRequest<'_>) -> Result<Simulation, SimulateError> {
    let wrong = |reason: String| SimulateError::Model { reason };
    let MachineRequest { model, strategy, prompt, decode } = *request;
    let file = WeightFile::open(model).map_err(|error| wrong(error.to_string()))?;
    let model = Model::from_weights(&file).map_err(|error| wrong(error.to_string()))?;
    let layout = model.config.kv_layout();
    let graph = Arc::new(model.graph);
    let specs = machine.specs()?;
    let times = specs.iter().map(|spec| build::held(spec, &graph));
    let times = times.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.to_string()))?;
    let infos: Vec<DeviceInfo> = specs.iter().map(build::info).collect();
    let copy_rate = machine.copy.value * 1e9;
    let cost = Modelled {
        devices: times.clone(),
        sync: Duration::from_nanos((machine.hand_over.value * 1e3).round() as u64),
        copy_rate,
    };
    let permits = if specs.len() > 1 { PERMITS.1 } else { PERMITS.0 };
    let options = StrategyOptions { in_flight: permits, ..StrategyOptions::default() };
    let strategy = by_name(strategy, &options).ok_or_else(|| SimulateError::Run {
        reason: format!("there is no strategy '{strategy}'"),
    })?;
    let context = prompt + decode + 2;
    let planner = Planner::new(PlannerParts {
        graph: Arc::clone(&graph),
        devices: infos.clone(),
        cost: Arc::new(cost),
        strategy,
        chunk_rows: CHUNK_ROWS,
    });
    let pages = u32::try_from(layout.pages_for(context)).unwrap_or(u32::MAX);
    let scheduler = Scheduler::new(SchedulerParts {
        config: SchedulerConfig {
            context,
            sequences_max: 1,
            permits,
            vocab: graph.value(graph.output()).width,
        },
        planner,
        kv: KvPages { pool: KvPool::new(pages), layout },
        policy: Box::new(Fcfs),
    })
    .map_err(|error| SimulateError::Run { reason: error.to_string() })?;
    let device =
        |(info, time)| SimulatedDevice { device: Box::new(Shapes::new(info, &graph, None)), time };
    let devices = infos.iter().zip(times).map(device).collect();
    let parts = SimulationParts {
        scheduler,
        devices,
        graph: Arc::clone(&graph),
        slots: SlotPool::default(),
        copy_rate,
    };
    let around = Surroundings { shapes_only: true, ..Surroundings::default() };
    Ok(Simulation::with_surroundings(parts, around))
}
