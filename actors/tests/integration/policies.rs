//! A policy's ranks determine admission, the order of prompt rows, and preemption, in virtual time and
//! live.

use std::time::Duration;

use lapwing_actors::drive::live::LiveRequest;
use lapwing_actors::drive::wait::Waits;
use lapwing_actors::message::{SchedulerMessage, StreamEvent, Task};
use lapwing_actors::policy::{Charge, End, Fcfs, PolicyChoice, QueuePolicy};
use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::soc::{SocModel, SocOptions, SocSimulation};
use lapwing_kernels::model::shape::ModelShape;
use lapwing_plan::registry::ChoiceError;
use lapwing_plan::soc::Soc;
use lapwing_plan::strategy::{StrategyOptions, by_name};
use lapwing_plan::time::FixedRate;
use lapwing_traces::Nanos;

use crate::policy_support::{LeastCharged, Log, Logged, Overtaking, ShortestFirst, Told, sum};
use crate::support::{Setup, World, foretell, generate, prompt, recorder, request, throttled};

/// A request: its client, and the lengths of its prompt and its answer.
type Asked = (&'static str, usize, usize);

/// A prompt whose answer has at least that many tokens.
fn prompt_of(seed: u32, len: usize, tokens: usize) -> Vec<u32> {
    let mut prompts = (0..).map(|more| prompt(seed + 100 * more, len));
    prompts.find(|p| foretell(p, tokens).0.len() == tokens).expect("endless")
}

/// Events that a policy receives when these requests arrive at once in virtual time.
fn simulated<P>(mut setup: Setup, policy: P, asked: &[Asked]) -> Log
where
    P: QueuePolicy + Clone + Sync + 'static,
{
    let (policy, log) = Logged::new(policy);
    setup.policy = policy.into();
    let mut world = World::new(&setup);
    let prompts = (0..).zip(asked).map(|(seed, (_, len, tokens))| prompt_of(seed, *len, *tokens));
    let prompts: Vec<Vec<u32>> = prompts.collect();
    let requests = prompts.iter().zip(asked);
    let submit = |(prompt, (client, _, tokens)): (&Vec<u32>, &Asked)| {
        world.submit_of(*client, Nanos(0), prompt, generate(prompt, *tokens))
    };
    let mut streams: Vec<_> = requests.map(submit).collect();
    world.sim.run();
    for ((prompt, (_, _, tokens)), stream) in prompts.iter().zip(asked).zip(&mut streams) {
        stream.drain();
        assert_eq!(stream.tokens, foretell(prompt, *tokens).0);
    }
    world.assert_empty();
    log
}

#[test]
fn requests_are_admitted_in_order_of_rank() {
    let mut setup = Setup::default();
    setup.config.sequences_max = 1;
    // The first finds an empty engine.
    let asked = [("", 20, 3), ("", 30, 3), ("", 10, 3), ("", 25, 3), ("", 5, 3)];
    assert_eq!(simulated(setup.clone(), Fcfs, &asked).admitted(), [0, 1, 2, 3, 4]);
    let shortest = simulated(setup.clone(), ShortestFirst, &asked);
    assert_eq!(shortest.admitted(), [0, 4, 2, 3, 1]);
    let asked = [("a", 10, 3), ("a", 10, 3), ("a", 10, 3), ("b", 10, 3), ("b", 10, 3)];
    let fair = simulated(setup, LeastCharged::default(), &asked);
    assert_eq!(fair.admitted(), [0, 3, 1, 4, 2], "the clients take turns");
}

#[test]
fn prompt_rows_are_selected_in_order_of_rank() {
    let mut setup = Setup::default();
    setup.config.permits = 1;
    assert_eq!(setup.chunk_rows, 16);
    // The first chunk leaves before the others arrive.
    let asked = [("", 40, 1), ("", 8, 1), ("", 24, 1)];
    let shortest = simulated(setup.clone(), ShortestFirst, &asked);
    assert_eq!(
        shortest.prompt_rows(),
        [(0, 16), (1, 8), (2, 8), (2, 16), (0, 16), (0, 8)],
        "a chunk is filled up with rows of the next rank"
    );
    let fcfs = simulated(setup.clone(), Fcfs, &asked);
    assert_eq!(fcfs.prompt_rows(), [(0, 16), (0, 16), (0, 8), (1, 8), (2, 16), (2, 8)]);
    let asked = [("a", 32, 1), ("a", 32, 1), ("b", 32, 1)];
    let fair = simulated(setup, LeastCharged::default(), &asked);
    assert_eq!(fair.prompt_rows(), [(0, 16), (0, 16), (2, 16), (2, 16), (1, 16), (1, 16)]);
}

#[test]
fn the_worst_rank_is_preempted() {
    let pages = |pages| Setup { pages, ..Setup::default() };
    let asked = [("", 20, 20), ("", 12, 20), ("", 8, 20)];
    let fcfs = simulated(pages(15), Fcfs, &asked).evicted();
    assert!(
        fcfs.starts_with(&[2]) && !fcfs.contains(&0),
        "{fcfs:?}: the youngest, never the oldest"
    );
    let shortest = simulated(pages(15), ShortestFirst, &asked).evicted();
    assert!(shortest.starts_with(&[0]) && !shortest.contains(&2), "{shortest:?}");
    let asked = [("a", 12, 20), ("a", 12, 20), ("b", 4, 20)];
    assert_eq!(simulated(pages(12), Fcfs, &asked).evicted()[0], 2);
    let fair = simulated(pages(12), LeastCharged::default(), &asked).evicted();
    assert!(fair.starts_with(&[1]) && !fair.contains(&2), "{fair:?}: b was charged less");
}

#[test]
fn a_request_that_does_not_fit_is_overtaken_only_if_the_policy_says_so() {
    // The second needs 10 of 14 pages, of which the first has 5.
    let (pages, asked) = (14, [("", 20, 5), ("", 40, 5), ("", 8, 3)]);
    let setup = || Setup { pages, ..Setup::default() };
    assert_eq!(simulated(setup(), Fcfs, &asked).admitted(), [0, 1, 2]);
    assert_eq!(simulated(setup(), Overtaking, &asked).admitted(), [0, 2, 1]);
}

#[test]
fn a_policy_is_told_how_every_request_ends() {
    let (policy, log) = Logged::new(Fcfs);
    let mut world = World::new(&Setup { pages: 20, policy: policy.into(), ..Setup::default() });
    let of = |len, tokens| prompt_of(1, len, tokens);
    let rows = [
        (
            of(20, 5),
            generate(&[], 5),
            Some(End::Completed),
            Charge { prompt_rows: 20, ..tokens(5) },
        ),
        (of(20, 5), generate(&[], 0), Some(End::Completed), Charge::default()),
        (
            of(20, 5),
            Task::Score { from: 1, top: 0 },
            Some(End::Completed),
            Charge { prompt_rows: 19, ..tokens(0) },
        ),
        // One request outgrows the cache; the other never fits.
        (
            of(60, 30),
            generate(&[], 30),
            Some(End::Failed),
            Charge { prompt_rows: 60, ..tokens(21) },
        ),
        (of(90, 5), generate(&[], 5), Some(End::Failed), Charge::default()),
        (Vec::new(), generate(&[], 5), None, Charge::default()),
    ];
    for (number, (ids, task, end, charged)) in (0..).zip(rows) {
        let stream = world.submit(world.sim.now(), &ids, task);
        world.sim.run();
        drop(stream);
        let entries = log.entries().into_iter().filter(|entry| entry.sequence == number);
        let told: Vec<Told> = entries.map(|entry| entry.told).collect();
        assert_eq!(sum(&told), charged, "{number}");
        let Some(end) = end else { return assert_eq!(told, [], "it was refused") };
        let admitted = told.iter().filter(|told| **told == Told::Admitted).count();
        assert_eq!(admitted, usize::from(charged != Charge::default()), "{number}");
        assert_eq!((told.first(), told.last()), (Some(&Told::Arrived), Some(&Told::Finished(end))));
    }
}

#[test]
fn a_policy_is_told_of_a_caller_that_leaves() {
    for steps in [1, 4] {
        let (policy, log) = Logged::new(Fcfs);
        let mut setup = Setup { policy: policy.into(), ..Setup::default() };
        setup.config.sequences_max = 1;
        let mut world = World::new(&setup);
        let ids = prompt_of(1, 20, 30);
        let streams = [0, 1].map(|_| world.submit(Nanos(0), &ids, generate(&ids, 30)));
        (0..steps).for_each(|_| assert!(world.sim.step()));
        drop(streams);
        world.sim.send_at(world.sim.now(), SchedulerMessage::Wake);
        world.sim.run();
        world.assert_empty();
        let entries = log.entries();
        let left = entries.iter().filter(|entry| entry.told == Told::Finished(End::Cancelled));
        let left: Vec<u64> = left.map(|entry| entry.sequence).collect();
        assert_eq!(left.len(), 2, "{entries:?}");
    }
}

fn tokens(generated_tokens: usize) -> Charge {
    Charge { generated_tokens, ..Charge::default() }
}

#[test]
fn live_requests_are_admitted_in_order_of_rank() {
    let shortest = [("", 20, 20), ("", 30, 3), ("", 10, 3), ("", 25, 3)];
    assert_eq!(live(ShortestFirst, &shortest).admitted(), [0, 2, 3, 1]);
    let fair = [("a", 10, 20), ("a", 10, 3), ("a", 10, 3), ("b", 10, 9)];
    let log = live(LeastCharged::default(), &fair);
    assert_eq!(log.admitted(), [0, 3, 1, 2]);
    let clients: Vec<Option<String>> = log
        .entries()
        .iter()
        .filter(|entry| entry.told == Told::Admitted)
        .map(|entry| entry.client.name().map(str::to_owned))
        .collect();
    assert_eq!(clients, ["a", "b", "a", "a"].map(|name| Some(name.to_owned())));
}

/// Events that a policy receives when these requests arrive while the first of them runs, in real time.
fn live<P: QueuePolicy + Clone + Sync + 'static>(policy: P, asked: &[Asked]) -> Log {
    let (policy, log) = Logged::new(policy);
    // The first takes 60 ms or more.
    let rate = FixedRate { per_stage: Duration::from_millis(3), per_row: Duration::ZERO };
    let mut setup = Setup { policy: policy.into(), rates: vec![rate], ..Setup::default() };
    setup.config.sequences_max = 1;
    let (live, pool) = throttled(&setup, &recorder(), Waits::for_devices(1));
    let submit = |(seed, asked): (u32, &Asked)| {
        let (client, len, tokens) = *asked;
        let ids = prompt_of(seed, len, tokens);
        let request = LiveRequest { client: client.into(), ..request(&ids, tokens) };
        (live.submit(live.admit().expect("room"), request).expect("an engine"), ids, tokens)
    };
    let streams: Vec<_> = (0..).zip(asked).map(submit).collect();
    for (mut events, ids, tokens) in streams {
        let mut found = Vec::new();
        loop {
            match events.next_blocking() {
                StreamEvent::Token(token) => found.push(token.id),
                StreamEvent::Finished(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(found, foretell(&ids, tokens).0);
    }
    drop(live);
    assert_eq!(pool.free_pages(), pool.capacity());
    log
}

#[test]
fn a_virtual_engine_takes_a_policy() {
    let (policy, log) = Logged::new(ShortestFirst);
    let run = |policy: PolicyChoice| {
        let shape = ModelShape { layers: 2, ..ModelShape::all()[0].clone() };
        let model = SocModel::of_shape(&shape).expect("a model");
        let (soc, options) =
            (Soc::preset("sd8gen3").expect("a preset"), StrategyOptions::default());
        let strategy = by_name("gpu-only", &options).expect("is known");
        let options = SocOptions { prompt: 100, decode: 4, policy, ..SocOptions::default() };
        SocSimulation::new(&model, &soc, &strategy, &options)?.run()
    };
    let own = run(policy.into()).expect("an outcome");
    let told: Vec<Told> = log.entries().into_iter().map(|entry| entry.told).collect();
    assert_eq!(sum(&told), Charge { prompt_rows: 100, ..tokens(5) });
    assert_eq!(log.admitted(), [0]);
    assert_eq!(own, run("fcfs".into()).expect("an outcome"), "it is alone");
    let unknown = run("best".into()).expect_err("there is none");
    assert!(
        matches!(&unknown, SocRunError::Policy(ChoiceError::Unknown { name, .. }) if name == "best"),
        "{unknown}"
    );
}
