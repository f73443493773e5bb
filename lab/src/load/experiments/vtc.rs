//! The experiments of VTC (Sheng et al., 2024): the settings of its artifact (Ying1123/VTC-artifact), with the arrivals that
//! its seed gives.

use std::time::Duration;

use lapwing_actors::scheduler::{Batches, Reserve};

use super::ExperimentError;
use crate::load::cost::{CostError, PassTime};
use crate::load::mersenne::Mersenne;
use crate::load::request::LoadRequest;
use crate::load::server::{Server, ServerOptions};
use crate::load::trace::Trace;

/// Requests of 27 clients of Chatbot Arena, and measured costs, from the artifact.
const ARENA: &str = include_str!("../traces/arena-27-clients.jsonl");
const A10G: &str = include_str!("../traces/a10g-llama-2-7b-cost.json");

/// Tokens of a prompt, and of an answer.
const TOKENS: usize = 256;

/// Seconds that a client of the on-off experiments sends, and then pauses.
const PAUSE: f64 = 60.0;

const KV_TOKENS: usize = 10_000;

/// Most prompt tokens of a batch: the greater of 3072 and a sixth of the KV cache.
const BATCH_TOKENS: usize = 3072;

/// Time of the host in each pass, with which FCFS serves 875 tokens/s in `vtc-on-off`, as published.
/// `docs/load.md` says how it was found, and a test that it still holds.
const HOST: Duration = Duration::from_micros(4265);

/// Weights of the clients of `vtc-4-clients`.
pub(super) const WEIGHTS: [(&str, &str); 2] = [
    ("vtc", "weight.client 1=1,weight.client 2=2,weight.client 3=3,weight.client 4=4"),
    ("dlpm", "weight.client 1=1,weight.client 2=2,weight.client 3=3,weight.client 4=4"),
];

/// Llama-2-7B on an A10G in the published server: prompts in batches of their own, every 10 steps, and no preemption.
pub(super) fn server() -> Result<Server, CostError> {
    Ok(Server {
        time: PassTime::fit(A10G)?,
        kv_tokens: KV_TOKENS,
        chunk_rows: BATCH_TOKENS,
        sequences_max: 1000,
        prefix_cache: false,
        token_gap: None,
        options: ServerOptions {
            host: HOST,
            reserve: Reserve::Peak,
            batches: Batches { alone: true, prompt_tokens: Some(BATCH_TOKENS), steps: 10 },
        },
    })
}

pub(super) fn requests(name: &str, seed: u64) -> Result<Vec<LoadRequest>, ExperimentError> {
    let mut random = Mersenne::new(seed as u32);
    let mut requests = match name {
        "vtc-arena" => Trace::read(ARENA.as_bytes())?.requests,
        "vtc-short-long" => short_long(&mut random),
        "vtc-ramp" => ramp(),
        "vtc-shift" => [
            Part { from: 0.0, seconds: 300.0, rates: &[0.5, 2.0], pauses: true },
            Part { from: 300.0, seconds: 300.0, rates: &[1.0, 1.0], pauses: false },
            Part { from: 600.0, seconds: 300.0, rates: &[0.5, 1.5], pauses: false },
        ]
        .iter()
        .flat_map(|part| part.requests(&mut random))
        .collect(),
        _ => even(name).requests(&mut random),
    };
    requests.sort_by(|one, other| one.at.total_cmp(&other.at));
    Ok(requests)
}

/// Clients that send requests at equal distances, each from a random time within the first of them on.
struct Part {
    from: f64,
    seconds: f64,
    /// Requests per second of each client.
    rates: &'static [f64],
    /// Whether the first client pauses in every other minute.
    pauses: bool,
}

fn even(name: &str) -> Part {
    let part = |seconds, rates, pauses| Part { from: 0.0, seconds, rates, pauses };
    match name {
        "vtc-overload-600" => part(600.0, &[1.5, 3.0], false),
        "vtc-8-clients" => part(360.0, &[0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6], false),
        "vtc-proportional" => part(600.0, &[0.25, 0.5, 1.5], false),
        "vtc-4-clients" => part(360.0, &[0.8, 0.8, 1.2, 1.6], false),
        "vtc-on-off" => part(600.0, &[0.5, 2.0], true),
        "vtc-on-off-overload" => part(600.0, &[2.0, 3.0], true),
        _ => part(360.0, &[1.5, 3.0], false),
    }
}

fn request(at: f64, client: usize) -> LoadRequest {
    LoadRequest::new(at, &format!("client {client}"), TOKENS, TOKENS)
}

fn is_paused(at: f64) -> bool {
    (at / PAUSE).floor() % 2.0 == 1.0
}

impl Part {
    fn requests(&self, random: &mut Mersenne) -> Vec<LoadRequest> {
        let mut requests = Vec::new();
        for (number, rate) in self.rates.iter().enumerate() {
            let mut at = self.from + random.unit() / rate;
            for _ in 0..(rate * self.seconds) as usize {
                at += 1.0 / rate;
                if !(self.pauses && number == 0 && is_paused(at)) {
                    requests.push(request(at, number + 1));
                }
            }
        }
        requests
    }
}

/// One Poisson process of 9.5 requests/s, of which 8 are short: a quarter of the tokens of the others.
fn short_long(random: &mut Mersenne) -> Vec<LoadRequest> {
    const SHORT: f64 = 8.0;
    const ALL: f64 = 9.5;
    let count = (ALL * 600.0) as usize;
    let are_long: Vec<bool> = (0..count).map(|_| random.unit() > SHORT / ALL).collect();
    let mut at = 0.0;
    let request = |is_long: bool| {
        at += random.exponential(1.0 / ALL);
        match is_long {
            true => LoadRequest::new(at, "long", TOKENS, TOKENS),
            false => LoadRequest::new(at, "short", TOKENS / 4, TOKENS / 4),
        }
    };
    are_long.into_iter().map(request).collect()
}

/// 0.5 requests/s, and from 0.2 to 2 requests/s; both begin at 0.
fn ramp() -> Vec<LoadRequest> {
    const SECONDS: f64 = 600.0;
    let (from, to) = (0.2, 2.0);
    let mut requests: Vec<LoadRequest> =
        (1..=300).map(|number| request(f64::from(number) / 0.5, 1)).collect();
    let mut at = 0.0;
    for _ in 0..(0.5 * (from + to) * SECONDS) as usize {
        at += 1.0 / (from + (to - from) * at / SECONDS);
        requests.push(request(at, 2));
    }
    requests
}
