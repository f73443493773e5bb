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

/// A client of a synthetic workload. Its requests arrive as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadClient {
    /// Name.
    pub name: String,
    /// Requests per second.
    pub rate: Rate,
    /// Tokens of each prompt.
    pub prompt_tokens: usize,
    /// Tokens that each request generates.
    pub output_tokens: usize,
    /// Prefixes of its prompts, if they share any.
    pub prefixes: Option<SharedPrefixes>,
}

impl LoadClient {
    /// A client with a constant rate of requests per second, and no shared prefixes.
    pub fn new(name: &str, rate: Rate, prompt_tokens: usize, output_tokens: usize) -> LoadClient {
        LoadClient { name: name.to_owned(), rate, prompt_tokens, output_tokens, prefixes: None }
    }

    /// With shared prefixes.
    #[must_use]
    pub fn sharing(self, prefixes: SharedPrefixes) -> LoadClient {
        LoadClient { prefixes: Some(prefixes), ..self }
    }

    fn request(&self, at: f64, random: &mut Random) -> LoadRequest {
        let prefix = self.prefixes.as_ref().map(|shared| {
            let index = random.zipf(shared.count, shared.zipf);
            (format!("{} {index}", shared.name), shared.tokens.min(self.prompt_tokens))
        });
        LoadRequest {
            prefix: prefix.into_iter().collect(),
            ..LoadRequest::new(at, &self.name, self.prompt_tokens, self.output_tokens)
        }
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
        while at < duration {
            if random.unit() * most < client.rate.at(at, duration) {
                requests.push(client.request(at, &mut random));
            }
            at += random.exponential(1.0 / most);
        }
    }
    requests.sort_by(|one, other| one.at.total_cmp(&other.at));
    requests
}
