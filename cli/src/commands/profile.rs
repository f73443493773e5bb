//! `lapwing profile`: measures the devices, to predict times from measurements.

use std::path::PathBuf;
use std::time::Duration;

use lapwing_engine::profile::{Errors, Fitted, Limits, Profile, Trust};
use lapwing_traces::whole_file;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::profiles::{measure, profile_file};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;
use crate::cli::{EngineArgs, ModelArg, at_least_one};

mod stored;

const EXAMPLES: &str = "\
Examples:
  lapwing profile -m FILE.gguf --device cpu --device npu
  lapwing profile --device phone --seconds 20
  lapwing profile --device cpu -o mine.json && lapwing calibrate --profile mine.json
  lapwing profile --list
  lapwing profile --remove all

Each op of the model is measured in isolation on each device: whole and, with several devices, with
shares of its output channels, for row counts up to a chunk. Other points are predicted; the error
is that of measured points left out of the fit, and at other widths that of widths left out. If the
time runs out, the least important points are skipped: '40 of 90' were measured then. The profile is
stored in the cache folder and used whenever this model runs on these devices of this machine,
unless it is unreliable: fewer than half of the points were measured, the median error is above
30 %, or the 90th percentile (p90) is above 100 %. `trust` says so.

With --json:
  {\"file\":\"PATH\",\"source\":\"…\",\"sync_us\":X,\"copy_gbps\":X,
   \"error\":{\"points\":N,\"median\":X,\"p90\":X},\"trust\":\"good\"|\"doubtful\"|\"unusable\",
   \"why\":\"…\"|null,
   \"devices\":[{\"device\":\"…\",\"what\":\"…\",\"points\":N,\"asked\":N,\"unmeasured\":[\"…\",…],
   \"model\":\"fit\"|\"tree\",\"error\":{…},\"width_error\":{…},
   \"spread\":X,\"submit_us\":X,\"crossing_us\":X},…]}
  --list: {\"profiles\":[{\"name\":\"…\",\"model\":\"…\",\"devices\":[\"…\",…],\"points\":N,
   \"asked\":N,\"error\":\"…\"|null},…]}
  --remove: {\"removed\":[\"…\",…]}";

/// Options of `profile`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// List the stored profiles instead of measuring one
    #[arg(long, conflicts_with = "remove")]
    list: bool,

    /// Remove a stored profile, by its name in --list, or all
    #[arg(long, value_name = "NAME")]
    remove: Option<String>,

    /// Write the profile to FILE, for --profile, instead of storing it in the cache
    #[arg(short, long, value_name = "FILE.json", conflicts_with_all = ["list", "remove"])]
    output: Option<PathBuf>,

    /// Maximum seconds for each device
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = at_least_one)]
    seconds: usize,

    /// Maximum runs of each op
    #[arg(short, long, value_name = "R", default_value_t = 7, value_parser = at_least_one)]
    repetitions: usize,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Serialize)]
struct Report {
    file: String,
    source: String,
    sync_us: f64,
    copy_gbps: f64,
    error: ErrorReport,
    trust: &'static str,
    why: Option<String>,
    devices: Vec<DeviceReport>,
}

#[derive(Serialize)]
struct DeviceReport {
    device: String,
    what: String,
    points: usize,
    /// Points that should have been measured.
    asked: usize,
    /// Kinds of ops without a measurement.
    unmeasured: Vec<&'static str>,
    model: &'static str,
    error: ErrorReport,
    /// Error at widths that were left out.
    width_error: ErrorReport,
    /// Median of (max − min) / median.
    spread: f64,
    submit_us: f64,
    crossing_us: f64,
}

#[derive(Serialize)]
struct ErrorReport {
    points: usize,
    median: Option<f64>,
    p90: Option<f64>,
}

impl From<Errors> for ErrorReport {
    fn from(errors: Errors) -> ErrorReport {
        let finite = |x: f64| x.is_finite().then_some(x);
        let Errors { points, median, p90 } = errors;
        ErrorReport { points, median: finite(median), p90: finite(p90) }
    }
}

/// Measures, stores and prints.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    if args.list {
        return stored::list(session);
    }
    if let Some(name) = &args.remove {
        return stored::remove(name, session);
    }
    args.engine.check(session)?;
    if let Some(path) = &args.output {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let builder = args.engine.builder_of(&args.model.model, session).await?;
    let limits = Limits {
        runs: args.repetitions,
        per_device: Duration::from_secs(args.seconds as u64),
        ..Limits::default()
    };
    let profile = measure(builder.clone(), limits, session).await?;
    let file = match args.output {
        Some(path) => path,
        None => profile_file(&builder)?,
    };
    lapwing_engine::profile::save(&profile, &file)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let fitted = builder.fit(&profile)?;
    if let Trust::Doubtful { why } | Trust::Unusable { why } = fitted.trust() {
        session.note(&format!(
            "warning: {why}; measure again on an idle machine, or with more --seconds"
        ));
    }
    let report = report(&profile, &fitted, file.display().to_string());
    if session.json { print_json(&report) } else { print_report(&report) }
}

fn report(profile: &Profile, fitted: &Fitted, file: String) -> Report {
    use lapwing_engine::plan::CostModel;
    let us = |ns: u64| ns as f64 / 1000.0;
    let devices = profile.devices.iter().zip(fitted.devices()).map(|(device, fit)| {
        let mut spreads: Vec<f64> = device.samples.iter().map(|s| s.time.relative()).collect();
        spreads.sort_by(f64::total_cmp);
        DeviceReport {
            device: device.name.clone(),
            what: device.description.clone(),
            points: device.samples.len(),
            asked: device.asked,
            unmeasured: fit.unmeasured.clone(),
            model: fit.model,
            error: fit.errors.into(),
            width_error: fit.widths.into(),
            spread: spreads.get(spreads.len() / 2).copied().unwrap_or(0.0),
            submit_us: us(device.submit_idle_ns),
            crossing_us: us(device.crossing_ns),
        }
    });
    Report {
        file,
        source: fitted.source(),
        sync_us: us(profile.sync.median_ns),
        copy_gbps: profile.copy_bytes_per_second / 1e9,
        error: fitted.errors().into(),
        trust: fitted.trust().name(),
        why: fitted.trust().why().map(str::to_owned),
        devices: devices.collect(),
    }
}

fn print_report(report: &Report) -> Result<(), Failure> {
    let percent = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{:.1} %", 100.0 * x));
    let rows = report.devices.iter().map(|device| {
        [
            device.device.clone(),
            format!("{} of {}", device.points, device.asked),
            percent(Some(device.spread)),
            device.model.to_owned(),
            percent(device.error.median),
            percent(device.error.p90),
            percent(device.width_error.median),
            format!("{:.0} µs", device.submit_us),
            format!("{:.0} µs", device.crossing_us),
        ]
    });
    let header = [
        ("device", Align::Left),
        ("points", Align::Right),
        ("spread", Align::Right),
        ("model", Align::Left),
        ("error (median)", Align::Right),
        ("p90", Align::Right),
        ("at other widths", Align::Right),
        ("submit", Align::Right),
        ("crossing", Align::Right),
    ];
    let missing = report.devices.iter().filter(|device| !device.unmeasured.is_empty());
    let missing = missing.map(|device| {
        let ops = device.unmeasured.join(", ");
        format!("{}: {ops} not measured; predicted from the work of other ops\n", device.device)
    });
    let missing: String = missing.collect();
    print(&format!(
        "{}\n{}{}\nsynchronisation {:.1} µs, copies {:.2} GB/s\nstored in {}\n",
        table(header, rows.collect()),
        visible(&missing),
        visible(&report.source),
        report.sync_us,
        report.copy_gbps,
        visible(&report.file),
    ))
}
