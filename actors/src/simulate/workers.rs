//! Several servers behind a router, in virtual time. Each is a whole [`Serving`], with its own scheduler and prefix cache.
//!
//! A server does nothing while it has no request, and servers do not wait for each other: between two arrivals, only those with an
//! event in this time are visited, one after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use lapwing_traces::{Clock, Nanos, RequestTimes};

use super::arrival::Arrival;
use super::error::SocRunError;
use super::serving::Serving;
use super::virtual_engine::VirtualEngine;
use crate::error::RunError;
use crate::routing::{BLOCK_TOKENS, Incoming, RoutePolicy, WorkerId, WorkerSpec, Workers};
use crate::sequence::AdmissionLimit;
use crate::stats::EngineStats;

mod in_flight;
#[cfg(test)]
mod tests;

use in_flight::InFlight;

/// The components of several servers behind a router.
pub struct WorkersParts<'a> {
    /// What each of them announces; at least one.
    pub specs: Vec<WorkerSpec>,
    /// Makes the server of a worker when it gets its first request.
    pub make: &'a mut dyn FnMut(WorkerId) -> Result<Serving, SocRunError>,
    /// Routes requests.
    pub policy: Box<dyn RoutePolicy>,
    /// Most tokens of a request, with the generated ones.
    pub context: usize,
    /// Measures the policy's decisions, if they are to be measured.
    pub clock: Option<&'a dyn Clock>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerServed {
    /// The worker that it was sent to.
    pub worker: WorkerId,
    /// Times of its tokens.
    pub tokens: Vec<Nanos>,
    /// Times of its milestones, once it has all tokens.
    pub times: Option<RequestTimes>,
    /// Why it has no more tokens, if it failed.
    pub failed: Option<RunError>,
}

/// What a worker did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerOutcome {
    /// Requests that it was sent.
    pub sent: u64,
    /// Time of its passes.
    pub busy: Duration,
    /// What its scheduler counted.
    pub stats: EngineStats,
}

/// What several servers did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkersOutcome {
    /// Each of them.
    pub workers: Vec<WorkerOutcome>,
    /// The routing policy's numbers.
    pub numbers: Vec<(String, f64)>,
    /// Time of each decision, if they were measured.
    pub decisions: Vec<Duration>,
}

/// Several servers behind a router.
pub struct VirtualWorkers<'a> {
    parts: WorkersParts<'a>,
    workers: Workers,
    servers: Vec<Option<Server>>,
    in_flight: InFlight,
    /// Servers by the time of their next event. An entry counts if it is that of `due`.
    queue: BinaryHeap<Reverse<(Nanos, u32)>>,
    due: Vec<Option<Nanos>>,
    decisions: Vec<Duration>,
}

struct Server {
    engine: VirtualEngine,
    limit: AdmissionLimit,
}

/// Receives what became of the request of a number.
pub type OnServed<'a> = &'a mut dyn FnMut(usize, WorkerServed);

impl<'a> VirtualWorkers<'a> {
    /// Servers without requests, at time 0.
    pub fn new(parts: WorkersParts<'a>) -> VirtualWorkers<'a> {
        let workers = Workers::new(parts.specs.clone());
        let servers = workers.ids().map(|_| None).collect();
        let due = vec![None; workers.count()];
        VirtualWorkers {
            parts,
            workers,
            servers,
            in_flight: InFlight::default(),
            queue: BinaryHeap::new(),
            due,
            decisions: Vec::new(),
        }
    }

    /// Serves requests that arrive in this order, none earlier than the one before it, until all have ended or until a virtual time.
    /// `served` is told of each request when it has ended, or at the end, with its number in this order.
    ///
    /// # Errors
    /// [`SocRunError`] if no pass can be planned, requests are left although nothing happens any more, or the policy names a worker that
    /// is not there.
    pub fn run(
        mut self,
        arrivals: impl Iterator<Item = Arrival>,
        until: Option<Nanos>,
        served: OnServed<'_>,
    ) -> Result<WorkersOutcome, SocRunError> {
        let end = until.unwrap_or(Nanos(u64::MAX));
        let mut is_over = end == Nanos(0);
        for (number, arrival) in arrivals.enumerate() {
            if is_over {
                break;
            }
            self.advance(arrival.at.min(end))?;
            is_over = arrival.at >= end;
            // A server alone, too, handles the first event that is not before its end.
            if is_over && self.handle_next(arrival.at)? {
                break;
            }
            self.tell(served);
            self.send(number, arrival)?;
        }
        if !is_over {
            self.advance(end)?;
            if until.is_some() {
                self.handle_next(Nanos(u64::MAX))?;
            }
        }
        self.tell(served);
        self.finish(until.is_none(), served)
    }

    fn finish(
        mut self,
        is_complete: bool,
        served: OnServed<'_>,
    ) -> Result<WorkersOutcome, SocRunError> {
        self.in_flight.end(served);
        let mut workers = Vec::with_capacity(self.servers.len());
        for (worker, server) in self.workers.ids().zip(&self.servers) {
            let sent = self.workers.load(worker).sent;
            let Some(Server { engine, limit }) = server else {
                workers.push(WorkerOutcome::default());
                continue;
            };
            if is_complete {
                engine.is_empty(limit)?;
            }
            workers.push(WorkerOutcome { sent, busy: engine.busy(), stats: engine.stats() });
        }
        let (numbers, decisions) = (self.parts.policy.numbers(), self.decisions);
        Ok(WorkersOutcome { workers, numbers, decisions })
    }

    /// Handles all events before a time.
    fn advance(&mut self, to: Nanos) -> Result<(), SocRunError> {
        while let Some(Reverse((at, worker))) = self.queue.peek().copied().filter(|it| it.0.0 < to)
        {
            self.queue.pop();
            if self.due[worker as usize] == Some(at) {
                self.run_worker(worker as usize, to)?;
            }
        }
        Ok(())
    }

    /// Handles the next event of any server if it is before a time. Returns whether it was.
    fn handle_next(&mut self, before: Nanos) -> Result<bool, SocRunError> {
        while let Some(Reverse((at, worker))) = self.queue.pop() {
            let worker = worker as usize;
            if self.due[worker] != Some(at) {
                continue;
            }
            if at >= before {
                return Ok(false);
            }
            self.step(worker)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn run_worker(&mut self, worker: usize, to: Nanos) -> Result<(), SocRunError> {
        while self.next_at(worker).is_some_and(|next| next < to) {
            self.step(worker)?;
        }
        if self.parts.policy.hears_evictions()
            && let Some(server) = &self.servers[worker]
        {
            self.in_flight.on_drops(worker, server.engine.take_drops());
        }
        self.due[worker] = None;
        self.enqueue(worker);
        Ok(())
    }

    fn next_at(&self, worker: usize) -> Option<Nanos> {
        self.servers[worker].as_ref()?.engine.next_at()
    }

    fn step(&mut self, worker: usize) -> Result<(), SocRunError> {
        let Some(server) = &mut self.servers[worker] else { return Ok(()) };
        let at = server.engine.step();
        if at.0 == u64::MAX {
            return Err(SocRunError::TooLong { at, frames: 0 });
        }
        self.in_flight.look(at);
        Ok(())
    }

    fn enqueue(&mut self, worker: usize) {
        let next = self.next_at(worker);
        if next != self.due[worker] {
            self.due[worker] = next;
            self.queue.extend(next.map(|next| Reverse((next, worker as u32))));
        }
    }

    /// Tells the policy what has happened, in the order of time.
    fn tell(&mut self, served: OnServed<'_>) {
        self.in_flight.tell(&mut self.workers, &mut *self.parts.policy, served);
    }

    /// Routes a request, and gives it to its worker.
    fn send(&mut self, number: usize, arrival: Arrival) -> Result<(), SocRunError> {
        let (at, prompt_tokens) = (arrival.at, arrival.ids.len());
        let incoming = Incoming {
            number: number as u64,
            client: &arrival.client,
            ids: &arrival.ids,
            tokens_max: arrival.tokens,
        };
        let begin = self.parts.clock.map(|clock| clock.now());
        let worker = self.parts.policy.route(&incoming, &self.workers, at);
        let time = self.parts.clock.zip(begin).map(|(clock, begin)| clock.now().since(begin));
        self.decisions.extend(time);
        if worker.index() >= self.workers.count() {
            let (name, all) = (self.parts.policy.name(), self.workers.count());
            let reason = format!("the routing policy {name} named worker {} of {all}", worker.0);
            return Err(SocRunError::Number { reason });
        }
        self.workers.on_sent(worker, prompt_tokens);
        let sink = self.in_flight.begin((number, worker), &arrival);
        let server = match &mut self.servers[worker.index()] {
            Some(server) => server,
            place => place.insert(Server {
                engine: (self.parts.make)(worker)?.engine(self.parts.context)?,
                limit: AdmissionLimit::new(usize::MAX),
            }),
        };
        if self.workers.load(worker).sent == 1 && self.parts.policy.hears_evictions() {
            server.engine.report_drops(BLOCK_TOKENS);
        }
        server.engine.give(arrival, sink, &server.limit);
        self.in_flight.look(at);
        self.enqueue(worker.index());
        Ok(())
    }
}
