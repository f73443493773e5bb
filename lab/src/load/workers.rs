//! Workloads on several modelled servers behind a router, in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::routing::{PrefillTime, RouteChoice, WorkerId, WorkerSpec};
use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::arrival::{Failed, Served};
use lapwing_actors::simulate::serving::Serving;
use lapwing_actors::simulate::workers::{
    VirtualWorkers, WorkerOutcome, WorkerServed, WorkersOutcome, WorkersParts,
};
use lapwing_actors::stats::EngineStats;
use lapwing_kernels::device::Batch;
use lapwing_traces::{Clock, Nanos, OsClock};

use super::cost::PassTime;
use super::outcome::RequestOutcome;
use super::request::LoadRequest;
use super::server::{Server, arrival, nanos, outcome};
use at_speed::AtSpeed;

mod at_speed;
mod conditions;
mod report;
#[cfg(test)]
mod tests;

pub use conditions::{numbered_file, repeated};
pub use report::{Imbalance, WorkerReport, WorkersReport};

/// Several modelled servers behind a router. Each has a scheduler, a queue policy and a prefix cache of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Workers {
    /// The server that each of them is.
    pub server: Server,
    /// Costs of workers that have their own, by number; the others have those of the server.
    pub costs: BTreeMap<usize, PassTime>,
    /// How fast each is: one of speed 0.5 takes twice the time of its costs.
    pub speeds: Vec<f64>,
    /// Whether the time of each decision is measured, with the real clock.
    pub timed: bool,
}

/// What became of a workload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Routed {
    /// Each request, in the order of the workload.
    pub requests: Vec<RequestOutcome>,
    /// The worker of each request, by number; `None` of one that has not arrived.
    pub workers: Vec<Option<usize>>,
    /// What each worker did.
    pub outcomes: Vec<WorkerOutcome>,
    /// What all of them did together. A worker alone also has the numbers of its queue policy.
    pub stats: EngineStats,
    /// The routing policy's numbers.
    pub numbers: Vec<(String, f64)>,
    /// Time of each decision, if they were measured.
    pub decisions: Vec<Duration>,
}

impl Workers {
    /// So many equal workers.
    pub fn equal(server: Server, count: usize) -> Workers {
        Workers { server, costs: BTreeMap::new(), speeds: vec![1.0; count], timed: false }
    }

    /// Serves a workload, routed by one policy and queued by another, until all requests have ended or for `until` seconds.
    ///
    /// # Errors
    /// [`SocRunError`] if there is no worker, a speed is not a positive number, a policy is unknown, or requests are left although nothing
    /// happens any more.
    pub fn run(
        &self,
        requests: &[LoadRequest],
        policies: (&RouteChoice, &PolicyChoice),
        until: Option<f64>,
    ) -> Result<Routed, SocRunError> {
        self.check()?;
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|number| nanos(requests[*number].at));
        let mut routed = vec![None; requests.len()];
        let mut outcomes: Vec<RequestOutcome> = requests.iter().map(unserved).collect();
        let mut on_served = |place: usize, served: WorkerServed| {
            let number = order[place];
            routed[number] = Some(served.worker.index());
            outcomes[number] = outcome(&requests[number], as_served(served));
        };
        let mut make = |worker| self.serving(worker, policies.1);
        let clock = OsClock::start();
        let workers = VirtualWorkers::new(WorkersParts {
            specs: self.specs(),
            make: &mut make,
            policy: policies.0.make()?,
            context: requests.iter().map(context).max().unwrap_or(1),
            clock: self.timed.then_some(&clock as &dyn Clock),
        });
        let arrivals = order.iter().map(|number| arrival((*number, &requests[*number])));
        let WorkersOutcome { workers, numbers, decisions } =
            workers.run(arrivals, until.map(nanos), &mut on_served)?;
        let stats: Vec<EngineStats> = workers.iter().map(|worker| worker.stats.clone()).collect();
        let stats = EngineStats::of_all(&stats);
        Ok(Routed {
            requests: outcomes,
            workers: routed,
            outcomes: workers,
            stats,
            numbers,
            decisions,
        })
    }

    fn check(&self) -> Result<(), SocRunError> {
        let is_speed = |speed: &f64| speed.is_finite() && *speed > 0.0;
        if self.speeds.is_empty() {
            let reason = "there must be at least one worker".to_owned();
            return Err(SocRunError::Number { reason });
        }
        let count = self.speeds.len();
        if let Some((worker, _)) = self.costs.range(count..).next() {
            let reason =
                format!("worker {worker} has costs of its own, but there are {count}, from 0 on");
            return Err(SocRunError::Number { reason });
        }
        match self.speeds.iter().find(|speed| !is_speed(speed)) {
            Some(speed) => {
                let reason = format!("the speed of a worker is {speed}, but must be above 0");
                Err(SocRunError::Number { reason })
            }
            None => Ok(()),
        }
    }

    /// The workers as routers see them. A worker with costs of its own has the speed at which it computes a prompt of 2048 rows, by the time of the server.
    fn specs(&self) -> Vec<WorkerSpec> {
        let prefill = prefill_time(&self.server.time);
        let spec = |(worker, speed): (usize, &f64)| {
            let own = self.costs.get(&worker).map_or(prefill, prefill_time);
            let ratio = match self.costs.contains_key(&worker) {
                true => prefill.seconds(2048, 0) / own.seconds(2048, 0),
                false => 1.0,
            };
            let (speed, kv_tokens) = (speed * ratio, self.server.kv_tokens);
            WorkerSpec { speed, kv_tokens, prefill: own.times(ratio) }
        };
        self.speeds.iter().enumerate().map(spec).collect()
    }

    fn serving(&self, worker: WorkerId, policy: &PolicyChoice) -> Result<Serving, SocRunError> {
        let serving = match self.costs.get(&worker.index()) {
            Some(time) => Server { time: *time, ..self.server.clone() }.serving(policy)?,
            None => self.server.serving(policy)?,
        };
        let speed = self.speeds[worker.index()];
        Ok(match speed == 1.0 {
            true => serving,
            false => Serving { time: Arc::new(AtSpeed { time: serving.time, speed }), ..serving },
        })
    }
}

/// Time of prompt rows in passes of these times.
fn prefill_time(time: &PassTime) -> PrefillTime {
    PrefillTime::fit(512, 2048, 4096, |rows, start| {
        let mut batch = Batch::default();
        batch.push(&vec![0; rows], start, [0], 0..1);
        time.seconds(&batch)
    })
}

fn context(request: &LoadRequest) -> usize {
    request.prompt_tokens + request.output_tokens + 1
}

fn unserved(request: &LoadRequest) -> RequestOutcome {
    outcome(request, Served::default())
}

fn as_served(served: WorkerServed) -> Served {
    let WorkerServed { tokens, times, failed, .. } = served;
    let failed = failed.map(|error| Failed { at: Nanos::default(), error });
    Served { tokens, times, failed, ..Served::default() }
}
