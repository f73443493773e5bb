//! The scheduler's and workers' part of a decode step, without computing.

use std::error::Error;

use lapwing_actors::policy::{ClientId, Fcfs};
use lapwing_traces::{Clock, OsClock};

use crate::engine::{Asked, Engine, Size};

const TOKENS: usize = 4000;
const PROMPT: usize = 8;
/// A decode step of the smallest model that is tested here: 135 M weights of 8.5 bits, read once at
/// 50 GB/s, which is faster than a laptop's memory, in ns.
pub(super) const STEP_NS: f64 = 135e6 * 8.5 / 8.0 / 50.0;

/// Generates for `sequences` requests at once; ns per chunk.
fn run(engine: &mut Engine, sequences: usize) -> Result<f64, Box<dyn Error>> {
    let asked = || Asked { client: ClientId::anonymous(), ids: vec![1; PROMPT], tokens: TOKENS };
    let streams = (0..sequences).map(|_| engine.submit(asked()));
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    let clock = OsClock::start();
    engine.chunks = 0;
    while engine.step() {}
    let ns = clock.now().0 as f64;
    let whole = streams.iter().all(|stream| stream.len() == TOKENS + 1);
    if !whole {
        let lengths: Vec<usize> = streams.iter().map(|stream| stream.len()).collect();
        return Err(format!("streams of {lengths:?} events instead of {}", TOKENS + 1).into());
    }
    Ok(ns / engine.chunks as f64)
}

/// Prints a decode step's bookkeeping, and returns its largest share of a step. `hop` is what a hop
/// takes in ns.
pub(super) fn share(hop: f64) -> Result<f64, Box<dyn Error>> {
    println!("\nbookkeeping of a decode step, without computing:");
    let mut worst = 0.0_f64;
    for (devices, sequences) in [(1, 1), (1, 8), (2, 1), (3, 8)] {
        let context = TOKENS + PROMPT;
        let size = Size {
            layers: 30,
            devices,
            context,
            cache_tokens: 8 * context + 1024,
            sequences_max: 8,
            requests_max: 8,
            prefix_cache: false,
        };
        let mut engine = Engine::new(&size, Box::new(Fcfs))?;
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(run(&mut engine, sequences)?);
        }
        runs.sort_by(f64::total_cmp);
        let hops = (devices + 1) as f64 * hop;
        let all = runs[2] + hops;
        println!(
            "{devices} devices, {sequences} sequences: {:>6.0} ns, and {hops:>5.0} ns in {} hops: {:.3} % of {:.2} ms",
            runs[2],
            devices + 1,
            100.0 * all / STEP_NS,
            STEP_NS / 1e6,
        );
        worst = worst.max(all);
    }
    Ok(worst / STEP_NS)
}
