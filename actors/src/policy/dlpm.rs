//! Deficit longest prefix match.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use lapwing_traces::Nanos;

use super::candidate::{Candidate, Charge, End};
use super::client::ClientId;
use super::lpm::Lpm;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
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
    /// What was found of the waiting requests at the latest survey, by their numbers.
    surveyed: Vec<Surveyed>,
    /// Whether no credit has changed since.
    is_fresh: bool,
    /// Where the next one that is asked for probably is: ranks are asked in order.
    next: Cell<usize>,
    refills: f64,
}

/// A waiting request at a survey.
#[derive(Clone, Copy, Debug)]
struct Surveyed {
    sequence: SequenceId,
    /// Tokens of its prompt that are not cached.
    uncached: usize,
    has_credit: bool,
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
    /// Nobody has credit yet.
    pub fn new(quantum: f64, prompt: f64, output: f64, weights: HashMap<ClientId, f64>) -> Dlpm {
        Dlpm {
            quantum,
            prompt,
            output,
            memory: Duration::from_secs(3600),
            weights,
            lpm: Lpm::default(),
            clients: Clients::default(),
            surveyed: Vec::new(),
            is_fresh: false,
            next: Cell::new(0),
            refills: 0.0,
        }
    }

    /// Credit of a client.
    pub fn credit(&self, client: &ClientId) -> f64 {
        self.clients.get(client).map_or(0.0, |client| client.credit)
    }

    fn quantum_of(&self, client: &ClientId) -> f64 {
        self.quantum * self.weights.get(client).copied().unwrap_or(1.0)
    }

    /// What the latest survey found of a request.
    fn surveyed(&self, sequence: SequenceId) -> Option<Surveyed> {
        let of_this = |at: usize| self.surveyed.get(at).filter(|it| it.sequence == sequence);
        let at = match of_this(self.next.get()) {
            Some(_) => self.next.get(),
            None => self.surveyed.binary_search_by_key(&sequence, |it| it.sequence).ok()?,
        };
        self.next.set(at + 1);
        of_this(at).copied()
    }

    fn has_credit(&self, client: &ClientId) -> bool {
        self.credit(client) > 0.0
    }

    fn refill(&mut self, waiting: &[Candidate<'_>]) {
        let rounds = |request: &Candidate<'_>| {
            let credit = self.credit(request.client);
            (-credit / self.quantum_of(request.client)).floor() + 1.0
        };
        let rounds = waiting.iter().map(rounds).min_by(f64::total_cmp).unwrap_or(1.0);
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

impl QueuePolicy for Dlpm {
    fn name(&self) -> &str {
        "dlpm"
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, now: Nanos) {
        self.lpm.survey(waiting, prefixes, now);
        let mut surveyed = std::mem::take(&mut self.surveyed);
        surveyed.clear();
        surveyed.extend(waiting.iter().map(|request| Surveyed {
            sequence: request.sequence,
            uncached: request.prompt_tokens.saturating_sub(prefixes.matched(request.sequence)),
            has_credit: self.has_credit(request.client),
        }));
        surveyed.sort_unstable_by_key(|it| it.sequence);
        self.is_fresh = surveyed.iter().any(|it| it.has_credit);
        if !self.is_fresh && !waiting.is_empty() {
            self.refill(waiting);
        }
        self.surveyed = surveyed;
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, _now: Nanos) -> Rank {
        let known = if self.is_fresh { self.surveyed(request.sequence) } else { None };
        let has_credit =
            known.map_or_else(|| self.has_credit(request.client), |known| known.has_credit);
        Rank(f64::from(u8::from(!has_credit)), self.lpm.key(request, prefixes))
    }

    fn arrive(&mut self, request: &Candidate<'_>, now: Nanos) {
        let memory = self.memory;
        self.clients.retain(|_, client| client.requests > 0 || now.since(client.seen) < memory);
        let new = Client { credit: 0.0, requests: 0, seen: now };
        let client = self.clients.entry(request.client.clone()).or_insert(new);
        client.requests += 1;
    }

    fn admitted(&mut self, request: &Candidate<'_>, _now: Nanos) {
        let known = self.surveyed(request.sequence);
        let uncached = known.map_or(request.prompt_tokens, |known| known.uncached);
        // Rows that a preemption lost are computed again at no charge.
        let uncached = if request.generated_tokens > 0 { 0 } else { uncached };
        self.is_fresh = false;
        if let Some(client) = self.clients.get_mut(request.client) {
            client.credit -= self.prompt * uncached as f64;
        }
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, _now: Nanos) {
        self.is_fresh = false;
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
