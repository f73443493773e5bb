//! `lapwing bench --vs …`: runs this engine and others alternately on the same file, each repetition
//! in a process of its own.

use serde::{Deserialize, Serialize};

use super::Measurement;
use super::against::{Against, compare};
use super::measure::{Kind, Test};
use super::peer::{Answer, Job, Peer};
use super::ratios::{by_reading, ratios};
use super::reading::Reader;
use super::report::{EngineRuns, Figures, Measured, Ratio, Record};
use super::stored;
use crate::cli::EngineArgs;
use crate::cli::child::{self, Ended};
use crate::cli::failure::Failure;
use crate::cli::output::print_json;
use crate::cli::session::Session;

/// The JSON report.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    #[serde(flatten)]
    pub(super) record: &'a Record,
    pub(super) pairs: usize,
    /// Whether all engines used the weights of the file.
    pub(super) same_weights: bool,
    /// Ratios of this engine to each other one.
    pub(super) ratios: Vec<Ratio>,
    /// Ratios of every engine to reading without computing; empty if that was not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) by_reading: Vec<Ratio>,
    pub(super) against: Option<Against>,
}

/// Name of this engine in reports.
pub(super) const OURS: &str = "lapwing";

/// The part of our own process's output that is needed here.
#[derive(Debug, Deserialize)]
struct Printed {
    results: Vec<Measured>,
}

/// All values of one engine, in the order of the pairs.
#[derive(Debug)]
struct Values {
    version: String,
    /// Speeds by test, then by pair.
    speeds: Vec<Vec<f64>>,
    /// Speeds of reading without computing, likewise; of this engine only.
    readings: Vec<Vec<f64>>,
    peak_bytes: Vec<Option<f64>>,
    one_token_ms: Vec<f64>,
}

/// Measures, saves and prints.
pub(super) async fn run(measurement: Measurement<'_>, session: &Session) -> Result<(), Failure> {
    for peer in measurement.peers {
        peer.check().await?;
    }
    let runs = measure(&measurement, session).await?;
    let record = measurement.record(runs)?;
    if let Some(path) = measurement.save {
        stored::save(&record, path, session)?;
    }
    let report = Report {
        pairs: measurement.repetitions,
        same_weights: record.requant.as_ref().is_none_or(|requant| requant.changed == 0),
        ratios: ratios(&record.engines),
        by_reading: by_reading(&record.engines),
        against: measurement.against.as_ref().map(|then| compare(&record, then, session)),
        record: &record,
    };
    if session.json { print_json(&report) } else { super::text::print_pairs(&report) }
}

async fn measure(
    measurement: &Measurement<'_>,
    session: &Session,
) -> Result<Vec<EngineRuns>, Failure> {
    let names: Vec<&str> =
        std::iter::once(OURS).chain(measurement.peers.iter().map(Peer::name)).collect();
    let empty = || Values {
        version: String::new(),
        speeds: vec![Vec::new(); measurement.tests.len()],
        readings: vec![Vec::new(); measurement.tests.len()],
        peak_bytes: Vec::new(),
        one_token_ms: Vec::new(),
    };
    let mut values: Vec<Values> = names.iter().map(|_| empty()).collect();
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len} runs, {eta} left");
    if let Some(bar) = &bar {
        bar.set_length((measurement.repetitions * names.len()) as u64);
    }
    for pair in 1..=measurement.repetitions {
        for (at, values) in values.iter_mut().enumerate() {
            match &bar {
                Some(bar) => bar.set_message(names[at].to_owned()),
                None => session
                    .note(&format!("pair {pair} of {}: {}", measurement.repetitions, names[at])),
            }
            measurement.one_run(at.checked_sub(1), values).await?;
            bar.iter().for_each(|bar| bar.inc(1));
        }
    }
    bar.iter().for_each(indicatif::ProgressBar::finish_and_clear);
    let engines = names.into_iter().zip(values);
    engines.map(|(name, values)| values.into_runs(name, &measurement.tests)).collect()
}

impl Measurement<'_> {
    /// Runs one repetition of every test, and one start, with a peer or with this engine.
    async fn one_run(&self, peer: Option<usize>, values: &mut Values) -> Result<(), Failure> {
        let tests = &self.tests[..];
        let reader = self.reader.as_ref().filter(|_| peer.is_none());
        let before = reading_speeds(reader, tests).await?;
        let (answer, ended) = self.process(peer, tests, self.warm_up).await?;
        for (speeds, speed) in values.speeds.iter_mut().zip(answer.speeds) {
            speeds.push(speed);
        }
        let after = reading_speeds(reader, tests).await?;
        for (readings, (before, after)) in
            values.readings.iter_mut().zip(before.into_iter().zip(after))
        {
            readings.extend(before.zip(after).map(|(before, after)| before.midpoint(after)));
        }
        values.version = answer.version;
        values.peak_bytes.push(ended.peak_bytes.map(|bytes| bytes as f64));
        let start = [Test { kind: Kind::Prompt, tokens: 1, depth: 0 }];
        let (_, started) = self.process(peer, &start, false).await?;
        values.one_token_ms.push(started.wall.as_secs_f64() * 1e3);
        Ok(())
    }

    async fn process(
        &self,
        peer: Option<usize>,
        tests: &[Test],
        warm_up: bool,
    ) -> Result<(Answer, Ended), Failure> {
        let threads = self.engine.thread_count();
        let job = Job { model: &self.model, threads, tests, warm_up };
        match peer {
            Some(at) => self.peers[at].measure(job).await,
            None => self.ourselves(job).await,
        }
    }

    async fn ourselves(&self, job: Job<'_>) -> Result<(Answer, Ended), Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::failed(format!("cannot find this program's file: {error}"))
        })?;
        let ended = child::run(&program, &own_args(self.engine, job)).await?;
        let Printed { results } = serde_json::from_slice(&ended.stdout).map_err(|error| {
            Failure::failed(format!("cannot read this program's own JSON: {error}"))
        })?;
        let speed = |test: &Test| {
            let name = test.to_string();
            let result = results.iter().find(|result| result.test == name);
            result.map(|result| result.tokens_per_second.median).ok_or_else(|| {
                Failure::failed(format!("this program's own JSON has no test {name}"))
            })
        };
        let speeds = job.tests.iter().map(speed).collect::<Result<Vec<f64>, Failure>>()?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok((Answer { version, speeds }, ended))
    }
}

/// Speed of reading without computing for each test, in tokens per second.
async fn reading_speeds(
    reader: Option<&Reader>,
    tests: &[Test],
) -> Result<Vec<Option<f64>>, Failure> {
    let Some(reader) = reader else { return Ok(Vec::new()) };
    let mut speeds = Vec::new();
    for test in tests {
        speeds.push(match reader.of(*test).await? {
            Some(reading) => Some(reading.speed().await?),
            None => None,
        });
    }
    Ok(speeds)
}

/// Arguments with which this program runs a job.
fn own_args(engine: &EngineArgs, job: Job<'_>) -> Vec<String> {
    let of = |kind: Kind| {
        let tokens = job.tests.iter().filter(|test| test.kind == kind).map(|test| test.tokens);
        super::peer::list_or_zero(tokens)
    };
    let depths = super::peer::list_or_zero(job.tests.iter().map(|test| test.depth));
    let mut args = vec!["bench".to_owned(), "--json".to_owned()];
    let pairs = [
        ("-m", job.model.display().to_string()),
        ("-p", of(Kind::Prompt)),
        ("-n", of(Kind::Generate)),
        ("-d", depths),
        ("-r", "1".to_owned()),
    ];
    args.extend(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
    if !job.warm_up {
        args.push("--no-warmup".to_owned());
    }
    args.extend(engine.to_args());
    args
}

impl Values {
    fn into_runs(self, name: &str, tests: &[Test]) -> Result<EngineRuns, Failure> {
        let measured = tests.iter().zip(self.speeds.into_iter().zip(self.readings));
        let results = measured.map(|(test, (speeds, readings))| {
            Ok(Measured { reading: Figures::of(readings), ..Measured::new(test, speeds)? })
        });
        let peaks: Option<Vec<f64>> = self.peak_bytes.into_iter().collect();
        Ok(EngineRuns {
            name: name.to_owned(),
            version: self.version,
            results: results.collect::<Result<_, Failure>>()?,
            peak_bytes: peaks.and_then(Figures::of),
            one_token_ms: Figures::of(self.one_token_ms),
        })
    }
}
