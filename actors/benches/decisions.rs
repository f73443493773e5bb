//! Cost of a scheduler's decision with 128 waiting requests, under each queue policy: the time from a message to
//! the effects, when the message makes room for one more request, which is then chosen, admitted, and sent to a
//! device in a chunk. The row `moment` has three devices and eight routes for each chunk. Medians only.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use lapwing_actors::policy::{PolicyChoice, known};

#[path = "support/engine.rs"]
mod engine;
#[path = "support/routes.rs"]
mod routes;

use engine::{Asked, Engine, Size, VOCAB};
use routes::{Routes, choice};

const WAITING: usize = 128;
const DECISIONS: usize = 600;
/// Tokens of a prompt, and those that it has in common with others of its group.
const PROMPT: usize = 512;
const SHARED: usize = 384;
const GROUPS: usize = 8;
const CLIENTS: usize = 16;
/// Promised, in µs.
const DECISION_US: f64 = 20.0;
const CHOICE_US: f64 = 2.0;

/// A request with the prefix of one of the groups, from one of the clients.
fn asked(number: usize) -> Asked {
    let id = |at: usize, seed: usize| ((at * at + 31 * at * (seed + 1) + seed) % VOCAB) as u32;
    let shared = (0..SHARED).map(|at| id(at, number % GROUPS));
    let ids = shared.chain((SHARED..PROMPT).map(|at| id(at, number))).collect();
    Asked { client: format!("client {}", number % CLIENTS).into(), ids, tokens: 1 }
}

/// Median time of a decision in µs.
fn decision(policy: &str, prefix_cache: bool, devices: usize) -> Result<f64, Box<dyn Error>> {
    let size = Size {
        layers: 1,
        devices,
        context: PROMPT + 2,
        // Room for all requests of the run, so that nothing is dropped.
        cache_tokens: 64 * PROMPT,
        sequences_max: 1,
        requests_max: WAITING + 2,
        prefix_cache,
    };
    let policy = PolicyChoice::from(policy).make()?;
    let mut engine = match devices {
        1 => Engine::new(&size, policy)?,
        _ => Engine::with_strategy(&size, policy, Arc::new(Routes))?,
    };
    let mut streams = Vec::new();
    let mut sent = 0;
    let mut times = Vec::new();
    while times.len() < DECISIONS {
        while engine.waiting() < WAITING {
            streams.push(engine.submit(asked(sent))?);
            sent += 1;
        }
        engine.sends.clear();
        // Until one ends and the next one begins.
        while engine.waiting() == WAITING && engine.step() {}
        times.extend(engine.sends.last());
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[times.len() / 2] / 1e3)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    println!("policy            without a prefix cache   with one");
    let mut worst = 0.0_f64;
    for known in known() {
        // No request is refused.
        let is_limited = known.parameters().iter().any(|parameter| parameter.name == "rpm");
        let limit = if is_limited { ":rpm=1000000" } else { "" };
        let name = format!("{}{limit}", known.name());
        let (without, with) = (decision(&name, false, 1)?, decision(&name, true, 1)?);
        println!("{:<16} {without:>20.1} µs {with:>9.1} µs", known.name());
        worst = worst.max(without).max(with);
    }
    let (without, with) = (decision("fcfs", false, 3)?, decision("fcfs", true, 3)?);
    println!("{:<16} {without:>20.1} µs {with:>9.1} µs", "moment");
    worst = worst.max(without).max(with);
    let choice_us = choice()? / 1e3;
    let kept = worst <= DECISION_US && choice_us <= CHOICE_US;
    let word = if kept { "kept" } else { "NOT KEPT" };
    println!(
        "a decision at {WAITING} waiting requests takes at most {DECISION_US} µs, and a choice of a route {CHOICE_US} µs: {word}"
    );
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
