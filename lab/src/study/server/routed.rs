//! Several workers behind a router, in a scenario like `lapwing load`.

use std::collections::BTreeMap;

use lapwing_actors::policy::PolicyChoice;
use lapwing_actors::routing::RouteChoice;

use super::{costs, count};
use crate::load::{Experiment, PassTime, Server, Workers, WorkersReport, numbered_file, repeated};
use crate::simulate::SimulateError;
use crate::study::numbers::Numbers;
use crate::study::subject::{Misfit, Places, bad};

/// The workers, and how requests are routed to them.
#[derive(Clone, Default)]
pub(super) struct Router {
    workers: Option<usize>,
    route: Option<RouteChoice>,
    /// How fast each is; all have speed 1 if it is not given.
    speeds: Option<Vec<f64>>,
    /// The numbers of workers with costs of their own, and the files of these.
    servers: Vec<(usize, String)>,
    copies: Option<usize>,
}

impl Router {
    pub(super) const KEYS: [&'static str; 5] =
        ["workers", "route", "worker-speed", "worker-server", "copies"];

    /// Changes one of [`KEYS`](Router::KEYS).
    pub(super) fn set(
        &mut self,
        places: &Places,
        key: &str,
        value: &str,
    ) -> Result<(), SimulateError> {
        match key {
            "workers" => self.workers = Some(count(key, value)?),
            "copies" => self.copies = Some(count(key, value)?),
            "route" => {
                let route = RouteChoice::from(value);
                route.make().map_err(|error| bad(key, value, error.to_string()))?;
                self.route = Some(route);
            }
            "worker-speed" => self.speeds = Some(speeds(value)?),
            _ => {
                let mut servers: Vec<(usize, String)> = Vec::new();
                for (worker, file) in numbered_files(value)? {
                    if servers.iter().any(|(known, _)| *known == worker) {
                        return Err(bad(key, value, format!("worker {worker} is given twice")));
                    }
                    costs(places, key, file)?;
                    servers.push((worker, file.to_owned()));
                }
                self.servers = servers;
            }
        }
        Ok(())
    }

    /// Whether there is a router.
    pub(super) fn is_used(&self) -> bool {
        self.workers.is_some()
    }

    /// The experiment of that name, whose requests arrive as often as is set.
    pub(super) fn experiment(&self, name: &str, seed: u64) -> Result<Experiment, SimulateError> {
        let made = repeated(name, seed, self.copies.unwrap_or(1));
        made.map_err(|error| bad("experiment", name, error.to_string()))
    }

    /// Checks that the workers are there to which settings belong. `of_trace`: the workload is no experiment.
    pub(super) fn check(&self, of_trace: bool) -> Result<(), Misfit> {
        if of_trace && self.copies.is_some() {
            return Err(Misfit::new("copies", "an experiment's requests are repeated, no trace's"));
        }
        let Some(workers) = self.workers else {
            let given = [
                ("route", self.route.is_some()),
                ("worker-speed", self.speeds.is_some()),
                ("worker-server", !self.servers.is_empty()),
            ];
            let needed = "it needs 'workers', the number of servers behind the router";
            let key = given.into_iter().find(|(_, is_given)| *is_given);
            return key.map_or(Ok(()), |(key, _)| Err(Misfit::new(key, needed)));
        };
        if let Some(speeds) = self.speeds.as_ref().filter(|speeds| speeds.len() != workers) {
            let reason =
                format!("it names {} speeds, but there are {workers} workers", speeds.len());
            return Err(Misfit::new("worker-speed", reason));
        }
        match self.servers.iter().find(|(worker, _)| *worker >= workers) {
            Some((worker, _)) => {
                let reason =
                    format!("there is no worker {worker}: {workers} are numbered from 0 on");
                Err(Misfit::new("worker-server", reason))
            }
            None => Ok(()),
        }
    }

    /// Serves a workload. Times that decisions of the router take on this machine are not among the results.
    pub(super) fn run(
        &self,
        places: &Places,
        served: (Experiment, &PolicyChoice, Option<f64>),
    ) -> Result<Numbers, SimulateError> {
        let (Experiment { requests, server, measure, .. }, policy, until) = served;
        let workers = self.workers(places, server)?;
        let route = self.route.clone().unwrap_or_default();
        let routed = workers.run(&requests, (&route, policy), until);
        let routed = routed.map_err(|error| SimulateError::Run { reason: error.to_string() })?;
        let report = WorkersReport::new(&workers, (route.name(), policy.name()), &routed, &measure);
        Ok(Numbers::of(&report).without("decision_us"))
    }

    fn workers(&self, places: &Places, server: Server) -> Result<Workers, SimulateError> {
        let own =
            |(worker, file): &(usize, String)| Ok((*worker, costs(places, "worker-server", file)?));
        let costs: Result<BTreeMap<usize, PassTime>, SimulateError> =
            self.servers.iter().map(own).collect();
        let speeds = self.speeds.clone().unwrap_or_else(|| vec![1.0; self.workers.unwrap_or(1)]);
        Ok(Workers { server, costs: costs?, speeds, timed: false })
    }
}

/// The workers and files of a text such as `1=slow.json, 2=fast.json`.
pub(super) fn numbered_files(value: &str) -> Result<Vec<(usize, &str)>, SimulateError> {
    let wrong = |reason: String| bad("worker-server", value, reason);
    value.split(',').map(|each| numbered_file(each.trim()).map_err(wrong)).collect()
}

/// The speeds of a text such as `1, 1, 0.5`.
fn speeds(value: &str) -> Result<Vec<f64>, SimulateError> {
    let is_speed = |speed: &f64| speed.is_finite() && *speed > 0.0;
    let speeds = value.split(',').map(|speed| speed.trim().parse().ok().filter(is_speed));
    let expected =
        "it must be a number above 0 for each worker, with commas between them, as in 1,1,0.5";
    speeds.collect::<Option<_>>().ok_or_else(|| bad("worker-speed", value, expected))
}
