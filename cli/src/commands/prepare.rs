//! `lapwing prepare`: measures, plans and prepares ahead, so that the first prompt starts warm.

use std::time::Duration;

use lapwing_engine::prepare::{Preparation, PrepareOptions, save};
use lapwing_engine::profile::Limits;
use lapwing_traces::text::counted;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::plans::{plans_file, prepare, with_plans};
use crate::cli::profiles::{is_stored, measure, profile_file, stored};
use crate::cli::session::Session;
use crate::cli::visible::visible;
use crate::cli::{EngineArgs, ModelArg, at_least_one};

const EXAMPLES: &str = "\
Examples:
  lapwing prepare --device cpu --device npu=openvino --strategy chunk-graph
  lapwing prepare -m FILE.gguf --device cpu+npu=qnn -p 64,128
  lapwing run --device cpu --device npu=openvino --strategy chunk-graph \"Why is the sky blue?\"

Measures a profile of the devices if there is none (as `lapwing profile` does), plans prompts of
these lengths and decode steps, and prepares and checks the graphs that the plans need. Everything
is stored in the cache folder, for every command with the same model, devices, strategy and other
options, and is made only once. Prompts of other lengths are planned when they come, and use the
same graphs where these fit.

Graphs of OpenVINO and QNN are kept. Without such a device, the profile and the plans are prepared.

With --json:
  {\"profile\":{\"file\":\"PATH\",\"measured\":true|false,\"used\":true|false},
   \"plans\":{\"file\":\"PATH\",\"prompts\":[N,…],\"decode_rows\":N,\"routes\":N,\"solved\":N,\"ms\":X},
   \"devices\":[{\"device\":\"…\",\"keeps\":true|false,\"graphs\":N,\"prepared\":N,\"kept\":N,\"ms\":X},…],
   \"was_there\":true|false}";

/// Options of `prepare`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Tokens of the prompts [default: 32,64,128,256,512]
    #[arg(
        short,
        long,
        aliases = ["length", "prompt"],
        short_alias = 'l',
        value_name = "N,…",
        value_delimiter = ',',
        value_parser = at_least_one
    )]
    prompt_tokens: Vec<usize>,

    /// Maximum sequences of a decode step
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    decode_rows: usize,

    /// Maximum seconds for each device, if a profile is measured
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = at_least_one)]
    seconds: usize,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Serialize)]
struct Report {
    profile: ProfileReport,
    plans: PlansReport,
    devices: Vec<DeviceReport>,
    was_there: bool,
}

#[derive(Serialize)]
struct ProfileReport {
    file: String,
    /// By this call.
    measured: bool,
    /// Whether it is reliable enough to plan with.
    used: bool,
}

#[derive(Serialize)]
struct PlansReport {
    file: String,
    prompts: Vec<usize>,
    decode_rows: usize,
    routes: usize,
    /// By this call.
    solved: usize,
    ms: f64,
}

#[derive(Serialize)]
struct DeviceReport {
    device: String,
    keeps: bool,
    graphs: usize,
    /// By this call.
    prepared: usize,
    kept: usize,
    ms: f64,
}

/// Measures, plans, prepares and prints.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let plain = args.engine.builder_of(&args.model.model, session).await?;
    let file = profile_file(&plain)?;
    let measured = !is_stored(&plain)?;
    if measured {
        let per_device = Duration::from_secs(args.seconds as u64);
        let limits = Limits { per_device, ..Limits::default() };
        let profile = measure(plain.clone(), limits, session).await?;
        lapwing_engine::profile::save(&profile, &file)
            .map_err(|error| Failure::failed(error.to_string()))?;
    }
    let stored_profile = stored(&plain, session);
    let used = stored_profile.is_some();
    let profile = ProfileReport { file: file.display().to_string(), measured, used };
    let builder = match stored_profile {
        Some(profile) => plain.profile(profile),
        None => plain,
    };
    let mut options = PrepareOptions { decode_rows: args.decode_rows, ..PrepareOptions::default() };
    if !args.prompt_tokens.is_empty() {
        options.prompts = args.prompt_tokens;
    }
    let file = plans_file(&builder)?;
    let builder = with_plans(builder, session);
    let prepared = prepare(builder, options, session).await?;
    save(&prepared.plans, &file).map_err(|error| Failure::failed(error.to_string()))?;
    let report = report(&prepared, profile, file.display().to_string());
    if session.json { print_json(&report) } else { print_report(&report) }
}

fn report(prepared: &Preparation, profile: ProfileReport, file: String) -> Report {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let devices = prepared.devices.iter().map(|device| DeviceReport {
        device: device.device.clone(),
        keeps: device.keeps,
        graphs: device.graphs,
        prepared: device.prepared,
        kept: device.kept,
        ms: ms(device.time),
    });
    Report {
        was_there: !profile.measured && prepared.was_there(),
        profile,
        plans: PlansReport {
            file,
            prompts: prepared.prompts.clone(),
            decode_rows: prepared.decode_rows,
            routes: prepared.plans.routes(),
            solved: prepared.solved,
            ms: ms(prepared.planning),
        },
        devices: devices.collect(),
    }
}

fn print_report(report: &Report) -> Result<(), Failure> {
    let Report { profile, plans, devices, was_there } = report;
    let made = if profile.measured { "measured" } else { "was there" };
    let used = if profile.used { "" } else { ", not reliable enough to plan with" };
    let mut text = format!("profile: {made}{used}; {}\n", visible(&profile.file));
    let lengths: Vec<String> = plans.prompts.iter().map(usize::to_string).collect();
    text.push_str(&format!(
        "plans: {}, {} of them solved in {:.1} s, for prompts of {} tokens and decode steps of 1 to {}; {}\n",
        counted(plans.routes, "route"),
        plans.solved,
        plans.ms / 1e3,
        lengths.join(", "),
        counted(plans.decode_rows, "sequence"),
        visible(&plans.file),
    ));
    for device in devices {
        let name = visible(&device.device);
        let DeviceReport { graphs, prepared, kept, ms, .. } = device;
        text.push_str(&match device.keeps {
            true => format!(
                "{name}: {}, {prepared} of them prepared in {:.1} s\n",
                counted(*graphs, "graph"),
                ms / 1e3
            ),
            false => format!("{name}: its graphs cannot be kept, so that every start makes them\n"),
        });
        if device.keeps && kept < graphs {
            text.push_str(&format!(
                "{name}: only {kept} of its {graphs} graphs are kept: the folder is full, or cannot be written; prepare fewer \
                 lengths with --prompt-tokens\n"
            ));
        }
    }
    if devices.is_empty() {
        text.push_str("no NPU is among the devices: there are no graphs to prepare\n");
    }
    if *was_there {
        text.push_str("everything was there\n");
    }
    print(&text)
}
