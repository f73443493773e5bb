//! Workloads on a modelled server in virtual time.

use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::RunError;
use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::scheduler::{Batches, Reserve};
use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::arrival::{Arrival, Failed, Served};
use lapwing_actors::simulate::serving::{Serving, VOCAB};
use lapwing_actors::stats::EngineStats;
use lapwing_plan::time::{Job, TimeModel};
use lapwing_traces::Nanos;

use super::cost::PassTime;
use super::outcome::RequestOutcome;
use super::request::LoadRequest;

/// A modelled server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Time of its passes.
    pub time: PassTime,
    /// Tokens that its KV cache holds.
    pub kv_tokens: usize,
    /// Maximum prompt rows of a pass.
    pub chunk_rows: usize,
    /// Maximum requests computed at the same time.
    pub sequences_max: usize,
    /// Whether requests share common prefixes.
    pub prefix_cache: bool,
    /// Target of the time between two tokens of a stream; `None` has passes as large as they may be, as published servers do.
    pub token_gap: Option<Duration>,
    /// How it admits requests and forms passes.
    pub options: ServerOptions,
}

/// How a modelled server admits requests and forms passes. By default as the engine does, with passes of which the device takes
/// all of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// Time that each pass takes beside that of its cost: scheduling, detokenising, and what else its host does.
    pub host: Duration,
    /// How much room a request finds when it is admitted.
    pub reserve: Reserve,
    /// How batches of prompts are formed.
    pub batches: Batches,
}

/// Times of passes with those of the host.
struct WithHost {
    time: PassTime,
    host: Duration,
}

impl TimeModel for WithHost {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        self.host
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        self.time.node_time(job, node)
    }
}

/// Tokens of a KV page. Prefixes of modelled servers are shared token by token.
const PAGE_ROWS: usize = 1;

impl Server {
    /// Serves a workload under a policy, until all requests have ended or for `until` seconds. Returns what became
    /// of each request, and what the server did in all.
    ///
    /// # Errors
    /// [`SocRunError`] if the policy is unknown, or requests are left although nothing happens any more.
    pub fn run(
        &self,
        requests: &[LoadRequest],
        policy: &PolicyChoice,
        until: Option<f64>,
    ) -> Result<(Vec<RequestOutcome>, EngineStats), SocRunError> {
        let arrivals: Vec<Arrival> = requests.iter().enumerate().map(arrival).collect();
        let (served, stats) = self.serving(policy)?.run(&arrivals, until.map(nanos))?;
        let served = requests.iter().zip(served);
        Ok((served.map(|(request, served)| outcome(request, served)).collect(), stats))
    }

    /// A server of this kind without requests.
    pub(super) fn serving(&self, policy: &PolicyChoice) -> Result<Serving, SocRunError> {
        Ok(Serving {
            time: Arc::new(WithHost { time: self.time, host: self.options.host }),
            kv_tokens: self.kv_tokens,
            page_rows: PAGE_ROWS,
            chunk_rows: self.chunk_rows,
            sequences_max: self.sequences_max,
            prefix_cache: self.prefix_cache,
            token_gap: self.token_gap,
            reserve: self.options.reserve,
            batches: self.options.batches,
            policy: policy.make()?,
        })
    }
}

/// Seconds as virtual time.
pub(super) fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9).round() as u64)
}

/// A request, with its number in the workload, as it arrives at a server.
pub(super) fn arrival(request: (usize, &LoadRequest)) -> Arrival {
    let (number, request) = request;
    let ids = request.ids(number, &(0..VOCAB as u32));
    Arrival {
        client: request.client.as_str().into(),
        urgency: request.urgency(),
        ..Arrival::new(nanos(request.at), ids, request.output_tokens)
    }
}

/// What became of a request of a workload.
pub(super) fn outcome(request: &LoadRequest, served: Served) -> RequestOutcome {
    let seconds = |at: Nanos| at.0 as f64 / 1e9;
    RequestOutcome {
        client: request.client.clone(),
        at: request.at,
        prompt_tokens: request.prompt_tokens,
        output_tokens: request.output_tokens,
        cached_tokens: served.times.map_or(0, |times| times.cached_tokens),
        admitted: served.times.map(|times| seconds(times.admitted)),
        refused: served.tokens.is_empty() && served.failed.as_ref().is_some_and(is_refusal),
        tokens: served.tokens.into_iter().map(seconds).collect(),
        finished: served.times.is_some(),
        error: served.failed.map(|failed| failed.error.to_string()),
    }
}

/// Whether a request was turned away: by a limit of the policy, or because the KV cache can never hold it.
fn is_refusal(failed: &Failed) -> bool {
    matches!(failed.error, RunError::RateLimited { .. } | RunError::OutOfKvPages { .. })
}
