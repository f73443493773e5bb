//! Predicted makespans compared with those of the runtime in virtual time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::message::{
    Generate, SchedulerMessage, StreamEvent, Submit, Task, TraceContext, Traced,
};
use lapwing_actors::policy::{ClientId, Fcfs, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::device::{Blocking, DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvPool;
use lapwing_plan::array::{Preparation, SystolicArray};
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::predict::{Workload, plan, predict, predict_cold};
use lapwing_plan::rate::{ArrayModel, ArrayRate, RateModel, Rates};
use lapwing_plan::strategy::{PlanInput, Strategy, StrategyOptions, by_name, registry};
use lapwing_plan::time::TimeModel;
use lapwing_traces::{Nanos, Scope, Timeline};

use crate::blank::Blank;
use crate::plan_support::{devices, graph};
use crate::support::layout;

const CHUNK_ROWS: usize = 64;
const IN_FLIGHT: usize = 2;
const COPY_RATE: f64 = 2e9;

fn models(
    infos: &[DeviceInfo],
    graph: &Arc<Graph>,
    preparation: Preparation,
) -> Vec<Arc<dyn TimeModel>> {
    let rate = |gflops: f64, submit_us: u64, sync_us: u64| Rates {
        gflops,
        gbps: gflops / 2.0,
        submit_queued: Duration::from_micros(submit_us / 4),
        submit_idle: Duration::from_micros(submit_us),
        sync: Duration::from_micros(sync_us),
    };
    let model = |info: &DeviceInfo| -> Arc<dyn TimeModel> {
        let graph = Arc::clone(graph);
        match info.kind {
            DeviceKind::Cpu => Arc::new(RateModel::new(graph, rate(0.5, 0, 0)).expect("a rate")),
            DeviceKind::Gpu | DeviceKind::Own(_) => {
                Arc::new(RateModel::new(graph, rate(1.0, 40, 15)).expect("a rate"))
            }
            DeviceKind::Npu => {
                let rates = ArrayRate {
                    array: SystolicArray { flops: 8e9, ..SystolicArray::default() },
                    rate: rate(4.0, 20, 15),
                    preparation,
                };
                Arc::new(ArrayModel::new(graph, rates).expect("a rate"))
            }
        }
    };
    infos.iter().map(model).collect()
}

pub(crate) struct Engine {
    graph: Arc<Graph>,
    infos: Vec<DeviceInfo>,
    cost: Modelled,
}

impl Engine {
    pub(crate) fn new(names: &str, preparation: Preparation) -> Engine {
        let (graph, infos) = (graph("llama"), devices(names));
        let devices = models(&infos, &graph, preparation);
        Engine {
            graph,
            infos,
            cost: Modelled { devices, sync: Duration::ZERO, copy_rate: COPY_RATE },
        }
    }

    pub(crate) fn input(&self) -> PlanInput<'_> {
        let Engine { graph, infos, cost } = self;
        PlanInput { model: Default::default(), graph, devices: infos, cost, chunk_rows: CHUNK_ROWS }
    }

    /// Time from the admission of a prompt to its first token.
    fn simulated(&self, strategy: Arc<dyn Strategy>, rows: usize) -> Duration {
        self.recorded(strategy, rows, Scope::Off).0
    }

    /// As [`simulated`](Engine::simulated), with what is recorded of it.
    pub(crate) fn recorded(
        &self,
        strategy: Arc<dyn Strategy>,
        rows: usize,
        scope: Scope,
    ) -> (Duration, Timeline) {
        let Engine { graph, infos, cost } = self;
        let planner = Planner::new(PlannerParts {
            model: ModelId::default(),
            graph: Arc::clone(graph),
            devices: infos.clone(),
            cost: Arc::new(cost.clone()),
            strategy,
            chunk_rows: CHUNK_ROWS,
        });
        let vocab = graph.value(graph.output()).width;
        let config = SchedulerConfig { context: 1024, sequences_max: 1, permits: IN_FLIGHT, vocab };
        let kv = KvPages { pool: KvPool::new(1024), states: KvPool::new(0), layout: layout() };
        let parts = SchedulerParts { config, planner, kv, policy: Box::new(Fcfs) };
        let scheduler = Scheduler::new(parts).expect("a route");
        let device = |(info, time): (&DeviceInfo, &Arc<dyn TimeModel>)| SimulatedDevice {
            device: Box::new(Blocking::new(
                info.clone(),
                Blank::new(&info.name, graph, info.kind == DeviceKind::Npu),
            )),
            time: Arc::clone(time),
        };
        let mut sim = Simulation::new(SimulationParts {
            scheduler,
            devices: infos.iter().zip(&cost.devices).map(device).collect(),
            graphs: vec![Arc::clone(graph)],
            slots: SlotPool::default(),
            copy_rate: COPY_RATE,
        });
        sim.recorder().set_scope(scope);
        let ids = vec![1; rows];
        let generate = Generate {
            sampler: Sampler::new(SamplingParams::greedy(), &ids),
            stop_ids: [].into(),
            tokens_max: 1,
            drafts: None,
        };
        let (sink, events) = ChannelSink::new(8);
        let admission = AdmissionLimit::new(1).try_take().expect("a permit");
        let task = Task::Generate(Box::new(generate));
        let trace = tracing::Span::none();
        let submit = Submit {
            model: ModelId::default(),
            client: ClientId::anonymous(),
            urgency: Urgency::default(),
            prefix: PrefixUse::default(),
            ids,
            task,
            sink,
            admission,
            trace,
        };
        let submit = SchedulerMessage::Submit(Box::new(submit));
        let context = TraceContext::of_request(scope == Scope::Marked);
        sim.send_at(Nanos(0), Traced::new(submit, context));
        let is_end = |event| matches!(event, StreamEvent::Finished(_));
        while !events.try_iter().any(|event| is_end(event.message)) {
            assert!(sim.step(), "the engine stands still");
        }
        // Afterwards it may prepare graphs for other requests.
        let end = sim.now();
        sim.run();
        assert_eq!(
            sim.scheduler().sequences(),
            0,
            "{} chunks in flight at {end:?}",
            sim.scheduler().chunks_in_flight()
        );
        (Duration::from_nanos(end.0), Timeline::new(&sim.recorder().recording()))
    }

    fn predicted(&self, strategy: &dyn Strategy, rows: usize, cold: bool) -> Duration {
        let input = self.input();
        let work = Workload { prompt: rows, context: 0, in_flight: IN_FLIGHT };
        let chunks = plan(strategy, &input, work).expect("routes");
        match cold {
            true => predict_cold(&input, &HashSet::new(), &chunks, IN_FLIGHT).makespan,
            false => predict(&input, &chunks, IN_FLIGHT).makespan,
        }
    }
}

/// A strategy that chooses routes by the moment may take less, or a little more: each chunk ends as early as it can.
#[test]
fn every_strategy_takes_the_predicted_time() {
    let options = StrategyOptions::default();
    for names in ["cpu", "cpu npu", "cpu gpu npu", "gpu cpu"] {
        let engine = Engine::new(names, Preparation::FREE);
        let mut compared = 0;
        for known in registry() {
            let strategy = || by_name(known.name(), &options).expect("is known");
            let shape = crate::plan_support::prefill(32);
            if strategy().route(&engine.input(), &shape).is_err() {
                continue;
            }
            for rows in [1, 31, 64, 135, 300] {
                let strategy = strategy();
                let simulated = engine.simulated(Arc::clone(&strategy), rows);
                let predicted = engine.predicted(&*strategy, rows, false);
                let error = predicted.as_secs_f64() / simulated.as_secs_f64() - 1.0;
                let range = if known.name() == "auto" { -0.03..0.5 } else { -0.02..0.02 };
                assert!(
                    range.contains(&error),
                    "{} on {names}, {rows} rows: predicted {predicted:?}, took {simulated:?}",
                    known.name()
                );
                compared += 1;
            }
        }
        assert!(compared >= 10, "{names}");
    }
}

#[test]
fn graphs_that_are_missing_delay_every_strategy_as_predicted() {
    let options = StrategyOptions::default();
    let preparation = Preparation { fixed: Duration::from_micros(300), per_row_weight: 1e-10 };
    for names in ["cpu npu", "cpu gpu npu"] {
        let engine = Engine::new(names, preparation);
        let mut delayed = 0;
        for known in registry().iter().filter(|known| known.name() != "auto") {
            let strategy = || by_name(known.name(), &options).expect("is known");
            let shape = crate::plan_support::prefill(32);
            if strategy().route(&engine.input(), &shape).is_err() {
                continue;
            }
            for rows in [31, 135, 300] {
                let simulated = engine.simulated(strategy(), rows);
                let predicted = engine.predicted(&*strategy(), rows, true);
                let error = predicted.as_secs_f64() / simulated.as_secs_f64() - 1.0;
                let most = if known.name() == "auto" { 0.5 } else { 0.02 };
                assert!(
                    error > -0.02 && error < most,
                    "{} on {names}, {rows} rows: predicted {predicted:?}, took {simulated:?}",
                    known.name()
                );
                let warm = engine.predicted(&*strategy(), rows, false);
                delayed += usize::from(predicted > warm);
            }
        }
        assert!(delayed >= 3, "{names}: {delayed}");
    }
}

#[test]
fn the_decider_is_as_fast_as_the_fastest_strategy() {
    let options = StrategyOptions::default();
    let engine = Engine::new("cpu gpu npu", Preparation::FREE);
    for rows in [1, 31, 64, 135, 300] {
        let time = |name: &str| engine.simulated(by_name(name, &options).expect("is known"), rows);
        let shape = crate::plan_support::prefill(rows.min(CHUNK_ROWS));
        let others = registry().iter().filter(|k| k.name() != "auto").filter(|k| {
            let strategy = by_name(k.name(), &options).expect("is known");
            strategy.route(&engine.input(), &shape).is_ok()
        });
        let (best, name) = others.map(|k| (time(k.name()), k.name())).min().expect("a strategy");
        let auto = time("auto");
        assert!(
            auto.as_secs_f64() <= best.as_secs_f64() * 1.05,
            "{rows} rows: auto {auto:?}, {name} {best:?}"
        );
    }
}
