//! Workloads for several workers, and files for single ones.

use crate::load::experiments::{Experiment, ExperimentError};

/// An experiment whose requests arrive so many times as often: as many independent workloads at once, whose clients and prefixes have the
/// same names. With Poisson arrivals, it is one whose rates are multiplied.
///
/// # Errors
/// [`ExperimentError`].
pub fn repeated(name: &str, seed: u64, times: usize) -> Result<Experiment, ExperimentError> {
    /// Apart from the seeds of neighbouring workloads.
    const SEEDS: u64 = 1_000_000;
    let mut experiment = Experiment::named(name, seed)?;
    for more in 1..times as u64 {
        let other = Experiment::named(name, seed.wrapping_add(more * SEEDS))?;
        experiment.requests.extend(other.requests);
    }
    experiment.requests.sort_by(|one, other| one.at.total_cmp(&other.at));
    Ok(experiment)
}

/// The number of a worker and the name of its file of costs, from a text such as `2=slow.json`.
///
/// # Errors
/// Says what is wrong.
pub fn numbered_file(text: &str) -> Result<(usize, &str), String> {
    let (number, file) = text.split_once('=').ok_or("it must be NUMBER=FILE, as in 2=slow.json")?;
    let worker = number.parse().map_err(|_| format!("'{number}' is not the number of a worker"))?;
    if file.is_empty() {
        return Err(format!("worker {worker} has no file; write it as in 2=slow.json"));
    }
    Ok((worker, file))
}
