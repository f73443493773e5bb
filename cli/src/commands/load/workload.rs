//! The workload of `load`: a trace, or generated requests.

use std::fs::File;
use std::path::Path;

use lapwing_lab::load::{LoadClient, LoadRequest, Rate, SharedPrefixes, Trace, generate};
use lapwing_traces::text::counted;

use crate::cli::at_least_one;
use crate::cli::failure::Failure;
use crate::cli::session::Session;

/// A generated workload.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Generated requests")]
pub(crate) struct WorkloadArgs {
    /// Number of clients
    #[arg(long, value_name = "N", default_value = "8", value_parser = at_least_one)]
    clients: usize,

    /// Requests per second of each client, as a Poisson process
    #[arg(long, value_name = "RATE", default_value = "1", conflicts_with = "requests")]
    rate: f64,

    /// Seconds during which they arrive
    #[arg(long, value_name = "S", default_value = "10", conflicts_with = "requests")]
    duration: f64,

    /// In place of a rate: this number of requests of each client, all at the start
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    requests: Option<usize>,

    /// Tokens of each prompt
    #[arg(short, long, value_name = "N", default_value = "256", value_parser = at_least_one)]
    prompt_tokens: usize,

    /// Tokens that each request generates
    #[arg(short = 'n', long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    max_tokens: usize,

    /// First tokens of each prompt that are shared
    #[arg(long, value_name = "N", default_value = "0")]
    shared_prefix: usize,

    /// Number of different shared prefixes
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    prefixes: usize,

    /// Exponent of the Zipf distribution of their popularity; 0: all are equally popular
    #[arg(long, value_name = "X", default_value = "0")]
    zipf: f64,

    /// Each arrival is a conversation of this many requests, whose prompts begin with the prompts and
    /// answers before them
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one, conflicts_with = "requests")]
    turns: usize,

    /// Mean seconds from one turn to the next
    #[arg(long, value_name = "S", default_value = "5", requires = "turns")]
    think: f64,

    /// The same seed gives the same requests [default: 0, or that of the experiment]
    #[arg(short, long, value_name = "N")]
    pub(super) seed: Option<u64>,
}

/// Most requests of a generated workload.
const REQUESTS_MAX: f64 = 1e6;

impl WorkloadArgs {
    /// What is generated, in words, and the requests.
    pub(super) fn generated(&self) -> Result<(String, Vec<LoadRequest>), Failure> {
        let (rate, duration) = match self.requests {
            Some(_) => (1.0, 0.0),
            None => (self.rate, self.duration),
        };
        let is_possible = rate >= 0.0
            && duration >= 0.0
            && self.zipf.is_finite()
            && self.think >= 0.0
            && rate * duration * (self.clients * self.turns) as f64 <= REQUESTS_MAX
            && self.requests.unwrap_or(0).saturating_mul(self.clients) as f64 <= REQUESTS_MAX;
        if !is_possible {
            return Err(Failure::usage(format!(
                "rate, duration, --think and Zipf exponent must be positive numbers, and all clients together send at \
                 most {REQUESTS_MAX:.0} requests"
            )));
        }
        if self.shared_prefix > self.prompt_tokens {
            return Err(Failure::usage(format!(
                "--shared-prefix {} is more than the {} tokens of a prompt (--prompt-tokens)",
                self.shared_prefix, self.prompt_tokens
            )));
        }
        let seed = self.seed.unwrap_or(0);
        let clients: Vec<LoadClient> =
            (1..=self.clients).map(|number| self.client(number)).collect();
        let requests = match self.requests {
            None => generate(&clients, duration, seed),
            Some(requests) => {
                // As many arrivals as are needed for sure, all moved to the start.
                let burst = |number: usize| {
                    let seed = seed.wrapping_add(number as u64);
                    let long = requests as f64 * 3.0 + 100.0;
                    let arrivals = generate(&clients[number..=number], long, seed);
                    arrivals.into_iter().take(requests).map(|r| LoadRequest { at: 0.0, ..r })
                };
                (0..clients.len()).flat_map(burst).collect()
            }
        };
        let arrival = match self.requests {
            Some(requests) => format!("{} each, all at once", counted(requests, "request")),
            None => format!("{rate} requests/s each for {duration} s"),
        };
        let arrival = match self.turns {
            1 => arrival,
            turns => format!("{arrival}, in {turns} turns"),
        };
        let shared = match self.shared_prefix {
            0 => String::new(),
            tokens => format!(", {tokens} of them shared"),
        };
        let name = format!(
            "{}, {arrival}, {}{shared}, {} generated",
            counted(self.clients, "client"),
            counted(self.prompt_tokens, "prompt token"),
            self.max_tokens
        );
        Ok((name, requests))
    }

    fn client(&self, number: usize) -> LoadClient {
        let rate = Rate::Constant(if self.requests.is_some() { 1.0 } else { self.rate });
        let name = format!("client {number}");
        let client = LoadClient::new(&name, rate, self.prompt_tokens, self.max_tokens)
            .talking(self.turns, self.think);
        match self.shared_prefix {
            0 => client,
            tokens => {
                let name = "shared".to_owned();
                client.sharing(SharedPrefixes {
                    name,
                    count: self.prefixes,
                    tokens,
                    zipf: self.zipf,
                })
            }
        }
    }
}

/// Reads the first requests of a trace.
pub(super) fn read(
    path: &Path,
    first: Option<usize>,
    session: &Session,
) -> Result<(String, Vec<LoadRequest>), Failure> {
    let file = File::open(path).map_err(|error| Failure::file("read", path, &error))?;
    let trace = Trace::read(file)
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    let mut requests = trace.requests;
    if trace.failed > 0 {
        let form = trace.form;
        session.note(&format!(
            "note: {} of {} recorded requests ({form}) had no prompt or no answer and are left out",
            trace.failed,
            trace.failed + requests.len()
        ));
    }
    requests.truncate(first.unwrap_or(usize::MAX));
    Ok((path.display().to_string(), requests))
}
