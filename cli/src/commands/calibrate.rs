//! `lapwing calibrate`: describes this machine's devices as a preset.

use std::path::{Path, PathBuf};

use lapwing_engine::profile::Profile;
use lapwing_lab::simulate::{Machine, Scenario};
use lapwing_traces::whole_file;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::resolve::model_file;
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;
use crate::cli::{DeviceArgs, at_least_one};

use left_out::LeaveOut;

mod left_out;
mod native;

const EXAMPLES: &str = "\
Examples:
  lapwing calibrate --device phone -o phone.toml            throttled devices
  lapwing profile --device cpu && lapwing calibrate --profile FILE.json -o mine.toml
                                                            measured devices
  lapwing calibrate --device phone -m FILE.gguf -p 64,300,525
                                                            also simulate every strategy
  lapwing simulate --soc phone.toml --model FILE.gguf --trace sim.lwt
                                                            simulate and record one run
  lapwing calibrate --device phone -m FILE.gguf -p 64 --leave-out each
                                     measure every strategy, and predict each from the others

A CPU that is not throttled gets the rates of its roofline, measured within seconds: its simulated
times are lower bounds. A profile has the rates that its kernels reach.

Runs are simulated warm, as `lapwing bench` measures them: all graphs are prepared. Every number
has a unit, a source and a kind: pinned (measured), derived or assumed.

With --leave-out, a live engine runs every strategy. The time of a hand-over between devices and a
factor of each device's rates are fitted to the strategies that are not left out. They predict the
others, with the routes that the live engine took. A strategy that prepares graphs in a run is
measured and predicted without prepared graphs.

With --json:
  {\"name\":\"…\",\"toml\":\"…\",\"runs\":[{\"strategy\":\"…\",\"prompt\":N,\"prefill_ms\":F|null,
   \"error\":\"…\"|null}],\"left_out\":{\"median_error\":F,\"fitted\":[…],\"runs\":[…]}|null}";

/// Options of `calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Add a device, throttled or with --profile any; repeat the option, or join several with +
    /// (`lapwing devices` explains the keys)
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,

    /// Take the rates from a profile written by `lapwing profile`
    #[arg(long, value_name = "FILE.json")]
    profile: Option<PathBuf>,

    /// Measure all strategies, and predict those of this list, joined by commas, from the others; each
    /// leaves one out in turn
    #[arg(long, value_name = "NAME,…|each", requires_all = ["device", "model"])]
    leave_out: Option<String>,

    /// Tokens that are generated after each measured prompt
    #[arg(short = 'n', long, value_name = "N", default_value = "16", value_parser = at_least_one, requires = "leave_out")]
    max_tokens: usize,

    /// Measured runs of each strategy at each length
    #[arg(short, long, value_name = "N", default_value = "3", value_parser = at_least_one, requires = "leave_out")]
    repetitions: usize,

    /// Name of the preset
    #[arg(long, value_name = "NAME", default_value = "this-machine")]
    name: String,

    /// Write the preset to FILE instead of stdout
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,

    /// Also simulate every strategy with this model; only its header is read
    #[arg(short, long, alias = "simulate", value_name = "MODEL")]
    model: Option<String>,

    /// Prompt lengths of the simulated or measured runs, in tokens
    #[arg(
        short,
        long,
        alias = "prompt",
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "64,300,525",
        value_parser = at_least_one
    )]
    prompt_tokens: Vec<usize>,
}

#[derive(Serialize)]
struct Report {
    name: String,
    toml: String,
    runs: Vec<Run>,
    left_out: Option<left_out::Report>,
}

#[derive(Serialize)]
struct Run {
    strategy: String,
    prompt: usize,
    prefill_ms: Option<f64>,
    error: Option<String>,
}

/// Describes the devices, writes the preset and prints it.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    }
    let mut machine = machine(&args, session).await?;
    let (mut runs, mut left_out) = (Vec::new(), None);
    if let Some(model) = &args.model {
        let path = model_file(model, session).await?;
        match &args.leave_out {
            None => runs = simulated(&machine, &path, &args.prompt_tokens)?,
            Some(strategies) => {
                let leave_out = LeaveOut {
                    model: &path,
                    devices: DeviceArgs::of(args.device.clone()).specs()?,
                    profile: args.profile.as_deref(),
                    strategies,
                    lengths: &args.prompt_tokens,
                    tokens: args.max_tokens,
                    repetitions: args.repetitions,
                };
                let (fitted, report) = leave_out.run(machine, session).await?;
                (machine, left_out) = (fitted, Some(report));
            }
        }
    }
    let toml = machine.to_toml()?;
    if let Some(path) = &args.output {
        files::write(path, toml.as_bytes(), session)?;
    }
    if session.json {
        return print_json(&Report { name: machine.name, toml, runs, left_out });
    }
    let mut text = if args.output.is_some() { String::new() } else { visible(&toml).into_owned() };
    if !runs.is_empty() {
        text.push_str(&table_of(&runs));
    }
    if let Some(report) = &left_out {
        text.push_str(&report.text());
    }
    print(&text)
}

/// The machine that the options describe.
async fn machine(args: &Args, session: &Session) -> Result<Machine, Failure> {
    if let Some(path) = &args.profile {
        if !args.device.is_empty() && args.leave_out.is_none() {
            return Err(Failure::usage("give devices or a profile; --leave-out takes both"));
        }
        let profile = Profile::load(path).map_err(|error| Failure::failed(error.to_string()))?;
        return Ok(Machine::of_profile(&args.name, &profile)?);
    }
    let devices = DeviceArgs::of(args.device.clone());
    let specs = devices.specs()?;
    devices.note(session)?;
    if specs.is_empty() {
        return Err(Failure::usage(
            "give devices or a profile: --device phone, or --profile FILE.json",
        ));
    }
    let (specs, measured) = native::replaced(specs, session).await?;
    let mut machine = Machine::of_devices(&args.name, specs)?;
    native::describe(&mut machine, &measured);
    Ok(machine)
}

/// Every strategy at every length, simulated.
fn simulated(machine: &Machine, model: &Path, lengths: &[usize]) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for prompt in lengths.iter().copied() {
        for known in lapwing_engine::plan::strategies() {
            let mut scenario = Scenario::on(machine.clone());
            scenario.model = model.display().to_string();
            (scenario.prompt, scenario.decode) = (prompt, 0);
            scenario.set("strategy", known.name())?;
            let outcome = scenario.run();
            let ms = outcome.as_ref().ok().map(|run| run.prefill_ms);
            let error = outcome.err().map(|error| error.to_string());
            let strategy = known.name().to_owned();
            runs.push(Run { strategy, prompt, prefill_ms: ms, error });
        }
    }
    let failed = runs.iter().find_map(|run| run.error.as_ref());
    match failed.filter(|_| runs.iter().all(|run| run.error.is_some())) {
        Some(error) => Err(Failure::failed(format!("no strategy could be simulated: {error}"))),
        None => Ok(runs),
    }
}

fn table_of(runs: &[Run]) -> String {
    let header = [
        ("tokens", Align::Right),
        ("strategy", Align::Left),
        ("prefill, ms", Align::Right),
        ("", Align::Left),
    ];
    let row = |run: &Run| {
        [
            run.prompt.to_string(),
            run.strategy.clone(),
            run.prefill_ms.map_or("–".to_owned(), |ms| format!("{ms:.1}")),
            run.error.clone().unwrap_or_default(),
        ]
    };
    table(header, runs.iter().map(row).collect())
}
