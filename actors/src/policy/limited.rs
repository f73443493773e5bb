//! Limits of requests per minute, in front of any policy.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use lapwing_plan::registry::{Parameter, Parameters};
use lapwing_traces::Nanos;

use super::candidate::{Candidate, Charge, End};
use super::client::ClientId;
use super::entry::PolicyEntry;
use super::fcfs::Fcfs;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;

const MINUTE: Duration = Duration::from_secs(60);

/// How many requests a client may send within any 60 seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestLimits {
    /// Of clients without a limit of their own; `None`: any number.
    pub others: Option<usize>,
    /// Of these clients.
    pub clients: HashMap<ClientId, usize>,
}

const LIMIT: Parameter =
    Parameter::new("rpm", "requests of a client in a minute", f64::INFINITY, 1.0..=1e6);

/// Parameters of every policy.
pub(super) const LIMITS: &[Parameter] = &[
    LIMIT,
    Parameter::new("rpm.CLIENT", "requests of one client in a minute", f64::INFINITY, 1.0..=1e6),
];

impl RequestLimits {
    /// The values of [`LIMITS`].
    pub(super) fn of(parameters: &Parameters) -> RequestLimits {
        let others = Some(parameters.value("rpm")).filter(|limit| limit.is_finite());
        let clients = parameters.each("rpm").map(|(name, limit)| (name.into(), limit as usize));
        RequestLimits { others: others.map(|limit| limit as usize), clients: clients.collect() }
    }
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "rpm",
    "fcfs, but refuses requests of a client beyond 'rpm' in a minute",
    &[Parameter { default: 20.0, ..LIMIT }],
    |_| Box::new(Fcfs),
);

/// A policy that refuses the requests of a client beyond its limit in any 60 seconds; requests that were refused do
/// not count. The others go in the order of another policy.
pub struct Limited {
    name: String,
    inner: Box<dyn QueuePolicy>,
    limits: RequestLimits,
    /// Arrivals of each client in the last minute, the first one first.
    recent: HashMap<ClientId, VecDeque<Nanos>>,
    refused: usize,
}

impl Limited {
    /// A policy of that name with the order of `inner`.
    pub fn new(name: &str, inner: Box<dyn QueuePolicy>, limits: RequestLimits) -> Limited {
        Limited { name: name.to_owned(), inner, limits, recent: HashMap::new(), refused: 0 }
    }

    /// Forgets arrivals that a minute has passed since.
    fn forget(&mut self, now: Nanos) {
        self.recent.retain(|_, arrivals| {
            while arrivals.front().is_some_and(|at| now.since(*at) >= MINUTE) {
                arrivals.pop_front();
            }
            !arrivals.is_empty()
        });
    }
}

impl QueuePolicy for Limited {
    fn name(&self) -> &str {
        &self.name
    }

    fn refuse(&mut self, request: &Candidate<'_>, now: Nanos) -> Option<Duration> {
        self.forget(now);
        let RequestLimits { others, clients } = &self.limits;
        let limit = clients.get(request.client).copied().or(*others);
        let arrivals = self.recent.get(request.client);
        let over = limit.and_then(|limit| {
            let count = arrivals.map_or(0, VecDeque::len);
            // The arrival after whose minute there is room for one more.
            let blocks = count.checked_sub(limit.max(1))?;
            arrivals.and_then(|arrivals| arrivals.get(blocks))
        });
        if let Some(at) = over {
            self.refused += 1;
            return Some(MINUTE.saturating_sub(now.since(*at)));
        }
        let refused = self.inner.refuse(request, now);
        if refused.is_none() && limit.is_some() {
            self.recent.entry(request.client.clone()).or_default().push_back(now);
        }
        refused
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, now: Nanos) {
        self.inner.survey(waiting, prefixes, now);
    }

    fn rank(&self, request: &Candidate<'_>, prefixes: &dyn PrefixView, now: Nanos) -> Rank {
        self.inner.rank(request, prefixes, now)
    }

    fn goes_by_arrival(&self) -> bool {
        self.inner.goes_by_arrival()
    }

    fn may_overtake(&self, blocked: &Candidate<'_>, now: Nanos) -> bool {
        self.inner.may_overtake(blocked, now)
    }

    fn arrive(&mut self, request: &Candidate<'_>, now: Nanos) {
        self.inner.arrive(request, now);
    }

    fn admitted(&mut self, request: &Candidate<'_>, now: Nanos) {
        self.inner.admitted(request, now);
    }

    fn charge(&mut self, request: &Candidate<'_>, charge: Charge, now: Nanos) {
        self.inner.charge(request, charge, now);
    }

    fn evicted(&mut self, request: &Candidate<'_>, rows: usize, now: Nanos) {
        self.inner.evicted(request, rows, now);
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let mut numbers = self.inner.numbers();
        numbers.push(("requests refused".to_owned(), self.refused as f64));
        numbers
    }

    fn finish(&mut self, request: &Candidate<'_>, end: End, now: Nanos) {
        self.inner.finish(request, end, now);
    }
}
