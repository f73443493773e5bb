//! Two models in one engine: requests of both run concurrently on the same devices, each with its
//! model's planner, KV cache and limits.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::message::{SchedulerMessage, StreamEvent, Submit, Traced};
use lapwing_actors::policy::{ClientId, Fcfs};
use lapwing_actors::scheduler::{
    KvPages, Scheduler, SchedulerConfig, SchedulerModel, SchedulerParts,
};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::device::{Blocking, DeviceInfo, DeviceKind, ModelId, PerModel, SlotPool};
use lapwing_kernels::kv::KvPool;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::LayerSplit;
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::event::Activity;
use lapwing_traces::{Nanos, Scope, Timeline};

use crate::oracle::{Memory, Oracle, VOCAB, foretell, graph, layout};
use crate::support::{generate, prompt};

const LAYERS: [usize; 2] = [4, 1];
const PAGES: u32 = 64;

struct Engine {
    sim: Simulation,
    pools: [KvPool; 2],
    admission: AdmissionLimit,
}

fn engine(context_of_draft: usize) -> Engine {
    let graphs = LAYERS.map(|layers| Arc::new(graph(layers)));
    let infos = [0, 1].map(|d| DeviceInfo::new(format!("oracle-{d}"), DeviceKind::Cpu));
    let rate =
        FixedRate { per_stage: Duration::from_micros(70), per_row: Duration::from_micros(9) };
    let times = || vec![Arc::new(rate) as Arc<dyn TimeModel>; 2];
    let pools = [KvPool::new(PAGES), KvPool::new(PAGES)];
    let planner = |model: usize| {
        Planner::new(PlannerParts {
            model: ModelId(model),
            graph: Arc::clone(&graphs[model]),
            devices: infos.to_vec(),
            cost: Arc::new(Modelled { devices: times(), sync: Duration::ZERO, copy_rate: 1e9 }),
            strategy: Arc::new(LayerSplit),
            chunk_rows: 8,
        })
    };
    let kv = |model: usize| KvPages { pool: pools[model].clone(), layout: layout() };
    let mut scheduler = Scheduler::new(SchedulerParts {
        config: SchedulerConfig { context: 128, sequences_max: 8, permits: 4, vocab: VOCAB },
        planner: planner(0),
        kv: kv(0),
        policy: Box::new(Fcfs),
    })
    .expect("routes");
    let draft =
        SchedulerModel { planner: planner(1), kv: kv(1), context: context_of_draft, vocab: VOCAB };
    assert_eq!(scheduler.add_model(draft), Ok(ModelId(1)));
    let memories = [Memory::default(), Memory::default()];
    let device = |info: &DeviceInfo| {
        let oracle = |model: usize| {
            Oracle::new(info.clone(), &graphs[model], &memories[model], Arc::new(|_| None))
        };
        let both = PerModel::new(oracle(0), [oracle(1)]);
        let device = Box::new(Blocking::new(info.clone(), both));
        SimulatedDevice { device, time: Arc::new(rate) }
    };
    let sim = Simulation::new(SimulationParts {
        scheduler,
        devices: infos.iter().map(device).collect(),
        graphs: graphs.to_vec(),
        slots: SlotPool::default(),
        copy_rate: f64::INFINITY,
    });
    Engine { sim, pools, admission: AdmissionLimit::new(64) }
}

impl Engine {
    fn submit(&mut self, model: usize, at: u64, ids: &[u32], tokens: usize) -> Events {
        let (sink, receiver) = ChannelSink::new(100);
        let submit = Submit {
            model: ModelId(model),
            ids: ids.to_vec(),
            task: generate(ids, tokens),
            client: ClientId::anonymous(),
            sink,
            admission: self.admission.try_take().expect("a permit"),
            trace: tracing::Span::none(),
        };
        self.sim.send_at(Nanos(at), SchedulerMessage::Submit(Box::new(submit)));
        Events(receiver)
    }

    fn assert_empty(&self) {
        for pool in &self.pools {
            assert_eq!(pool.free_pages(), pool.capacity(), "pages leaked");
        }
        let scheduler = self.sim.scheduler();
        assert_eq!((scheduler.sequences(), scheduler.chunks_in_flight()), (0, 0));
        assert_eq!(self.admission.in_use(), 0, "admission permits leaked");
    }
}

struct Events(flume::Receiver<Traced<StreamEvent>>);

impl Events {
    fn tokens(&self) -> Vec<u32> {
        let token = |event: Traced<StreamEvent>| match event.message {
            StreamEvent::Token(token) => Some(token.id),
            StreamEvent::Failed(error) => panic!("{error}"),
            _ => None,
        };
        self.0.try_iter().filter_map(token).collect()
    }

    fn error(&self) -> Option<RunError> {
        self.0.try_iter().find_map(|event| match event.message {
            StreamEvent::Failed(error) => Some(error),
            _ => None,
        })
    }
}

#[test]
fn requests_of_both_models_run_side_by_side_with_the_tokens_of_their_model() {
    let mut engine = engine(128);
    engine.sim.recorder().set_scope(Scope::All);
    let requests: Vec<(Vec<u32>, usize, Events)> = (0..8)
        .map(|number| {
            let (model, ids) = (number % 2, prompt(number as u32, 5 + 7 * number));
            let events = engine.submit(model, 40_000 * number as u64, &ids, 12);
            (ids, 12, events)
        })
        .collect();
    engine.sim.run();
    for (ids, tokens, events) in &requests {
        assert_eq!(events.tokens(), foretell(ids, *tokens).0);
    }
    engine.assert_empty();
    // Requests alternate between the models, and stages of both ran at the same time.
    let timeline = Timeline::new(&engine.sim.recorder().recording());
    let stages = || {
        let stages = timeline.spans.iter().filter(|s| s.activity == Activity::Compute);
        stages.filter_map(|s| Some((s.tags.request? % 2, s.start, s.end)))
    };
    let overlap = stages().any(|(model, start, end)| {
        stages().any(|other| other.0 != model && other.1 < end && start < other.2)
    });
    assert!(overlap, "the models took turns");
}

#[test]
fn each_model_has_its_own_limits() {
    let mut engine = engine(16);
    let ids = prompt(3, 20);
    let (target, draft) = (engine.submit(0, 0, &ids, 4), engine.submit(1, 0, &ids, 4));
    let unknown = engine.submit(2, 0, &ids, 4);
    engine.sim.run();
    assert_eq!(target.tokens(), foretell(&ids, 4).0);
    assert_eq!(draft.error(), Some(RunError::PromptTooLong { tokens: 20, context: 16 }));
    assert_eq!(unknown.error(), Some(RunError::UnknownModel { model: 2, models: 2 }));
    engine.assert_empty();
}
