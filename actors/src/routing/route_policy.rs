//! What a routing policy decides, and what it is told.

use lapwing_traces::Nanos;

use super::worker::WorkerId;
use super::workers::Workers;
use crate::policy::ClientId;

/// A request that has just arrived.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Its number, which no other request has.
    pub number: u64,
    /// Client that sent it.
    pub client: &'a ClientId,
    /// Token ids of its prompt.
    pub ids: &'a [u32],
    /// Most tokens that it may generate.
    pub tokens_max: usize,
}

/// A request that was sent to a worker.
#[derive(Clone, Copy, Debug)]
pub struct SentRequest<'a> {
    /// Its number.
    pub number: u64,
    /// Client that sent it.
    pub client: &'a ClientId,
    /// The worker.
    pub worker: WorkerId,
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Tokens generated so far.
    pub generated_tokens: usize,
    /// When it was sent.
    pub sent: Nanos,
    /// When its first token came; `None` if it has had none.
    pub first_token: Option<Nanos>,
}

/// Chooses workers.
///
/// The life of a request is `route`, then `first_token` if it gets one, then `finish`. Times never go back. A policy owns no clock
/// and draws no random numbers but those of a seed, so that equal calls have equal answers. The methods that report what happens
/// do nothing by default: a policy needs none of them if it decides by [`Workers`] alone.
pub trait RoutePolicy: Send {
    /// Name on the command line.
    fn name(&self) -> &str;

    /// The worker that serves a request which arrives at time `now`, one of `workers`. The request is not counted there yet; its caller
    /// sends it to that worker.
    fn route(&mut self, request: &Incoming<'_>, workers: &Workers, now: Nanos) -> WorkerId;

    /// A request has had its first token.
    fn first_token(&mut self, request: &SentRequest<'_>, now: Nanos) {
        let _ = (request, now);
    }

    /// A request has left its worker, with all of its tokens or not.
    fn finish(&mut self, request: &SentRequest<'_>, now: Nanos) {
        let _ = (request, now);
    }

    /// The prefix cache of a worker, one of `workers`, has a text, whatever router sent it there. Routers that have an index of the caches tell it
    /// of the prompt that arrives, to policies that hear evictions.
    fn cached(&mut self, worker: WorkerId, text: &[u32], workers: &Workers, now: Nanos) {
        let _ = (worker, text, workers, now);
    }

    /// Whether it wants to be told what caches drop.
    fn hears_evictions(&self) -> bool {
        false
    }

    /// The prefix cache of a worker has no longer more than the first `kept` tokens of a text.
    fn evicted(&mut self, worker: WorkerId, text: &[u32], kept: usize) {
        let _ = (worker, text, kept);
    }

    /// Numbers that explain its decisions, by name.
    fn numbers(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}
