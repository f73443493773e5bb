//! For any ranks of a policy, every request gets its tokens, nothing leaks, and preemption ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lapwing_actors::policy::{
    Candidate, Charge, End, Fcfs, PolicyChoice, PrefixView, QueuePolicy, Rank,
};
use lapwing_traces::Nanos;

use crate::policy_support::{Entry, Log, Logged, Told, sum};
use crate::random_schedules::{Dice, setup};
use crate::requests::{Draw, Request, play};
use crate::support::{PAGE_ROWS, Setup, World, foretell, generate, prompt};

/// Ranks independently of the request, or by values that change with time or at random.
#[derive(Clone)]
struct Arbitrary {
    by: u64,
    dice: Arc<Mutex<Dice>>,
}

impl Arbitrary {
    fn new(seed: u64) -> Arbitrary {
        Arbitrary { by: seed % 6, dice: Arc::new(Mutex::new(Dice::new(seed))) }
    }

    fn draw(&self, limit: u64) -> u64 {
        self.dice.lock().expect("no panic").below(limit)
    }
}

impl QueuePolicy for Arbitrary {
    fn name(&self) -> &str {
        "arbitrary"
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, now: Nanos) -> Rank {
        let (matched, tokens) =
            (prefixes.matched(request.sequence), prefixes.tokens(request.sequence));
        assert!(matched <= tokens.len() && (tokens.is_empty() || !request.running));
        let number = request.sequence.0;
        match self.by {
            // A different order at each call.
            0 => Rank::by(self.draw(1 << 20) as f64),
            // The youngest goes first.
            1 => Rank::by(-(number as f64)),
            // Two orders alternate every 100 µs.
            2 => Rank::by(if (now.0 / 100_000).is_multiple_of(2) {
                number as f64
            } else {
                -(number as f64)
            }),
            // Few ranks, some of which are NaN.
            3 => Rank([f64::NAN, f64::INFINITY, 0.0, -0.0][self.draw(4) as usize], 1.0),
            // The request with the most generated tokens is preempted first.
            4 => Rank(request.generated_tokens as f64, -(number as f64)),
            // Running requests give way to waiting ones.
            _ => Rank(f64::from(u8::from(request.running)), self.draw(3) as f64),
        }
    }

    fn may_overtake(&self, _blocked: &Candidate<'_>, _now: Nanos) -> bool {
        self.draw(2) == 0
    }
}

/// Runs a random schedule of uncancelled requests and checks the events that the policy received.
fn run(seed: u64, policy: impl QueuePolicy + Clone + Sync + 'static) -> usize {
    let mut dice = Dice::new(seed);
    let (policy, log) = Logged::new(policy);
    let setup = Setup { policy: policy.into(), ..setup(&mut dice) };
    let mut world = World::new(&setup);
    let requests = (0..2 + dice.below(10)).map(|i| {
        let (prompt_tokens, tokens_max) = (1 + dice.below(60) as usize, dice.below(30) as usize);
        let (at, cancel_at) = (Nanos(dice.below(2_000_000)), None);
        let draw = Draw { prompt_tokens, tokens_max, at, cancel_at, drafted: None, embeds: None };
        Request::submit(&mut world, seed as u32 + i as u32, draw)
    });
    let requests = requests.collect();
    play(&mut world, requests, seed);
    check(seed, &log, setup.prefixes.is_some())
}

/// The calls for each request are in order, charges are those of its rows and tokens, and there are
/// at most as many preemptions as pages that generated tokens began. Returns the preemptions. Rows that
/// the prefix cache has are not charged.
fn check(seed: u64, log: &Log, has_prefixes: bool) -> usize {
    let mut requests: HashMap<u64, Vec<Entry>> = HashMap::new();
    for entry in log.entries() {
        requests.entry(entry.sequence).or_default().push(entry);
    }
    let (mut begun, mut preemptions) = (0, 0);
    for (number, entries) in requests {
        let of = format!("seed {seed}, request {number}");
        let told: Vec<Told> = entries.iter().map(|entry| entry.told).collect();
        let last = entries.last().expect("calls");
        let Told::Finished(end) = last.told else { panic!("{of}: {last:?}") };
        let mut running = false;
        for told in &told[1..told.len() - 1] {
            match told {
                Told::Admitted if !running => running = true,
                Told::Evicted(_) if running => running = false,
                Told::Charged(_) if running => {}
                other => panic!("{of}: {other:?} out of order"),
            }
        }
        assert_eq!((told[0], last.running), (Told::Arrived, running), "{of}");
        let rows = |told: &Told| if let Told::Evicted(rows) = told { Some(*rows) } else { None };
        let evicted: Vec<usize> = told.iter().filter_map(rows).collect();
        let (prompt, generated) = (last.prompt_tokens, last.generated_tokens);
        let charged = sum(&told);
        assert_eq!(charged.generated_tokens, generated, "{of}");
        if end == End::Completed && generated > 0 {
            let all = Charge {
                prompt_rows: prompt,
                recomputed_rows: evicted.iter().sum(),
                generated_tokens: generated,
            };
            let rows = charged.prompt_rows + charged.recomputed_rows;
            let of_all = all.prompt_rows + all.recomputed_rows;
            assert!(
                rows == of_all || has_prefixes && rows < of_all,
                "{of}: {charged:?} of {all:?}"
            );
            assert!(charged.prompt_rows <= all.prompt_rows, "{of}: {charged:?} of {all:?}");
            assert!(charged.recomputed_rows <= all.recomputed_rows, "{of}: {charged:?} of {all:?}");
        }
        begun += (prompt + generated).div_ceil(PAGE_ROWS) - prompt.div_ceil(PAGE_ROWS);
        preemptions += evicted.len();
    }
    assert!(preemptions <= begun, "seed {seed}: {preemptions} preemptions, {begun} pages begun");
    preemptions
}

#[test]
fn any_order_gives_every_request_its_tokens_and_ends() {
    let mut preemptions = [0; 6];
    for seed in 0..1200 {
        preemptions[(seed % 6) as usize] += run(seed, Arbitrary::new(seed));
    }
    assert!(preemptions.iter().all(|count| *count > 50), "too few to tell: {preemptions:?}");
    let fcfs: usize = (0..200).map(|seed| run(seed, Fcfs)).sum();
    assert!(fcfs > 50, "too few to tell: {fcfs}");
}

#[test]
fn sequences_that_preempt_each_other_in_turn_all_finish() {
    // Each of them fits alone, no two together; the order reverses with time.
    for period in [1, 1_000, 50_000, 300_000] {
        let (policy, log) = Logged::new(Turning { period });
        let choice = PolicyChoice::from(policy);
        let mut world = World::new(&Setup { pages: 16, policy: choice, ..Setup::default() });
        let ids: Vec<Vec<u32>> = (0..)
            .map(|seed| prompt(seed, 20))
            .filter(|ids| foretell(ids, 40).0.len() == 40)
            .take(3)
            .collect();
        let mut streams: Vec<_> =
            ids.iter().map(|ids| world.submit(Nanos(0), ids, generate(ids, 40))).collect();
        let steps = (0..).take_while(|_| world.sim.step()).take(100_000).count();
        assert!(steps < 100_000, "it goes on for ever");
        for (ids, stream) in ids.iter().zip(&mut streams) {
            stream.drain();
            assert_eq!(stream.tokens, foretell(ids, 40).0);
        }
        world.assert_empty();
        assert!(check(period, &log, false) > 0, "none was preempted");
    }
}

/// The order of arrival, reversed after each period in ns.
#[derive(Clone, Copy)]
struct Turning {
    period: u64,
}

impl QueuePolicy for Turning {
    fn name(&self) -> &str {
        "turning"
    }

    fn rank(&self, request: &Candidate<'_>, _: &dyn PrefixView, now: Nanos) -> Rank {
        let number = request.sequence.0 as f64;
        Rank::by(if (now.0 / self.period).is_multiple_of(2) { number } else { -number })
    }
}
