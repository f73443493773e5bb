//! Drafts by a second model of the engine: no draft changes a token, whatever the interleaving, and
//! nothing leaks.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::draft::{DraftStats, Drafts, Schedule};
use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::message::{SchedulerMessage, StreamEvent, Submit, Task, Traced};
use lapwing_actors::policy::{ClientId, Fcfs};
use lapwing_actors::scheduler::{
    KvPages, Scheduler, SchedulerConfig, SchedulerModel, SchedulerParts,
};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::device::{
    Blocking, DeviceError, DeviceInfo, DeviceKind, ModelId, PerModel, SlotPool,
};
use lapwing_kernels::kv::KvPool;
use lapwing_plan::cost::Modelled;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{CpuOnly, GpuOnly, LayerSplit, Strategy};
use lapwing_plan::time::{FixedRate, TimeModel};
use lapwing_traces::Nanos;

use crate::cases::cases;
use crate::oracle::{Fault, Memory, Oracle, VOCAB, foretell, graph, layout};
use crate::random_schedules::Dice;
use crate::support::{generate, prompt};

/// What an engine with a draft model consists of.
struct Setup {
    /// Strategy of each model.
    strategies: [Arc<dyn Strategy>; 2],
    permits: usize,
    sequences_max: usize,
    chunk_rows: usize,
    /// Pages of each model.
    pages: [u32; 2],
    /// One of so many drafted tokens is wrong.
    wrong: u64,
    /// Of each model's devices.
    faults: [Fault; 2],
    /// Time of a stage and of a row, of each device.
    rates: [(u64, u64); 2],
    context_of_draft: usize,
}

impl Default for Setup {
    fn default() -> Setup {
        let none: Fault = Arc::new(|_| None);
        Setup {
            strategies: [Arc::new(GpuOnly), Arc::new(CpuOnly)],
            permits: 4,
            sequences_max: 8,
            chunk_rows: 16,
            pages: [64, 64],
            wrong: 5,
            faults: [Arc::clone(&none), none],
            rates: [(20, 2), (90, 3)],
            context_of_draft: 128,
        }
    }
}

struct Engine {
    sim: Simulation,
    pools: [KvPool; 2],
    admission: AdmissionLimit,
}

impl Engine {
    fn new(setup: &Setup) -> Engine {
        let graphs = [3, 1].map(|layers| Arc::new(graph(layers)));
        let kinds = [("cpu", DeviceKind::Cpu), ("gpu", DeviceKind::Gpu)];
        let infos = kinds.map(|(name, kind)| DeviceInfo::new(name, kind));
        let micros = Duration::from_micros;
        let rates = setup
            .rates
            .map(|(stage, row)| FixedRate { per_stage: micros(stage), per_row: micros(row) });
        let times = || rates.iter().map(|rate| Arc::new(*rate) as Arc<dyn TimeModel>).collect();
        let pools = setup.pages.map(KvPool::new);
        let planner = |model: usize| {
            Planner::new(PlannerParts {
                model: ModelId(model),
                graph: Arc::clone(&graphs[model]),
                devices: infos.to_vec(),
                cost: Arc::new(Modelled { devices: times(), sync: Duration::ZERO, copy_rate: 1e9 }),
                strategy: Arc::clone(&setup.strategies[model]),
                chunk_rows: setup.chunk_rows,
            })
        };
        let kv = |model: usize| KvPages { pool: pools[model].clone(), layout: layout() };
        let (sequences_max, permits) = (setup.sequences_max, setup.permits);
        let mut scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig { context: 128, sequences_max, permits, vocab: VOCAB },
            planner: planner(0),
            kv: kv(0),
            policy: Box::new(Fcfs),
        })
        .expect("routes");
        let context = setup.context_of_draft;
        let draft = SchedulerModel { planner: planner(1), kv: kv(1), context, vocab: VOCAB };
        assert_eq!(scheduler.add_model(draft), Ok(ModelId(1)));
        let memories = [Memory::default(), Memory::default()];
        let device = |(info, rate): (&DeviceInfo, &FixedRate)| {
            let oracle = |model: usize| {
                let fault = Arc::clone(&setup.faults[model]);
                Oracle::new(info.clone(), &graphs[model], &memories[model], fault)
            };
            let both = PerModel::new(oracle(0), [oracle(1).wrong_one_of(setup.wrong)]);
            let device = Box::new(Blocking::new(info.clone(), both));
            SimulatedDevice { device, time: Arc::new(*rate) }
        };
        let sim = Simulation::new(SimulationParts {
            scheduler,
            devices: infos.iter().zip(&rates).map(device).collect(),
            graphs: graphs.to_vec(),
            slots: SlotPool::default(),
            copy_rate: f64::INFINITY,
        });
        Engine { sim, pools, admission: AdmissionLimit::new(64) }
    }

    fn submit(
        &mut self,
        at: Nanos,
        ids: Vec<u32>,
        tokens: usize,
        drafts: Option<Drafts>,
    ) -> Request {
        let (sink, receiver) = ChannelSink::new(tokens + 2);
        let Task::Generate(mut generate) = generate(&ids, tokens) else { unreachable!() };
        generate.drafts = drafts.map(Box::new);
        let submit = Submit {
            model: ModelId(0),
            ids: ids.clone(),
            task: Task::Generate(generate),
            client: ClientId::anonymous(),
            sink,
            admission: self.admission.try_take().expect("a permit"),
            trace: tracing::Span::none(),
        };
        self.sim.send_at(at, SchedulerMessage::Submit(Box::new(submit)));
        Request {
            ids,
            tokens,
            receiver: Some(receiver),
            cancel_at: None,
            found: Vec::new(),
            end: None,
        }
    }

    fn assert_empty(&self, what: &str) {
        for (pool, of) in self.pools.iter().zip(["target", "draft model"]) {
            assert_eq!(pool.free_pages(), pool.capacity(), "{what}: pages of the {of} leaked");
        }
        let scheduler = self.sim.scheduler();
        assert_eq!((scheduler.sequences(), scheduler.chunks_in_flight()), (0, 0), "{what}");
        assert_eq!(self.admission.in_use(), 0, "{what}: admission permits leaked");
        assert_eq!(self.sim.left(), 0, "{what}: a run never completed");
    }

    /// Runs to the end.
    fn play(&mut self, requests: &mut [Request], what: &str) {
        for step in 0.. {
            assert!(step < 1_000_000, "{what}: it goes on for ever");
            let now = self.sim.now();
            for request in requests.iter_mut() {
                request.drain();
                if request.cancel_at.is_some_and(|at| at <= now) {
                    request.receiver = None;
                }
            }
            if !self.sim.step() {
                break;
            }
        }
        self.sim.send_at(self.sim.now(), SchedulerMessage::Wake);
        self.sim.run();
        requests.iter_mut().for_each(Request::drain);
        self.assert_empty(what);
    }
}

struct Request {
    ids: Vec<u32>,
    tokens: usize,
    receiver: Option<flume::Receiver<Traced<StreamEvent>>>,
    cancel_at: Option<Nanos>,
    found: Vec<u32>,
    end: Option<Result<Option<DraftStats>, RunError>>,
}

impl Request {
    fn drain(&mut self) {
        for event in self.receiver.iter().flat_map(|receiver| receiver.try_iter()) {
            assert!(self.end.is_none(), "an event after the end");
            match event.message {
                StreamEvent::Token(token) => self.found.push(token.id),
                StreamEvent::Finished(finished) => self.end = Some(Ok(finished.drafts)),
                StreamEvent::Failed(error) => self.end = Some(Err(error)),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Its tokens are the expected ones, or a prefix of them if it was cancelled or lost its device.
    fn check(&self, what: &str) {
        let expected = foretell(&self.ids, self.tokens).0;
        match &self.end {
            Some(Ok(_)) => assert_eq!(self.found, expected, "{what}"),
            Some(Err(RunError::Device { reason, .. })) => {
                assert!(reason.contains("target planted"), "{what}: {reason}");
            }
            Some(Err(error)) => panic!("{what}: {error}"),
            None => assert!(self.cancel_at.is_some(), "{what}: a stream never ended"),
        }
        assert!(expected.starts_with(&self.found), "{what}: wrong tokens");
    }

    fn stats(&self) -> &DraftStats {
        match &self.end {
            Some(Ok(Some(stats))) => stats,
            other => panic!("no drafts: {other:?}"),
        }
    }
}

fn drafts(schedule: Schedule) -> Drafts {
    Drafts::of_model(ModelId(1), schedule).always(15)
}

/// The strategies of target and draft model: on one device each, both on one, or both on both.
fn placements() -> [(&'static str, [Arc<dyn Strategy>; 2]); 3] {
    [
        ("a device each", [Arc::new(GpuOnly), Arc::new(CpuOnly)]),
        ("the same device", [Arc::new(CpuOnly), Arc::new(CpuOnly)]),
        ("both on both devices", [Arc::new(LayerSplit), Arc::new(LayerSplit)]),
    ]
}

#[test]
fn every_schedule_and_placement_gives_the_tokens_of_the_target() {
    for (name, strategies) in placements() {
        for schedule in Schedule::ALL {
            let what = format!("{name}, {}", schedule.name());
            let setup = Setup { strategies: strategies.clone(), ..Setup::default() };
            let mut engine = Engine::new(&setup);
            let mut requests: Vec<Request> = (0..6)
                .map(|i| {
                    let ids = prompt(i, 1 + 9 * i as usize);
                    let drafts = (i != 3).then(|| drafts(schedule));
                    engine.submit(Nanos(u64::from(i) * 50_000), ids, 40, drafts)
                })
                .collect();
            engine.play(&mut requests, &what);
            for (i, request) in requests.iter().enumerate().filter(|(i, _)| *i != 3) {
                request.check(&what);
                let stats = request.stats();
                let generated = request.found.len();
                assert!(stats.accepted + stats.steps < generated.max(1), "{what}: {stats:?}");
                // Text that ends at once has no draft.
                let long = generated > 20;
                assert!(!long || stats.accepted * 5 > generated * 2, "{what} {i}: {stats:?}");
            }
        }
    }
}

#[test]
fn a_right_draft_model_is_always_accepted() {
    for schedule in Schedule::ALL {
        let setup = Setup { wrong: u64::MAX, ..Setup::default() };
        let mut engine = Engine::new(&setup);
        let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 64).0.len() == 64);
        let drafts = Some(drafts(schedule));
        let mut requests = [engine.submit(Nanos(0), ids.expect("a long text"), 64, drafts)];
        engine.play(&mut requests, schedule.name());
        requests[0].check(schedule.name());
        let stats = requests[0].stats();
        assert_eq!(stats.accepted, stats.drafted, "{stats:?}");
        let fewest = 63usize.div_ceil(16);
        assert!(schedule != Schedule::Synchronous || stats.steps <= fewest + 2, "{stats:?}");
    }
}

/// With a device each, drafting goes on while the target verifies, so that the same work takes less time.
#[test]
fn asynchronous_drafts_are_faster_on_two_devices() {
    let time = |schedule| {
        let setup = Setup { wrong: u64::MAX, rates: [(40, 1), (90, 1)], ..Setup::default() };
        let mut engine = Engine::new(&setup);
        let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 100).0.len() == 100);
        let drafts = Some(drafts(schedule));
        let mut requests = [engine.submit(Nanos(0), ids.expect("a long text"), 100, drafts)];
        engine.play(&mut requests, "two devices");
        requests[0].check("two devices");
        engine.sim.now().0
    };
    let [sync, parallel] = Schedule::ALL.map(time);
    assert!(parallel < sync, "{parallel} ns with overlap, {sync} ns without");
}

#[test]
fn a_draft_model_that_fails_ends_the_drafts_and_not_the_request() {
    let planted = |reason: &str| -> Fault {
        let reason = reason.to_owned();
        Arc::new(move |n| {
            let device = "oracle".to_owned();
            (n == 7).then(|| DeviceError::Failed { device, reason: reason.clone() })
        })
    };
    let none: Fault = Arc::new(|_| None);
    let rows = [
        (
            "a failing device",
            Setup { faults: [none, planted("draft planted")], ..Setup::default() },
        ),
        ("no pages", Setup { pages: [64, 7], ..Setup::default() }),
        ("a short context", Setup { context_of_draft: 26, ..Setup::default() }),
        ("a prompt beyond its context", Setup { context_of_draft: 8, ..Setup::default() }),
    ];
    for (name, setup) in rows {
        for schedule in Schedule::ALL {
            let mut engine = Engine::new(&setup);
            let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 40).0.len() == 40);
            let drafts = Some(drafts(schedule));
            let mut requests = [engine.submit(Nanos(0), ids.expect("a long text"), 40, drafts)];
            engine.play(&mut requests, name);
            requests[0].check(name);
            assert!(requests[0].end.is_some(), "{name}");
        }
    }
}

/// A random engine and random requests, some of which are cancelled.
fn random(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut below = |limit: u64| dice.below(limit);
    let [.., (_, strategies)] = placements();
    let (_, strategies) =
        placements().into_iter().nth(below(3) as usize).unwrap_or(("", strategies));
    let mut setup = Setup {
        strategies,
        permits: 1 + below(4) as usize,
        sequences_max: 1 + below(6) as usize,
        chunk_rows: 1 + below(40) as usize,
        pages: [23 + below(60) as u32, 5 + below(80) as u32],
        wrong: 1 + below(12),
        rates: [0; 2].map(|_| (1 + below(120), 1 + below(9))),
        context_of_draft: 30 + below(98) as usize,
        ..Setup::default()
    };
    for (model, what) in ["target planted", "draft planted"].into_iter().enumerate() {
        if below(5) == 0 {
            let period = 5 + below(60) as usize;
            setup.faults[model] = Arc::new(move |n| {
                let (device, reason) = ("oracle".to_owned(), what.to_owned());
                n.is_multiple_of(period).then_some(DeviceError::Failed { device, reason })
            });
        }
    }
    let mut engine = Engine::new(&setup);
    let mut requests: Vec<Request> = (0..1 + below(8))
        .map(|i| {
            let ids = prompt(seed as u32 + i as u32, 1 + below(60) as usize);
            let schedule = Schedule::ALL[below(2) as usize];
            let drafts = match below(4) {
                0 => None,
                1 => Some(Drafts::of_model(ModelId(1), schedule)),
                _ => Some(drafts(schedule)),
            };
            let at = Nanos(below(4_000_000));
            let mut request = engine.submit(at, ids, below(30) as usize, drafts);
            if below(3) == 0 {
                let cancel_at = Nanos(at.0 + below(6_000_000));
                request.cancel_at = Some(cancel_at);
                engine.sim.send_at(cancel_at, SchedulerMessage::Wake);
            }
            request
        })
        .collect();
    let what = format!("seed {seed}");
    engine.play(&mut requests, &what);
    requests.iter().for_each(|request| request.check(&what));
}

#[test]
fn random_schedules_with_a_draft_model_change_no_token_and_leak_nothing() {
    (0..cases(1000, 10_000)).for_each(random);
}
