//! What an engine has done and is doing, by client.

use lapwing_traces::event::StallCause;
use lapwing_traces::report::Percentiles;

use crate::policy::ClientId;

/// The state of an engine at one moment, and its work since its start.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Requests that wait to be admitted.
    pub waiting: usize,
    /// Requests that run.
    pub running: usize,
    /// Each request that runs, by rank.
    pub requests: Vec<RunningRequest>,
    /// Requests that have rows which are ready and not sent to a device, or that wait to be admitted, by cause.
    pub stalled: Vec<(StallCause, usize)>,
    /// Chunks in flight.
    pub chunks: usize,
    /// Pages of the KV caches of all models.
    pub kv_pages: usize,
    /// Those of them that requests lease, or that a lost device may still write.
    pub kv_pages_leased: usize,
    /// Pages that the prefix caches hold; requests lease some of them.
    pub kv_pages_cached: usize,
    /// Places of states of layers, of all models that have some.
    pub states: usize,
    /// Those of them in which the prefix caches keep states.
    pub states_cached: usize,
    /// Prepared graphs of NPUs.
    pub graphs: GraphStats,
    /// Streams and prompts beside each other.
    pub pace: PaceStats,
    /// The work of all clients.
    pub all: Work,
    /// Times of the requests of all clients.
    pub latencies: Latencies,
    /// Each client, by name. An engine remembers the clients that have requests and up to
    /// [`CLIENTS_MAX`] others, those that sent a request last.
    pub clients: Vec<ClientStats>,
    /// Name of the queue policy.
    pub policy: String,
    /// Numbers that explain the policy's decisions, such as the counter of each client, by name.
    pub policy_numbers: Vec<(String, f64)>,
}

impl EngineStats {
    /// The work of several engines in all, with the requests that they have. One engine's is its own, with all that it says; of several,
    /// clients, latencies and the policies' numbers are left out.
    pub fn of_all(engines: &[EngineStats]) -> EngineStats {
        if let [one] = engines {
            return one.clone();
        }
        let mut all = EngineStats::default();
        for engine in engines {
            all.waiting += engine.waiting;
            all.running += engine.running;
            all.chunks += engine.chunks;
            all.kv_pages += engine.kv_pages;
            all.kv_pages_leased += engine.kv_pages_leased;
            all.kv_pages_cached += engine.kv_pages_cached;
            all.all.add(&engine.all);
            all.policy.clone_from(&engine.policy);
        }
        all
    }
}

/// A request that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningRequest {
    /// Its number in recordings.
    pub number: u64,
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Those of them that the prefix cache had.
    pub cached_tokens: usize,
    /// Those that are computed though the prefix cache had their keys and values
    /// ([`RequestTimes::recomputed_tokens`](lapwing_traces::RequestTimes::recomputed_tokens)).
    pub recomputed_tokens: usize,
    /// Those whose rows are there, with the cached ones.
    pub computed_tokens: usize,
    /// Tokens that were generated.
    pub generated_tokens: usize,
}

/// Streams and prompts beside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaceStats {
    /// Chunks with fewer prompt rows because a stream with a token gap was due.
    pub chunks_limited: u64,
    /// Chunks that were kept short for streams without a token gap, or as background work.
    pub chunks_short: u64,
    /// Tokens that came later than the token gap of their stream.
    pub tokens_late: u64,
    /// Chunks with fewer prompt rows for streams, by the error of their predicted time as a share of the real one: at most
    /// each of [`TIME_ERRORS`] and more than the one before, then beyond the last.
    pub time_errors: [u64; TIME_ERRORS.len() + 1],
}

/// Bounds of the errors of predicted times that [`PaceStats::time_errors`] counts.
pub const TIME_ERRORS: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.5];

impl PaceStats {
    /// Records the error of a chunk's predicted time. Both times have the same unit.
    pub(crate) fn record_error(&mut self, predicted: f64, real: f64) {
        let error = (predicted / real - 1.0).abs();
        self.time_errors[TIME_ERRORS.partition_point(|bound| *bound < error)] += 1;
    }

    /// For each of [`TIME_ERRORS`], the number of chunks whose error is at most that, then the number of all chunks.
    pub fn time_errors_within(&self) -> [u64; TIME_ERRORS.len() + 1] {
        let mut within = 0;
        self.time_errors.map(|chunks| {
            within += chunks;
            within
        })
    }
}

/// Prepared graphs of all devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphStats {
    /// Graphs that are ready.
    pub ready: usize,
    /// Graphs that chunks have lacked and that are not ready yet. They are prepared while the engine has no request.
    pub wanted: usize,
    /// Whether one of those is being prepared, or will be once there is no request. The others do not fit, or cannot be prepared.
    pub is_pending: bool,
    /// Chunks that other devices computed because graphs of their strategy were not ready.
    pub chunks_elsewhere: u64,
}

/// Most clients without requests that an engine remembers.
pub const CLIENTS_MAX: usize = 1000;

/// A client's requests.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientStats {
    /// The client.
    pub client: ClientId,
    /// Its requests that wait to be admitted.
    pub waiting: usize,
    /// Its requests that run.
    pub running: usize,
    /// Its work since the engine started, or since the client was forgotten.
    pub work: Work,
    /// Prompt tokens computed for it in the last 60 seconds.
    pub prompt_tokens_last_minute: usize,
    /// Tokens generated for it in the last 60 seconds.
    pub generated_tokens_last_minute: usize,
    /// Times of its requests.
    pub latencies: Latencies,
}

/// Times of the last [`REQUESTS_KEPT`] completed requests with generated tokens, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Latencies {
    /// From submission to admission.
    pub queued_ms: Percentiles,
    /// Time to first token, from submission.
    pub ttft_ms: Percentiles,
    /// Time per output token after the first, of requests with at least two.
    pub tpot_ms: Percentiles,
}

/// Completed requests of a client whose times an engine remembers.
pub const REQUESTS_KEPT: usize = 256;

/// Numbers of requests, and of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// Requests that were sent, without those that were refused.
    pub requests: usize,
    /// Requests that the queue policy refused.
    pub refused: usize,
    /// Requests that have all of their tokens.
    pub finished: usize,
    /// Requests that failed.
    pub failed: usize,
    /// Requests whose stream was dropped.
    pub cancelled: usize,
    /// How many times a request lost its KV pages to another one.
    pub preempted: usize,
    /// Prompt tokens that the prefix cache had.
    pub cached_tokens: usize,
    /// Prompt tokens that were computed though the prefix cache had their keys and values: states of recurrent layers were kept
    /// only before them.
    pub recomputed_tokens: usize,
    /// Prompt tokens that were computed, each once.
    pub prompt_tokens: usize,
    /// Rows that were computed again after a preemption or a roll-back.
    pub recomputed_rows: usize,
    /// Generated tokens.
    pub generated_tokens: usize,
}

impl Work {
    fn add(&mut self, other: &Work) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.finished += other.finished;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.preempted += other.preempted;
        self.cached_tokens += other.cached_tokens;
        self.recomputed_tokens += other.recomputed_tokens;
        self.prompt_tokens += other.prompt_tokens;
        self.recomputed_rows += other.recomputed_rows;
        self.generated_tokens += other.generated_tokens;
    }
}
