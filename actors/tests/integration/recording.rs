//! A recording has both ends of every message and span, gives the causes of stalls, and holds only
//! requested events.

use std::collections::{HashMap, HashSet};

use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_traces::analysis::IdleCause;
use lapwing_traces::event::{Activity, Milestone, StallCause};
use lapwing_traces::timeline::Span;
use lapwing_traces::{Analysis, Nanos, Scope, Timeline};

use crate::random_schedules;
use crate::support::{
    PAGE_ROWS, Setup, World, foretell, generate, live, prompt, recorder, request,
};

mod books;

use books::Books;

#[test]
fn everything_that_begins_ends_in_random_schedules() {
    for seed in 0..300 {
        let recording = random_schedules::run(seed, Scope::All);
        assert_eq!(recording.dropped, 0);
        let books = Books::of(&recording);
        assert_eq!(books.started, books.finished, "seed {seed}");
        assert!(books.started.is_disjoint(&books.ran), "seed {seed}");
        let known: HashSet<u64> = books.sent.keys().copied().collect();
        assert!(books.received.is_subset(&known), "seed {seed}: received but never sent");
        // A caller that has dropped its stream receives no further event.
        let cancelled = books.ends.values().flatten().any(|end| *end != Milestone::Finished);
        for name in books.lost() {
            let to_caller = ["token", "finished", "failed"].contains(&name);
            assert!(cancelled && to_caller, "seed {seed}: {name} was lost");
        }
        for request in &books.submitted {
            assert_eq!(books.ends[request].len(), 1, "seed {seed}: request {request}");
        }
        let timeline = Timeline::new(&recording);
        assert_eq!(timeline.orphans, 0, "seed {seed}");
        assert!(timeline.spans.iter().all(|span| span.finished), "seed {seed}");
        let inside = ["chunk", "progress", "token"];
        for message in timeline.messages.iter().filter(|m| inside.contains(&m.name.as_str())) {
            assert!(message.from.is_some(), "seed {seed}: {message:?} comes from nowhere");
        }
    }
}

#[test]
fn every_idle_nanosecond_has_a_cause_in_random_schedules() {
    for seed in 0..300 {
        let timeline = Timeline::new(&random_schedules::run(seed, Scope::All));
        let analysis = Analysis::new(&timeline);
        for (lane, info) in timeline.lanes.iter().enumerate() {
            // A lane without spans is never idle.
            let makespan = if info.slots == 0 { 0 } else { timeline.makespan() };
            let gaps = analysis.gaps.iter().filter(|gap| gap.lane == lane);
            let unknown = gaps.clone().find(|gap| gap.cause == IdleCause::Unknown);
            assert_eq!(unknown, None, "seed {seed}, {}", info.name);
            let idle: u64 = gaps.map(|gap| gap.end - gap.start).sum();
            // Except for ops inside stages, spans of a lane do not overlap.
            let outer = |span: &&Span| span.lane == lane && span.parent.is_none();
            let spans = timeline.spans.iter().filter(outer);
            let busy: u64 = spans.map(|span| span.duration()).sum();
            assert_eq!(idle + busy, makespan, "seed {seed}, {}", info.name);
        }
    }
}

#[test]
fn two_runs_with_the_same_seed_leave_the_same_bytes() {
    let bytes = |seed| {
        let recording = random_schedules::run(seed, Scope::All);
        let words: Vec<_> = recording.events.iter().map(|event| event.to_words()).collect();
        (words, recording)
    };
    for seed in 0..20 {
        let (first, second) = (bytes(seed), bytes(seed));
        assert!(first == second, "seed {seed}");
        assert_eq!(first.1.meta["clock"], "virtual");
    }
}

#[test]
fn nothing_is_recorded_unless_it_is_asked_for() {
    for seed in 0..20 {
        assert_eq!(random_schedules::run(seed, Scope::Off).events, []);
        assert_eq!(random_schedules::run(seed, Scope::Marked).events, []);
    }
}

#[test]
fn only_the_marked_one_of_two_requests_is_recorded() {
    let mut world = World::new(&Setup { devices: 2, ..Setup::default() });
    world.sim.recorder().set_scope(Scope::Marked);
    let (a, b) = (prompt(1, 40), prompt(2, 40));
    let mut plain = world.submit_traced(Nanos(0), &a, generate(&a, 12), false);
    let mut marked = world.submit_traced(Nanos(200_000), &b, generate(&b, 20), true);
    world.sim.run();
    plain.drain();
    marked.drain();
    let timeline = Timeline::new(&world.sim.recorder().recording());
    assert!(timeline.milestones.iter().all(|s| s.request == 1), "{:?}", timeline.milestones);
    let tokens: u64 = timeline
        .milestones
        .iter()
        .filter(|s| s.milestone == Milestone::Token)
        .map(|s| s.value)
        .sum();
    assert_eq!(tokens as usize, marked.tokens.len());
    let sent = timeline.messages.iter().filter(|m| m.name == "token").count();
    assert_eq!(sent, marked.tokens.len());
    // The first prompt's chunks hold no rows of the second.
    assert!(timeline.spans.iter().all(|span| span.tags.request != Some(0)));
    assert!(timeline.spans.iter().any(|span| span.tags.request == Some(1)));
    assert_eq!(timeline.orphans, 0);
}

/// Causes of all stalls, with the times from ready to sent.
fn stalls(world: &World) -> Vec<(StallCause, u64, u64)> {
    let timeline = Timeline::new(&world.sim.recorder().recording());
    let stall = |m: &lapwing_traces::timeline::Message| {
        m.stall.map(|(cause, since)| (cause, since.0, m.sent.0))
    };
    timeline.messages.iter().filter_map(stall).collect()
}

#[test]
fn a_chunk_without_a_permit_says_since_when_it_was_ready() {
    let mut setup = Setup { chunk_rows: 10, ..Setup::default() };
    setup.config.permits = 1;
    let mut world = World::new(&setup);
    world.sim.recorder().set_scope(Scope::All);
    let p = prompt(1, 30);
    let _stream = world.submit(Nanos(1000), &p, generate(&p, 1));
    world.sim.run();
    // Each chunk takes 200 µs; the second is ready with the first, the third with the second.
    let ready = StallCause::BackPressure;
    assert_eq!(stalls(&world), [(ready, 1000, 201_000), (ready, 201_000, 401_000)]);
}

#[test]
fn a_request_without_pages_says_since_when_it_waits() {
    let setup = Setup { pages: 40u32.div_ceil(PAGE_ROWS as u32), ..Setup::default() };
    let mut world = World::new(&setup);
    world.sim.recorder().set_scope(Scope::All);
    let (a, b) = (prompt(1, 30), prompt(2, 12));
    let _first = world.submit(Nanos(0), &a, generate(&a, 1));
    let _second = world.submit(Nanos(5_000), &b, generate(&b, 1));
    world.sim.run();
    let stalls = stalls(&world);
    // The first one's 30 rows in chunks of 16 and 14 end it; then its pages are free.
    assert_eq!(stalls, [(StallCause::SlotPool, 5_000, 500_000)]);
}

#[test]
fn a_sequence_that_waits_for_the_decode_batch_says_so() {
    // With one device, a prompt beside a stream ends in the stream's batch.
    let mut world = World::new(&Setup { devices: 2, ..Setup::default() });
    world.sim.recorder().set_scope(Scope::All);
    let long = |p: &Vec<u32>| foretell(p, 20).0.len() == 20;
    let prompts: Vec<_> = (0..).map(|i| prompt(i, 8)).filter(long).take(2).collect();
    let _streams: Vec<_> = prompts
        .iter()
        .zip([0, 230_000])
        .map(|(p, at)| world.submit(Nanos(at), p, generate(p, 20)))
        .collect();
    world.sim.run();
    assert!(stalls(&world).iter().any(|(cause, _, _)| *cause == StallCause::PolicyBarrier));
}

#[test]
fn a_live_engine_records_both_ends_of_everything() {
    for devices in [1, 2] {
        let setup = Setup { devices, ..Setup::default() };
        let recorder = recorder();
        recorder.set_scope(Scope::All);
        let nodes = setup.parts().graph.nodes().len();
        let (live, _) = live(&setup, 16, &recorder);
        let prompts: Vec<_> = (0..6).map(|i| prompt(i, 10 + 9 * i as usize)).collect();
        let submit = |p: &Vec<u32>| live.submit(live.admit()?, request(p, 24));
        let streams: Vec<_> = prompts.iter().map(|p| submit(p).expect("alive")).collect();
        let mut tokens = 0;
        for mut events in streams {
            while let StreamEvent::Token(_) = events.next_blocking() {
                tokens += 1;
            }
        }
        live.shutdown(Shutdown::Drain);
        let recording = recorder.recording();
        let books = Books::of(&recording);
        assert_eq!(books.started, books.finished);
        // A stream's end wakes the scheduler, which may have ended.
        let lost = books.lost();
        assert!(lost.iter().all(|name| ["wake", "shutdown"].contains(name)), "{lost:?}");
        let timeline = Timeline::new(&recording);
        assert_eq!((timeline.orphans, timeline.dropped), (0, 0));
        let milestones = timeline.milestones.iter().filter(|s| s.milestone == Milestone::Token);
        assert_eq!(milestones.count(), tokens);
        check_ops(&timeline, nodes, setup.devices);
        let pages: Vec<_> = timeline.counters.iter().filter(|c| c.name.contains("pages")).collect();
        let [pages] = &pages[..] else { panic!("{pages:?}") };
        assert!(pages.values.iter().any(|(_, value)| *value > 0));
        assert_eq!(pages.values.last().map(|(_, value)| *value), Some(0), "pages came back");
    }
}

/// Every chunk has one span per stage, and in its stages one op span per node.
fn check_ops(timeline: &Timeline, nodes: usize, stages: usize) {
    let mut of_chunk: HashMap<u64, (usize, usize)> = HashMap::new();
    for span in &timeline.spans {
        let Some(chunk) = span.tags.chunk else { continue };
        let (stages, ops) = of_chunk.entry(chunk).or_default();
        if span.activity == Activity::Compute && span.parent.is_none() {
            *stages += 1;
            assert!(span.queued <= span.submitted && span.submitted <= Some(span.start));
        } else if let Some(parent) = span.parent {
            *ops += 1;
            assert_eq!(timeline.spans[parent].tags.stage, span.tags.stage);
        }
    }
    assert!(!of_chunk.is_empty());
    for (chunk, found) in of_chunk {
        assert_eq!(found, (stages, nodes), "chunk {chunk}");
    }
}

#[test]
fn switching_while_it_runs_leaves_no_halves() {
    let setup = Setup { devices: 2, ..Setup::default() };
    let recorder = recorder();
    let (live, _) = live(&setup, 64, &recorder);
    for i in 0..60 {
        let p = prompt(i, 20);
        recorder.set_scope(if i % 2 == 0 { Scope::All } else { Scope::Off });
        let mut events =
            live.submit(live.admit().expect("a permit"), request(&p, 30)).expect("alive");
        let mut tokens = Vec::new();
        while let StreamEvent::Token(token) = events.next_blocking() {
            tokens.push(token.id);
            if tokens.len() == 3 {
                recorder.set_scope(if i % 3 == 0 { Scope::All } else { Scope::Off });
            }
        }
        assert_eq!(tokens, foretell(&p, 30).0);
    }
    live.shutdown(Shutdown::Drain);
    let books = Books::of(&recorder.recording());
    assert!(!books.started.is_empty());
    assert_eq!(books.started, books.finished);
    let known: HashSet<u64> = books.sent.keys().copied().collect();
    assert!(books.received.is_subset(&known));
}
