//! Deficit longest prefix match.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::candidate::{Candidate, Charge, End};
use super::client::ClientId;
use super::entry::PolicyEntry;
use super::lpm::{Lpm, MOST};
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use super::vtc::{OUTPUT, PROMPT, WEIGHT, weights};
use crate::sequence::SequenceId;

/// Deficit longest prefix match (Cao et al., "Locality-aware Fair Scheduling in LLM Serving", 2025, algorithm 1): requests
/// of clients with credit go first, in the order of the longest prefix match. A client's credit falls by
/// `prompt` · the prompt tokens that are not cached when a request of it is admitted, and by `output` for each generated
/// token. When no client in the queue has credit, all known clients without credit get `quantum`, as often as the
/// first of those in the queue needs it. Clients of whom nothing was heard for `memory` are forgotten.
///
/// A large quantum gives the order of [`Lpm`], a small one is close to [`Vtc`](super::Vtc). One client alone always has
/// the order of [`Lpm`].
#[derive(Clone, Debug)]
pub struct Dlpm {
    /// Credit of a refill.
    pub quantum: f64,
    /// Charge of a prompt token that is not cached.
    pub prompt: f64,
    /// Charge of a generated token.
    pub output: f64,
    /// Time after which a client without requests is forgotten.
    pub memory: Duration,
    /// Weights of clients, which multiply the quantum; 1 for others.
    pub weights: HashMap<ClientId, f64>,
    lpm: Lpm,
    clients: Clients,
    /// Uncached tokens of waiting requests at the latest survey, by number of the request.
    uncached: Vec<(SequenceId, usize)>,
    refills: f64,
}

/// Every request of the queue is looked up at each decision.
type Clients = foldhash::HashMap<ClientId, Client>;

#[derive(Clone, Copy, Debug)]
struct Client {
    credit: f64,
    requests: usize,
    seen: Nanos,
}

impl Dlpm {
    /// A policy with these parameters. No client has credit yet.
    pub fn new(quantum: f64, prompt: f64, output: f64, weights: HashMap<ClientId, f64>) -> Dlpm {
        Dlpm {
            quantum,
            prompt,
            output,
            memory: Duration::from_secs(3600),
            weights,
            lpm: Lpm::default(),
            clients: Clients::default(),
            uncached: Vec::new(),
            refills: 0.0,
        }
    }

    /// With longest prefixes compared for at most so many waiting requests, as [`Lpm::most`].
    #[must_use]
    pub fn comparing(mut self, most: usize) -> Dlpm {
        self.lpm.most = most;
        self
    }

    /// Credit of a client.
    pub fn credit(&self, client: &ClientId) -> f64 {
        self.clients.get(client).map_or(0.0, |client| client.credit)
    }

    fn quantum_of(&self, client: &ClientId) -> f64 {
        self.quantum * self.weights.get(client).copied().unwrap_or(1.0)
    }

    fn refill(&mut self, waiting: &[Candidate<'_>]) {
        let credits =
            || waiting.iter().map(|request| (request.client, self.credit(request.client)));
        if waiting.is_empty() || credits().any(|(_, credit)| credit > 0.0) {
            return;
        }
        let rounds =
            |(client, credit): (&ClientId, f64)| (-credit / self.quantum_of(client)).floor() + 1.0;
        let rounds = credits().map(rounds).min_by(f64::total_cmp).unwrap_or(1.0);
        self.refills += rounds;
        let names: Vec<ClientId> = self.clients.keys().cloned().collect();
        for name in names {
            let quantum = self.quantum_of(&name);
            if let Some(client) = self.clients.get_mut(&name).filter(|c| c.credit <= 0.0) {
                // One that has less debt than others does not save up more than one quantum.
                client.credit = (client.credit + rounds * quantum).min(quantum);
            }
        }
    }
}

impl Default for Dlpm {
    /// The quantum is a few requests of ordinary length.
    fn default() -> Dlpm {
        Dlpm::new(2000.0, 1.0, 2.0, HashMap::new())
    }
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "dlpm",
    "deficit longest prefix match: locality within each client's credit",
    &[
        Parameter::new("quantum", "credit of a refill", 2000.0, 1e-3..=1e9),
        PROMPT,
        OUTPUT,
        MOST,
        WEIGHT,
    ],
    |p| {
        let (quantum, prompt, output) = (p.value("quantum"), p.value("prompt"), p.value("output"));
        Box::new(Dlpm::new(quantum, prompt, output, weights(p)).comparing(p.count("most")))
    },
);

impl QueuePolicy for Dlpm {
    fn name(&self) -> &str {
        "dlpm"
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, now: Nanos) {
        self.lpm.survey(waiting, prefixes, now);
        let uncached = |request: &Candidate<'_>| {
            let matched = prefixes.matched(request.sequence);
            (request.sequence, request.prompt_tokens.saturating_sub(matched))
        };
        self.uncached.clear();
        self.uncached.extend(waiting.iter().map(uncached));
        self.uncached.sort_unstable();
        self.refill(waiting);
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        let without = f64::from(u8::from(self.credit(request.client) <= 0.0));
        Rank(without, self.lpm.key(request, prefixes))
    }

    fn arrive(&mut self, request: &Candidate<'_>, now: Nanos) {
        let memory = self.memory;
        self.clients.retain(|_, client| client.requests > 0 || now.since(client.seen) < memory);
        let new = Client { credit: 0.0, requests: 0, seen: now };
        let client = self.clients.entry(request.client.clone()).or_insert(new);
        client.requests += 1;
    }

    fn admitted(&mut self, request: &Candidate<'_>, _now: Nanos) {
        let known =
            self.uncached.binary_search_by_key(&request.sequence, |(sequence, _)| *sequence);
        let uncached = known.map_or(request.prompt_tokens, |at| self.uncached[at].1);
        // Rows that a preemption lost are computed again at no charge.
        let uncached = if request.generated_tokens > 0 { 0 } else { uncached };
        if let Some(client) = self.clients.get_mut(request.client) {
            client.credit -= self.prompt * uncached as f64;
        }
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, _now: Nanos) {
        if let Some(client) = self.clients.get_mut(request.client) {
            client.credit -= self.output * charge.generated_tokens as f64;
        }
    }

    fn finish(&mut self, request: &Candidate<'_>, _end: End, now: Nanos) {
        if let Some(client) = self.clients.get_mut(request.client) {
            client.requests = client.requests.saturating_sub(1);
            client.seen = now;
        }
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let credit =
            |(name, client): (&ClientId, &Client)| (format!("credit {name}"), client.credit);
        let mut numbers: Vec<_> = self.clients.iter().map(credit).collect();
        numbers.sort_by(|one, other| one.0.cmp(&other.0));
        numbers.push(("refills".to_owned(), self.refills));
        numbers
    }
}
