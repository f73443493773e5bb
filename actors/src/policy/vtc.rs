//! The virtual token counter.

use std::collections::HashMap;

use lapwing_plan::registry::{Parameter, Parameters};
use lapwing_traces::Nanos;

use super::candidate::{Candidate, Charge, End};
use super::client::ClientId;
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use crate::sequence::SequenceId;

/// The virtual token counter (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024): the client with
/// the least service goes first. A client's counter grows by `prompt` · prompt tokens / weight when a request of it
/// is admitted, and by `output` / weight for each generated token. A client that comes back after it had nothing in
/// the queue is lifted to the least counter in the queue, or to that of the client which left it last: idling earns
/// no credit. A request that does not fit blocks those of other clients.
///
/// Two clients that always have requests in the queue differ by at most 2 · max(`prompt` · longest prompt, `output` ·
/// tokens of the KV cache).
///
/// With `predict`, the output that is expected of a request is charged at its admission, and corrected at its end;
/// the expectation of a client is (4 · old + new) / 5 of its finished requests.
#[derive(Clone, Debug)]
pub struct Vtc {
    /// Service of a prompt token.
    pub prompt: f64,
    /// Service of a generated token.
    pub output: f64,
    /// Whether the expected output is charged at admission.
    pub predict: bool,
    /// Weights of clients; 1 for others.
    pub weights: HashMap<ClientId, f64>,
    clients: HashMap<ClientId, Client>,
    /// Counter of the client that last had nothing left in the queue.
    last_left: f64,
    /// Output tokens charged in advance for each request that was admitted.
    admitted: HashMap<SequenceId, f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    counter: f64,
    waiting: usize,
    /// Output tokens that are expected of a request; `None` before one has finished.
    expected: Option<f64>,
}

impl Vtc {
    /// All counters are 0.
    pub fn new(prompt: f64, output: f64, predict: bool, weights: HashMap<ClientId, f64>) -> Vtc {
        let (clients, admitted) = (HashMap::new(), HashMap::new());
        Vtc { prompt, output, predict, weights, clients, last_left: 0.0, admitted }
    }

    /// Counter of a client.
    pub fn counter(&self, client: &ClientId) -> f64 {
        self.clients.get(client).map_or(0.0, |client| client.counter)
    }

    fn add(&mut self, client: &ClientId, service: f64) {
        let weight = self.weights.get(client).copied().unwrap_or(1.0);
        self.clients.entry(client.clone()).or_default().counter += service / weight;
    }

    /// Adds one request to those of a client in the queue.
    fn enter(&mut self, client: &ClientId) {
        let queued = self.clients.values().filter(|client| client.waiting > 0);
        let least = queued.map(|client| client.counter).min_by(f64::total_cmp);
        let last_left = self.last_left;
        let entry = self.clients.entry(client.clone()).or_default();
        if entry.waiting == 0 {
            entry.counter = entry.counter.max(least.unwrap_or(last_left));
        }
        entry.waiting += 1;
    }

    fn leave(&mut self, client: &ClientId) {
        if let Some(client) = self.clients.get_mut(client) {
            client.waiting = client.waiting.saturating_sub(1);
            if client.waiting == 0 {
                self.last_left = client.counter;
            }
        }
    }
}

impl Default for Vtc {
    fn default() -> Vtc {
        Vtc::new(1.0, 2.0, false, HashMap::new())
    }
}

pub(super) const PROMPT: Parameter =
    Parameter::new("prompt", "service of a prompt token", 1.0, 0.0..=1e3);
pub(super) const OUTPUT: Parameter =
    Parameter::new("output", "service of a generated token", 2.0, 0.0..=1e3);
pub(super) const WEIGHT: Parameter =
    Parameter::new("weight.CLIENT", "share of a client in relation to others", 1.0, 1e-3..=1e3);

/// Weights of clients other than 1.
pub(super) fn weights(parameters: &Parameters) -> HashMap<ClientId, f64> {
    parameters.each("weight").map(|(client, weight)| (client.into(), weight)).collect()
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "vtc",
    "virtual token counter: the client with the least service first",
    &[
        PROMPT,
        OUTPUT,
        Parameter::new("predict", "1 charges the expected output at admission", 0.0, 0.0..=1.0),
        WEIGHT,
    ],
    |p| {
        let predict = p.value("predict") >= 0.5;
        Box::new(Vtc::new(p.value("prompt"), p.value("output"), predict, weights(p)))
    },
);

impl QueuePolicy for Vtc {
    fn name(&self) -> &str {
        "vtc"
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        Rank::by(self.counter(request.client))
    }

    fn arrive(&mut self, request: &Candidate<'_>, _now: Nanos) {
        self.enter(request.client);
    }

    fn admitted(&mut self, request: &Candidate<'_>, _now: Nanos) {
        // A request that was preempted has been charged.
        if !self.admitted.contains_key(&request.sequence) {
            let expected = self.clients.get(request.client).and_then(|client| client.expected);
            let expected = expected.filter(|_| self.predict).unwrap_or(0.0);
            let expected = expected.min(request.tokens_max as f64);
            self.admitted.insert(request.sequence, expected);
            let prompt = self.prompt * request.prompt_tokens as f64;
            self.add(request.client, prompt + self.output * expected);
        }
        self.leave(request.client);
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, _now: Nanos) {
        let mut tokens = charge.generated_tokens as f64;
        if let Some(paid) = self.admitted.get_mut(&request.sequence) {
            let covered = tokens.min(*paid);
            *paid -= covered;
            tokens -= covered;
        }
        self.add(request.client, self.output * tokens);
    }

    /// It was in service all the time, so its client is not lifted.
    fn evicted(&mut self, request: &Candidate<'_>, _rows: usize, _now: Nanos) {
        self.clients.entry(request.client.clone()).or_default().waiting += 1;
    }

    fn finish(&mut self, request: &Candidate<'_>, end: End, _now: Nanos) {
        if !request.running {
            self.leave(request.client);
        }
        let paid = self.admitted.remove(&request.sequence).unwrap_or(0.0);
        self.add(request.client, -self.output * paid);
        let entry = self.clients.entry(request.client.clone()).or_default();
        if end == End::Completed {
            let new = request.generated_tokens as f64;
            entry.expected = Some(entry.expected.map_or(new, |old| (4.0 * old + new) / 5.0));
        }
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let counter =
            |(name, client): (&ClientId, &Client)| (format!("counter {name}"), client.counter);
        let mut numbers: Vec<_> = self.clients.iter().map(counter).collect();
        numbers.sort_by(|one, other| one.0.cmp(&other.0));
        numbers
    }
}
