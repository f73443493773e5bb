//! Synthetic workloads: clients with an arrival rate over time, lengths and shared prefixes.

use super::random::Random;
use super::request::LoadRequest;

/// Requests per second of a client over time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rate {
    /// Constant.
    Constant(f64),
    /// Constant during the first `on` seconds of each `on + off` seconds, and 0 in the rest.
    OnOff {
        /// Requests per second while it is on.
        rate: f64,
        /// Seconds on.
        on: f64,
        /// Seconds off.
        off: f64,
    },
    /// Linear from the start to the end of the run.
    Ramp {
        /// Requests per second at the start.
        from: f64,
        /// Requests per second at the end.
        to: f64,
    },
    /// Constant within each of several parts of equal length.
    Steps(Vec<f64>),
}

impl Rate {
    /// Requests per second at a time of a run of `duration` seconds.
    fn at(&self, at: f64, duration: f64) -> f64 {
        match self {
            Rate::Constant(rate) => *rate,
            Rate::OnOff { rate, on, off } => {
                if at % (on + off) < *on {
                    *rate
                } else {
                    0.0
                }
            }
            Rate::Ramp { from, to } => from + (to - from) * at / duration,
            Rate::Steps(rates) => {
                let step = (at / duration * rates.len() as f64) as usize;
                rates.get(step.min(rates.len().saturating_sub(1))).copied().unwrap_or(0.0)
            }
        }
    }

    fn most(&self) -> f64 {
        match self {
            Rate::Constant(rate) | Rate::OnOff { rate, .. } => *rate,
            Rate::Ramp { from, to } => from.max(*to),
            Rate::Steps(rates) => rates.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// Shared beginnings of a client's prompts: `count` prefixes of `tokens` tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPrefixes {
    /// Clients that name the same set share its prefixes.
    pub name: String,
    /// Number of prefixes.
    pub count: usize,
    /// Tokens of each.
    pub tokens: usize,
    /// Exponent of the Zipf distribution of their popularity; 0 makes them equally popular.
    pub zipf: f64,
}

/// A client of a synthetic workload. Its requests, or its conversations, arrive as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadClient {
    /// Name.
    pub name: String,
    /// Requests per second, or conversations if they have several turns.
    pub rate: Rate,
    /// Tokens of each prompt; in a conversation, those of the first, and what each turn adds without the shared
    /// prefix.
    pub prompt_tokens: usize,
    /// Tokens that each request generates.
    pub output_tokens: usize,
    /// Prefixes of its prompts, if they share any.
    pub prefixes: Option<SharedPrefixes>,
    /// Turns of a conversation. The prompt of a turn begins with the prompts and the answers of those before it.
    pub turns: usize,
    /// Mean seconds from one turn to the next, which are distributed exponentially.
    pub think: f64,
}

impl LoadClient {
    /// A client with a constant rate of requests per second, and no shared prefixes.
    pub fn new(name: &str, rate: Rate, prompt_tokens: usize, output_tokens: usize) -> LoadClient {
        let (name, prefixes, turns, think) = (name.to_owned(), None, 1, 0.0);
        LoadClient { name, rate, prompt_tokens, output_tokens, prefixes, turns, think }
    }

    /// With shared prefixes.
    #[must_use]
    pub fn sharing(self, prefixes: SharedPrefixes) -> LoadClient {
        LoadClient { prefixes: Some(prefixes), ..self }
    }

    /// With conversations of several turns (at least 1), and a mean time between turns in seconds.
    #[must_use]
    pub fn talking(self, turns: usize, think: f64) -> LoadClient {
        LoadClient { turns: turns.max(1), think, ..self }
    }

    /// The turns of the conversation of that number that arrive before `end`.
    fn conversation(
        &self,
        at: f64,
        end: f64,
        number: usize,
        random: &mut Random,
    ) -> Vec<LoadRequest> {
        let shared = self.prefixes.as_ref().map(|shared| {
            let index = random.zipf(shared.count, shared.zipf);
            (format!("{} {index}", shared.name), shared.tokens.min(self.prompt_tokens))
        });
        let own = self.prompt_tokens - shared.as_ref().map_or(0, |(_, tokens)| *tokens);
        let mut prefix: Vec<(String, usize)> = shared.into_iter().collect();
        let (mut at, mut prompt_tokens, mut turns) = (at, self.prompt_tokens, Vec::new());
        for turn in 1..=self.turns {
            let part = |what: &str| format!("{} {number} {what} {turn}", self.name);
            if self.turns > 1 {
                prefix.push((part("prompt"), own));
            }
            turns.push(LoadRequest {
                prefix: prefix.clone(),
                ..LoadRequest::new(at, &self.name, prompt_tokens, self.output_tokens)
            });
            if turn < self.turns {
                at += random.exponential(self.think);
                prefix.push((part("answer"), self.output_tokens));
                prompt_tokens += self.output_tokens + own;
            }
            if at >= end {
                break;
            }
        }
        turns
    }
}

/// The requests of these clients in `duration` seconds, in order of arrival. The same seed gives the same
/// requests; each client has its own random numbers, so that adding one changes no other.
pub fn generate(clients: &[LoadClient], duration: f64, seed: u64) -> Vec<LoadRequest> {
    let mut requests = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let most = client.rate.most();
        // Thinning: arrivals at the highest rate, of which a part is kept. At rate 0 the first is after the end.
        let mut at = random.exponential(1.0 / most);
        let mut number = 0;
        while at < duration {
            if random.unit() * most < client.rate.at(at, duration) {
                requests.extend(client.conversation(at, duration, number, &mut random));
                number += 1;
            }
            at += random.exponential(1.0 / most);
        }
    }
    requests.sort_by(|one, other| one.at.total_cmp(&other.at));
    requests
}
