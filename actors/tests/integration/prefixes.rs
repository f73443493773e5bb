//! Requests that begin alike compute their common rows once, and get the same tokens as without a cache.

use std::sync::atomic::Ordering;

use lapwing_actors::message::FinishReason;
use lapwing_actors::prefix::PrefixUse;
use lapwing_traces::Nanos;

use crate::support::{PAGE_ROWS, Setup, Stream, World, foretell, generate, prompt};

fn cached() -> Setup {
    Setup { prefixes: Some(None), chunk_rows: 8, ..Setup::default() }
}

/// Rows that the first device of a world has computed since the last call.
struct Rows(usize);

impl Rows {
    fn new(world: &World) -> Rows {
        Rows(world.rows_run[0].load(Ordering::Relaxed))
    }

    fn since(&mut self, world: &World) -> usize {
        let now = world.rows_run[0].load(Ordering::Relaxed);
        now - std::mem::replace(&mut self.0, now)
    }
}

/// Runs a request to its end; returns the rows that were computed for it.
fn rows_for(world: &mut World, prefix: PrefixUse, ids: &[u32], tokens: usize) -> usize {
    let mut rows = Rows::new(world);
    let mut stream = world.submit_with(prefix, ids, generate(ids, tokens));
    world.sim.run();
    check(&mut stream, ids, tokens);
    rows.since(world)
}

fn check(stream: &mut Stream, ids: &[u32], tokens: usize) {
    stream.drain();
    assert_eq!(stream.tokens, foretell(ids, tokens).0);
    assert!(matches!(stream.end, Some(Ok(FinishReason::Length))), "{:?}", stream.end);
}

/// A prompt whose answer does not end early.
fn long(seed: u32, len: usize, tokens: usize) -> Vec<u32> {
    let answers = |ids: &Vec<u32>| foretell(ids, tokens).1 == FinishReason::Length;
    (seed..).step_by(100).map(|seed| prompt(seed, len)).find(answers).expect("one of many")
}

#[test]
fn rows_that_are_cached_are_not_computed() {
    // (shared rows, rows of the second prompt, rows computed for one token)
    let cases = [
        (36, 36, 1, "the same prompt: its last row is needed"),
        (30, 30, 1, "a shorter one: its last row is needed"),
        (36, 40, 4, "a longer prompt"),
        (32, 40, 8, "a whole number of pages"),
        (17, 40, 23, "a difference within a page"),
        (3, 40, 37, "a difference within the first page"),
        (0, 40, 40, "a different first token"),
    ];
    for (shared, len, computed, what) in cases {
        let mut world = World::new(&cached());
        let first = long(1, 36, 1);
        assert_eq!(rows_for(&mut world, PrefixUse::default(), &first, 1), 36);
        let mut second = prompt(2, len);
        second[..shared].copy_from_slice(&first[..shared]);
        if let (Some(own), Some(other)) = (second.get_mut(shared), first.get(shared)) {
            *own = if *own == *other { (*own + 1) % 90 } else { *own };
        }
        let (expected, _) = foretell(&second, 1);
        let mut rows = Rows::new(&world);
        let mut stream = world.submit_with(PrefixUse::default(), &second, generate(&second, 1));
        world.sim.run();
        stream.drain();
        assert_eq!(stream.tokens, expected, "{what}");
        assert_eq!(rows.since(&world), computed, "{what}");
        world.assert_empty();
    }
}

#[test]
fn a_conversation_computes_each_message_once() {
    let mut world = World::new(&cached());
    let mut ids = long(5, 21, 10);
    rows_for(&mut world, PrefixUse::default(), &ids, 10);
    // The last generated token was never a row.
    let known = ids.len() + 10 - 1;
    ids.extend(foretell(&ids, 10).0);
    ids.extend([1, 2, 3, 4, 5]);
    assert_eq!(rows_for(&mut world, PrefixUse::default(), &ids, 1), ids.len() - known);
}

#[test]
fn other_namespaces_and_requests_without_the_cache_share_nothing() {
    let salted = |salt: &str| PrefixUse::Shared(Some(salt.into()));
    let all = [PrefixUse::default(), salted("a"), salted("b"), PrefixUse::Off, PrefixUse::Off];
    let ids = long(7, 30, 1);
    let mut world = World::new(&cached());
    for prefix in &all {
        assert_eq!(rows_for(&mut world, prefix.clone(), &ids, 1), 30, "{prefix:?}");
    }
    for prefix in &all[..3] {
        assert_eq!(rows_for(&mut world, prefix.clone(), &ids, 1), 1, "{prefix:?}");
    }
    let mut without = World::new(&Setup { prefixes: None, ..cached() });
    rows_for(&mut without, PrefixUse::default(), &ids, 1);
    assert_eq!(rows_for(&mut without, PrefixUse::default(), &ids, 1), 30);
}

#[test]
fn a_burst_computes_its_common_prefix_once() {
    let mut world = World::new(&cached());
    let common = prompt(9, 40);
    let mut rows = Rows::new(&world);
    let burst = (0..8u32).map(|caller| {
        let mut ids = common.clone();
        ids.extend([caller, 90 - caller, 3]);
        ids
    });
    let burst: Vec<Vec<u32>> = burst.collect();
    let streams: Vec<Stream> =
        burst.iter().map(|ids| world.submit(Nanos(0), ids, generate(ids, 1))).collect();
    world.sim.run();
    for (ids, mut stream) in burst.iter().zip(streams) {
        stream.drain();
        assert_eq!(stream.tokens, foretell(ids, 1).0);
    }
    assert_eq!(rows.since(&world), 40 + 8 * 3);
}

#[test]
fn a_burst_does_not_hold_back_others() {
    // And nobody waits for a prefix that is no longer computed because its caller has gone.
    let mut world = World::new(&cached());
    let (common, other) = (long(9, 40, 1), long(3, 10, 1));
    let mut first = world.submit(Nanos(0), &common, generate(&common, 1));
    let mut waits = world.submit(Nanos(1), &common, generate(&common, 1));
    let mut passes = world.submit(Nanos(2), &other, generate(&other, 1));
    (0..8).for_each(|_| assert!(world.sim.step()));
    first.drain();
    waits.drain();
    assert!(first.end.is_none() && waits.end.is_none());
    first.receiver = None;
    world.sim.send_at(world.sim.now(), lapwing_actors::message::SchedulerMessage::Wake);
    world.sim.run();
    check(&mut waits, &common, 1);
    check(&mut passes, &other, 1);
    world.assert_empty();
}

#[test]
fn pages_are_dropped_when_others_need_them_the_oldest_first() {
    // Room for three prompts of 8 pages, no more.
    let mut world = World::new(&Setup { pages: 26, ..cached() });
    let ids: Vec<Vec<u32>> = (0..4).map(|seed| long(10 + seed, 8 * PAGE_ROWS, 1)).collect();
    for at in [0, 1, 2, 0, 3] {
        rows_for(&mut world, PrefixUse::default(), &ids[at], 1);
    }
    assert!(world.sim.scheduler().cached_pages() <= 26);
    assert_eq!(rows_for(&mut world, PrefixUse::default(), &ids[0], 1), 1, "used lately");
    assert_eq!(rows_for(&mut world, PrefixUse::default(), &ids[3], 1), 1, "used last");
    assert!(rows_for(&mut world, PrefixUse::default(), &ids[1], 1) > 1, "used long ago");
    world.assert_empty();
}

#[test]
fn a_page_that_cannot_be_copied_is_computed() {
    let mut world = World::new(&Setup { prefixes: Some(Some(1)), ..cached() });
    let ids = long(11, 30, 5);
    rows_for(&mut world, PrefixUse::default(), &ids, 5);
    let whole = 28;
    assert_eq!(rows_for(&mut world, PrefixUse::default(), &ids, 5), 30 - whole + 4);
    world.assert_empty();
}
