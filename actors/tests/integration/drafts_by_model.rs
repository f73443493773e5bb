//! Drafts by a second model of the engine: no draft changes a token, whatever the interleaving, and
//! nothing leaks.

use std::sync::Arc;

use lapwing_actors::RunError;
use lapwing_actors::draft::{DraftStats, Drafts, Schedule};
use lapwing_actors::message::{SchedulerMessage, StreamEvent, Task, Traced};
use lapwing_kernels::device::{DeviceError, ModelId};
use lapwing_plan::DeviceId;
use lapwing_plan::strategy::{CpuOnly, GpuOnly, LayersOn, Strategy};
use lapwing_traces::{Nanos, Scope};

use crate::cases::cases;
use crate::oracle::{Fault, foretell};
use crate::random_schedules::Dice;
use crate::support::{generate, prompt};
use crate::two_models::{Engine, Setup};

/// Sends a request to the target.
pub(crate) fn submit(
    engine: &mut Engine,
    at: Nanos,
    ids: Vec<u32>,
    tokens: usize,
    drafts: Option<Drafts>,
) -> Request {
    let Task::Generate(mut generate) = generate(&ids, tokens) else { unreachable!() };
    generate.drafts = drafts.map(Box::new);
    let receiver = Some(engine.send(0, at, &ids, Task::Generate(generate)));
    Request { ids, tokens, receiver, cancel_at: None, found: Vec::new(), end: None }
}

/// Runs to the end.
pub(crate) fn play(engine: &mut Engine, requests: &mut [Request], what: &str) {
    for step in 0.. {
        assert!(step < 1_000_000, "{what}: it goes on for ever");
        let now = engine.sim.now();
        for request in requests.iter_mut() {
            request.drain();
            if request.cancel_at.is_some_and(|at| at <= now) {
                request.receiver = None;
            }
        }
        if !engine.sim.step() {
            break;
        }
    }
    engine.sim.send_at(engine.sim.now(), SchedulerMessage::Wake);
    engine.sim.run();
    requests.iter_mut().for_each(Request::drain);
    engine.assert_empty(what);
}

pub(crate) struct Request {
    ids: Vec<u32>,
    tokens: usize,
    receiver: Option<flume::Receiver<Traced<StreamEvent>>>,
    cancel_at: Option<Nanos>,
    pub(crate) found: Vec<u32>,
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
    pub(crate) fn check(&self, what: &str) {
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

    pub(crate) fn stats(&self) -> &DraftStats {
        match &self.end {
            Some(Ok(Some(stats))) => stats,
            other => panic!("no drafts: {other:?}"),
        }
    }
}

pub(crate) fn drafts(schedule: Schedule) -> Drafts {
    Drafts::of_model(ModelId(1), schedule).always(15)
}

/// The strategies of target and draft model.
pub(crate) fn placements() -> [(&'static str, [Arc<dyn Strategy>; 2]); 5] {
    let on = |devices: &[usize]| -> Arc<dyn Strategy> {
        Arc::new(LayersOn { devices: devices.iter().copied().map(DeviceId).collect() })
    };
    [
        ("a device each", [Arc::new(GpuOnly), Arc::new(CpuOnly)]),
        ("the same device", [Arc::new(CpuOnly), Arc::new(CpuOnly)]),
        ("the target on four devices", [on(&[0, 1, 3, 4]), on(&[2])]),
        ("both on both devices", [on(&[0, 1]), on(&[0, 1])]),
        ("the target on two devices, the draft model on a third", [on(&[0, 1]), on(&[2])]),
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
                    submit(&mut engine, Nanos(u64::from(i) * 50_000), ids, 40, drafts)
                })
                .collect();
            play(&mut engine, &mut requests, &what);
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
        let setup = Setup { wrong: None, ..Setup::default() };
        let mut engine = Engine::new(&setup);
        let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 64).0.len() == 64);
        let drafts = Some(drafts(schedule));
        let mut requests = [submit(&mut engine, Nanos(0), ids.expect("a long text"), 64, drafts)];
        play(&mut engine, &mut requests, schedule.name());
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
        let setup = Setup { wrong: None, rates: [(40, 1), (90, 1), (1, 1)], ..Setup::default() };
        let mut engine = Engine::new(&setup);
        let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 100).0.len() == 100);
        let drafts = Some(drafts(schedule));
        let mut requests = [submit(&mut engine, Nanos(0), ids.expect("a long text"), 100, drafts)];
        play(&mut engine, &mut requests, "two devices");
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
    let room = "the draft model has no room for the text";
    let rows = [
        (
            "a failing device",
            Setup { faults: [none, planted("draft planted")], ..Setup::default() },
            "draft planted",
        ),
        ("no pages", Setup { pages: [64, 7], ..Setup::default() }, room),
        ("a short context", Setup { context_of_draft: 26, ..Setup::default() }, room),
        ("a prompt beyond its context", Setup { context_of_draft: 8, ..Setup::default() }, room),
        (
            "a smaller vocabulary",
            Setup { vocab_of_draft: 60, ..Setup::default() },
            "the draft model lacks a token of the text",
        ),
    ];
    for (name, setup, reason) in rows {
        for schedule in Schedule::ALL {
            let mut engine = Engine::new(&setup);
            let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 40).0.len() == 40);
            let drafts = Some(drafts(schedule));
            let mut requests =
                [submit(&mut engine, Nanos(0), ids.expect("a long text"), 40, drafts)];
            play(&mut engine, &mut requests, name);
            requests[0].check(name);
            let stopped = requests[0].stats().stopped.as_deref();
            assert!(stopped.is_some_and(|found| found.contains(reason)), "{name}: {stopped:?}");
        }
    }
}

/// A random engine and random requests, some of which are cancelled. Returns the engine after its end.
pub(crate) fn random(seed: u64, scope: Scope) -> Engine {
    random_of(seed, scope, Drafts::of_model, |_, _| {})
}

/// As [`random`], with drafts of that kind and a setup that is changed.
pub(crate) fn random_of(
    seed: u64,
    scope: Scope,
    kind: fn(ModelId, Schedule) -> Drafts,
    change: impl FnOnce(&mut Setup, &mut Dice),
) -> Engine {
    let mut dice = Dice::new(seed);
    let mut below = |limit: u64| dice.below(limit);
    let [.., (_, last)] = placements();
    let found = placements().into_iter().nth(below(5) as usize);
    let strategies = found.map_or(last, |(_, strategies)| strategies);
    let mut setup = Setup {
        strategies,
        permits: 1 + below(4) as usize,
        sequences_max: 1 + below(6) as usize,
        chunk_rows: 1 + below(40) as usize,
        pages: [23 + below(60) as u32, 5 + below(80) as u32],
        wrong: Some(1 + below(12)),
        rates: [0; 3].map(|_| (1 + below(120), 1 + below(9))),
        context_of_draft: 30 + below(98) as usize,
        late: (below(4) == 0).then(|| below(1 << 40)),
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
    change(&mut setup, &mut dice);
    let mut below = |limit: u64| dice.below(limit);
    let mut engine = Engine::new(&setup);
    engine.sim.recorder().set_scope(scope);
    let mut requests: Vec<Request> = (0..1 + below(8))
        .map(|i| {
            let ids = prompt(seed as u32 + i as u32, 1 + below(60) as usize);
            let schedule = Schedule::ALL[below(2) as usize];
            let drafts = match below(4) {
                0 => None,
                1 => Some(kind(ModelId(1), schedule)),
                _ => Some(kind(ModelId(1), schedule).always(15)),
            };
            let drafts = drafts.map(|drafts| drafts.width(1 + below(3) as usize));
            let at = Nanos(below(4_000_000));
            let mut request = submit(&mut engine, at, ids, below(30) as usize, drafts);
            if below(3) == 0 {
                let cancel_at = Nanos(at.0 + below(6_000_000));
                request.cancel_at = Some(cancel_at);
                engine.sim.send_at(cancel_at, SchedulerMessage::Wake);
            }
            request
        })
        .collect();
    let what = format!("seed {seed}");
    play(&mut engine, &mut requests, &what);
    requests.iter().for_each(|request| request.check(&what));
    engine
}

#[test]
fn random_schedules_with_a_draft_model_change_no_token_and_leak_nothing() {
    for seed in 0..cases(1000, 10_000) {
        random(seed, Scope::Off);
    }
}
