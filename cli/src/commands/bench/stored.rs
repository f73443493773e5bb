//! Saves runs of `bench`, and loads them for comparison.

use std::path::Path;

use lapwing_traces::whole_file;

use super::Measurement;
use super::report::{EngineRuns, Kv, Record};
use crate::cli::attention::AttentionChanges;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::requant::RequantReport;
use crate::cli::session::Session;

impl Measurement<'_> {
    /// The record of these runs.
    pub(super) fn record(&self, engines: Vec<EngineRuns>) -> Result<Record, Failure> {
        let builder = self.engine.without_strategy(self.model.clone())?;
        let (identity, requantized) = (builder.identity()?, builder.requantized()?);
        // Rounded to the second, which is precise enough.
        let second = jiff::Timestamp::now().as_second();
        let date = jiff::Timestamp::from_second(second)
            .map_err(|error| Failure::failed(format!("cannot read the date: {error}")))?;
        Ok(Record {
            version: Record::VERSION,
            date: date.to_string(),
            machine: identity.machine,
            model: self.model.display().to_string(),
            model_bytes: std::fs::metadata(&self.model).map_or(0, |data| data.len()),
            threads: self.engine.thread_count(),
            kv: Kv(self.engine.kv),
            requant: requantized.as_ref().map(RequantReport::of),
            attention: AttentionChanges::of_builder(&builder)?,
            settings: self.settings(&identity.devices, identity.chunk_rows),
            engines,
        })
    }

    fn settings(&self, devices: &[(String, String)], chunk_rows: usize) -> String {
        let mut all: Vec<String> =
            devices.iter().map(|(name, what)| format!("{name}={what}")).collect();
        let strategy = self.engine.devices.strategy.as_deref();
        all.extend(strategy.map(|strategy| format!("strategy {strategy}")));
        all.push(format!("chunks of {chunk_rows} rows"));
        all.push(if self.warm_up { "warm" } else { "not warm" }.to_owned());
        let is_alone = self.peers.is_empty();
        all.push(if is_alone { "one process" } else { "a process for each run" }.to_owned());
        all.join(", ")
    }
}

/// Checks, before measuring, that a run can be saved there.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    whole_file::check(path).map_err(|error| Failure::file("write", path, &error))
}

/// Saves a run.
pub(super) fn save(record: &Record, path: &Path, session: &Session) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(record)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
    files::write(path, format!("{json}\n").as_bytes(), session)
}

/// Loads a saved run.
pub(super) fn load(path: &Path) -> Result<Record, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
    let wrong = |what: String| {
        Failure::failed(format!("{} was not written by `bench -o`: {what}", path.display()))
            .hint("measure again with -o FILE.json")
    };
    let record: Record = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match record.version {
        Record::VERSION => Ok(record),
        other => Err(wrong(format!("its version is {other} instead of {}", Record::VERSION))),
    }
}
