//! Measures this engine in this process.

use indicatif::ProgressBar;
use serde::Serialize;

use super::against::{self, Against};
use super::report::{EngineRuns, Measured};
use super::subject::Subject;
use super::{Measurement, measure, pairs, stored, text};
use crate::cli::attention::AttentionChanges;
use crate::cli::child;
use crate::cli::failure::Failure;
use crate::cli::opening::Given;
use crate::cli::output::print_json;
use crate::cli::profiles::with_given;
use crate::cli::requant::RequantReport;
use crate::cli::session::Session;
use crate::cli::signals::Signal;
use crate::cli::trace::{self, TraceArg};
use lapwing_engine::EngineBuilder;

/// The JSON report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) results: Vec<Measured>,
    pub(super) model: String,
    pub(super) model_bytes: u64,
    pub(super) architecture: String,
    pub(super) threads: usize,
    /// The cores that the threads are pinned to.
    pub(super) cores: Option<String>,
    pub(super) isa: String,
    /// Kernels of the OpenCL devices that compute, and whether nothing else computes.
    #[serde(skip)]
    pub(super) opencl: (Vec<String>, bool),
    pub(super) kv: &'static str,
    pub(super) activations: &'static str,
    pub(super) requant: Option<RequantReport>,
    #[serde(flatten)]
    pub(super) attention: AttentionChanges,
    pub(super) chunk: usize,
    pub(super) repetitions: usize,
    /// Maximum resident memory of the process, if the system reports it and nothing else was read.
    pub(super) peak_resident_bytes: Option<u64>,
    pub(super) against: Option<Against>,
}

/// Measures, saves and prints.
pub(super) async fn run(
    measurement: Measurement<'_>,
    trace: &TraceArg,
    session: &Session,
) -> Result<(), Failure> {
    let Measurement { model, engine: args, tests, warm_up, .. } = &measurement;
    let longest = tests.iter().map(|test| test.context()).max().unwrap_or(1);
    // Random prompts that run one after another cannot share anything.
    let builder = with_given(args.builder(model.clone())?, measurement.profile)?;
    let builder = builder.context(longest).cache_tokens(longest);
    let recorder = trace.trace.as_ref().map(|_| trace::recorder());
    let builder = builder.given(recorder, EngineBuilder::recorder);
    let subject = Subject::open(builder, *warm_up, session).await?;
    let mut subject = subject.accepting(measurement.acceptance);
    let results = measured(&measurement, &mut subject, trace, session).await?;
    let engine = subject.engine()?;
    let mut report = Report {
        results,
        model: engine.model_path().display().to_string(),
        model_bytes: std::fs::metadata(model).map_or(0, |data| data.len()),
        architecture: engine.model().arch.name().to_owned(),
        threads: args.thread_count(),
        cores: args.cores.as_ref().map(ToString::to_string),
        isa: args.isa_name(),
        opencl: text::opencl_kernels(engine.placement()),
        kv: args.kv.name(),
        activations: args.activations().name(),
        requant: engine.requantized().map(RequantReport::of),
        attention: AttentionChanges::of(engine),
        chunk: engine.chunk_rows(),
        repetitions: measurement.repetitions,
        // It would include the memory that was read.
        peak_resident_bytes: match measurement.reader {
            Some(_) => None,
            None => child::resident_peak(std::process::id()),
        },
        against: None,
    };
    if measurement.save.is_some() || measurement.against.is_some() {
        let ours = EngineRuns {
            name: pairs::OURS.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            results: report.results.clone(),
            peak_bytes: None,
            one_token_ms: None,
        };
        let record = measurement.record(vec![ours])?;
        if let Some(path) = measurement.save {
            stored::save(&record, path, session)?;
        }
        let then = measurement.against.as_ref();
        report.against = then.map(|then| against::compare(&record, then, session));
    }
    if session.json { print_json(&report) } else { text::print_own(&report) }
}

/// Runs the tests, ends the engine, and saves the recording.
async fn measured(
    measurement: &Measurement<'_>,
    subject: &mut Subject,
    trace: &TraceArg,
    session: &Session,
) -> Result<Vec<Measured>, Failure> {
    let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len} runs");
    if let Some(bar) = &bar {
        let each = measurement.repetitions + usize::from(measurement.warm_up);
        bar.set_length((measurement.tests.len() * each) as u64);
    }
    let mut received = Signal::Interrupt;
    let recorder = subject.engine()?.recorder().clone();
    let results = {
        let measuring = measure::measure(measurement, subject, bar.as_ref(), session);
        if trace.trace.is_none() {
            Some(measuring.await?)
        } else {
            // A signal ends the process after the recording is saved.
            let claim = session.interrupts.claim();
            tokio::select! {
                biased;
                signal = claim.interrupted() => {
                    received = signal;
                    None
                }
                results = measuring => Some(results?),
            }
        }
    };
    if results.is_none() {
        session.restore_after_interrupt();
    }
    bar.iter().for_each(ProgressBar::finish_and_clear);
    subject.shutdown().await?;
    trace.save(|| recorder.recording(), session)?;
    results.ok_or(Failure::Interrupted(received))
}
