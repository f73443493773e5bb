//! `load --workers`: several modelled servers behind a router.

mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lapwing_engine::routing::{RouteChoice, known};
use lapwing_lab::load::{
    LoadReport, LoadRequest, Measure, PassTime, Server, Workers, WorkersReport, numbered_file, page,
};
use lapwing_traces::text::counted;
use serde::Serialize;

use super::Policy;
use super::virtual_server::read_costs;
use crate::cli::at_least_one;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;

/// Several servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Several virtual servers")]
pub(crate) struct WorkersArgs {
    /// Number of virtual servers behind a router
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    workers: Option<usize>,

    /// Routing policies to compare, as in round-robin+cache-aware, or all: round-robin, least-load,
    /// power-of-two, cache-aware, preble, d2lpm, min-makespan
    #[arg(long, value_name = "NAMES", default_value = "round-robin")]
    route: String,

    /// Speed of each server: one of speed 0.5 takes twice the time [default: 1 each]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "workers")]
    worker_speed: Option<Vec<f64>>,

    /// Measured costs of one server, as of --server, in place of those of the others, as in 2=slow.json;
    /// numbers begin at 0. May be repeated
    #[arg(long, value_name = "N=FILE", value_parser = numbered, requires = "workers")]
    worker_server: Vec<(usize, PathBuf)>,

    /// The experiment's requests arrive so many times as often
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one, requires = "experiment")]
    copies: usize,

    /// Measure how long the router's decisions take on this machine
    #[arg(long, requires = "workers")]
    decision_times: bool,
}

/// A workload and where it is served.
pub(super) struct Routed {
    pub(super) workload: String,
    pub(super) requests: Vec<LoadRequest>,
    pub(super) server: Server,
    pub(super) until: Option<f64>,
    pub(super) measure: Measure,
    pub(super) policies: Vec<Policy>,
}

/// Files that are written.
pub(super) struct Files<'a> {
    pub(super) csv: Option<&'a Path>,
    pub(super) html: Option<&'a Path>,
}

#[derive(Serialize)]
struct Report<'a> {
    workload: &'a str,
    r#virtual: bool,
    reports: Vec<WorkersReport>,
}

impl WorkersArgs {
    /// Number of workers, if there are to be several.
    pub(super) fn count(&self) -> Option<usize> {
        self.workers
    }

    /// How many times as often requests arrive.
    pub(super) fn copies(&self) -> usize {
        self.copies
    }

    /// Runs a workload under each routing policy and each queue policy.
    pub(super) fn reports(
        &self,
        workers: usize,
        subject: &Routed,
    ) -> Result<Vec<WorkersReport>, Failure> {
        let speeds = self.worker_speed.clone().unwrap_or_else(|| vec![1.0; workers]);
        if speeds.len() != workers {
            return Err(Failure::usage(format!(
                "--worker-speed names {}, but there are {workers} workers",
                counted(speeds.len(), "speed")
            )));
        }
        let (server, timed) = (subject.server.clone(), self.decision_times);
        let workers = Workers { server, costs: self.costs()?, speeds, timed };
        let mut reports = Vec::new();
        for route in self.routes()? {
            for Policy { name, choice } in &subject.policies {
                let ran = workers.run(&subject.requests, (&route, choice), subject.until);
                let routed = ran.map_err(|error| Failure::usage(error.to_string()))?;
                let names = (route.name(), name.as_str());
                let measure = &subject.measure;
                reports.push(WorkersReport::new(&workers, names, &routed, measure));
            }
        }
        Ok(reports)
    }

    fn costs(&self) -> Result<BTreeMap<usize, PassTime>, Failure> {
        let read = |(worker, path): &(usize, PathBuf)| Ok((*worker, read_costs(path)?));
        self.worker_server.iter().map(read).collect()
    }

    fn routes(&self) -> Result<Vec<RouteChoice>, Failure> {
        let names: Vec<&str> = match &*self.route {
            "all" => known().iter().map(|known| known.name()).collect(),
            names => names.split('+').collect(),
        };
        let choices: Vec<RouteChoice> = names.into_iter().map(RouteChoice::from).collect();
        for choice in &choices {
            let made = choice.make().map(|_| ());
            made.map_err(|error| Failure::usage(format!("--route: {error}")))?;
        }
        Ok(choices)
    }
}

/// A number and a file, as in `2=slow.json`.
fn numbered(text: &str) -> Result<(usize, PathBuf), String> {
    numbered_file(text).map(|(worker, file)| (worker, PathBuf::from(file)))
}

/// Prints the reports, and writes them to files: comma-separated values and a page.
pub(super) fn put(
    subject: &Routed,
    reports: Vec<WorkersReport>,
    to: Files<'_>,
    session: &Session,
) -> Result<(), Failure> {
    let workload = &subject.workload;
    if let Some(path) = to.csv {
        files::write(path, text::csv(&reports).as_bytes(), session)?;
    }
    if let Some(path) = to.html {
        let place = format!("on {} in virtual time", text::workers(&reports));
        let reports: Vec<LoadReport> = reports.iter().map(text::whole).collect();
        files::write(path, page(workload, &place, &reports).as_bytes(), session)?;
    }
    match session.json {
        true => print_json(&Report { workload, r#virtual: true, reports }),
        false => print(&text::report(workload, &reports)),
    }
}
