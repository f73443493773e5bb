//! Policies of the tests, and a log of the events that a policy receives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lapwing_actors::policy::{Candidate, Charge, ClientId, End, PrefixView, QueuePolicy, Rank};
use lapwing_traces::Nanos;

/// An event that a policy receives for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    Arrived,
    Admitted,
    Charged(Charge),
    Evicted(usize),
    Finished(End),
}

/// A call, with the state of the request at that time.
#[derive(Clone, Debug)]
pub struct Entry {
    pub sequence: u64,
    pub client: ClientId,
    pub prompt_tokens: usize,
    pub generated_tokens: usize,
    pub running: bool,
    pub told: Told,
}

/// All calls, in order.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Entry>>>);

impl Log {
    pub fn entries(&self) -> Vec<Entry> {
        self.0.lock().expect("no panic").clone()
    }

    fn push(&self, request: &Candidate<'_>, told: Told) {
        self.0.lock().expect("no panic").push(Entry {
            sequence: request.sequence.0,
            client: request.client.clone(),
            prompt_tokens: request.prompt_tokens,
            generated_tokens: request.generated_tokens,
            running: request.running,
            told,
        });
    }

    /// Requests in the order in which they were admitted.
    pub fn admitted(&self) -> Vec<u64> {
        self.pick(|entry| (entry.told == Told::Admitted).then_some(entry.sequence))
    }

    /// Requests in the order in which they were preempted.
    pub fn evicted(&self) -> Vec<u64> {
        self.pick(|entry| matches!(entry.told, Told::Evicted(_)).then_some(entry.sequence))
    }

    /// Requests and how many of their prompt rows were sent, in that order.
    pub fn prompt_rows(&self) -> Vec<(u64, usize)> {
        self.pick(|entry| match entry.told {
            Told::Charged(Charge { prompt_rows, .. }) if prompt_rows > 0 => {
                Some((entry.sequence, prompt_rows))
            }
            _ => None,
        })
    }

    fn pick<T>(&self, of: impl Fn(&Entry) -> Option<T>) -> Vec<T> {
        self.entries().iter().filter_map(of).collect()
    }
}

/// Sum of all charges.
pub fn sum(told: &[Told]) -> Charge {
    told.iter().fold(Charge::default(), |sum, told| match told {
        Told::Charged(charge) => Charge {
            prompt_rows: sum.prompt_rows + charge.prompt_rows,
            recomputed_rows: sum.recomputed_rows + charge.recomputed_rows,
            generated_tokens: sum.generated_tokens + charge.generated_tokens,
        },
        _ => sum,
    })
}

/// Logs the events that another policy receives.
#[derive(Clone, Debug, Default)]
pub struct Logged<P> {
    pub inner: P,
    pub log: Log,
}

impl<P: QueuePolicy> Logged<P> {
    pub fn new(inner: P) -> (Logged<P>, Log) {
        let log = Log::default();
        (Logged { inner, log: log.clone() }, log)
    }
}

impl<P: QueuePolicy> QueuePolicy for Logged<P> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, now: Nanos) -> Rank {
        self.inner.rank(request, prefixes, now)
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, now: Nanos) {
        self.inner.survey(waiting, prefixes, now);
    }

    fn may_overtake(&self, blocked: &Candidate<'_>, now: Nanos) -> bool {
        self.inner.may_overtake(blocked, now)
    }

    fn arrive(&mut self, request: &Candidate<'_>, now: Nanos) {
        self.log.push(request, Told::Arrived);
        self.inner.arrive(request, now);
    }

    fn admitted(&mut self, request: &Candidate<'_>, now: Nanos) {
        self.log.push(request, Told::Admitted);
        self.inner.admitted(request, now);
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, now: Nanos) {
        self.log.push(request, Told::Charged(charge));
        self.inner.charge(request, charge, now);
    }

    fn evicted(&mut self, request: &Candidate<'_>, rows: usize, now: Nanos) {
        self.log.push(request, Told::Evicted(rows));
        self.inner.evicted(request, rows, now);
    }

    fn finish(&mut self, request: &Candidate<'_>, end: End, now: Nanos) {
        self.log.push(request, Told::Finished(end));
        self.inner.finish(request, end, now);
    }
}

/// Ranks the shortest prompt first.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShortestFirst;

impl QueuePolicy for ShortestFirst {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn rank(&self, request: &Candidate<'_>, _: &dyn PrefixView, _: Nanos) -> Rank {
        Rank::by(request.prompt_tokens as f64)
    }
}

/// Ranks in order of arrival, but lets requests overtake one that does not fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overtaking;

impl QueuePolicy for Overtaking {
    fn name(&self) -> &str {
        "overtaking"
    }

    fn rank(&self, _: &Candidate<'_>, _: &dyn PrefixView, _: Nanos) -> Rank {
        Rank::EQUAL
    }

    fn may_overtake(&self, _: &Candidate<'_>, _: Nanos) -> bool {
        true
    }
}

/// Ranks the client with the lowest charge first: 1 per prompt row, 2 per generated token. A new client
/// begins with the lowest charge of the active ones.
#[derive(Clone, Debug, Default)]
pub struct LeastCharged {
    /// Charge and number of requests of each client.
    clients: HashMap<ClientId, (f64, usize)>,
}

impl QueuePolicy for LeastCharged {
    fn name(&self) -> &str {
        "least-charged"
    }

    fn rank(&self, request: &Candidate<'_>, _: &dyn PrefixView, _: Nanos) -> Rank {
        Rank::by(self.clients[request.client].0)
    }

    fn arrive(&mut self, request: &Candidate<'_>, _: Nanos) {
        let active = self.clients.values().filter(|(_, requests)| *requests > 0);
        let least = active.map(|(charge, _)| *charge).min_by(f64::total_cmp);
        let (charge, requests) = self.clients.entry(request.client.clone()).or_default();
        if *requests == 0 {
            *charge = charge.max(least.unwrap_or_default());
        }
        *requests += 1;
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, _: Nanos) {
        let (sum, _) = self.clients.get_mut(request.client).expect("it has arrived");
        *sum += (charge.prompt_rows + 2 * charge.generated_tokens) as f64;
    }

    fn finish(&mut self, request: &Candidate<'_>, _: End, _: Nanos) {
        self.clients.get_mut(request.client).expect("it has arrived").1 -= 1;
    }
}
