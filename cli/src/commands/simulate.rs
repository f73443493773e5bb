//! `lapwing simulate`: one run in virtual time.

use std::path::{Path, PathBuf};

use lapwing_lab::simulate::{Repeated, Simulated};
use lapwing_traces::{Recording, whole_file};
use serde::Serialize;

use crate::cli::ScenarioArgs;
use crate::cli::composite_args::CompositeArgs;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::simulated;
use crate::cli::visible::visible;

mod composite;
mod gains;
mod help;

use help::EXAMPLES;

/// Options of `simulate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,

    #[command(flatten)]
    composite: CompositeArgs,

    /// Write the run's timeline to FILE; `lapwing timeline FILE` shows it, or compares it with another
    /// one, simulated or real
    #[arg(long, value_name = "FILE.lwt")]
    trace: Option<PathBuf>,

    /// Run N times with seeds from --seed on; print the mean of each result, with a 95 % interval
    #[arg(long, value_name = "N", conflicts_with_all = ["trace", "show_soc"])]
    repeat: Option<usize>,

    /// Print the processors' numbers as TOML, with their sources, without simulating
    #[arg(long, conflicts_with_all = ["trace", "requests"])]
    show_soc: bool,
}

#[derive(Serialize)]
struct Report {
    soc: String,
    device: Option<String>,
    model: String,
    strategy: String,
    prompt: usize,
    decode: usize,
    fast_sync: bool,
    order_swap: bool,
    moment: &'static str,
    chunk: Option<usize>,
    permits: Option<usize>,
    interference: String,
    verify: usize,
    stepped_preparation: bool,
    seed: u64,
    #[serde(flatten)]
    run: Simulated,
    repeat: Option<Repeated>,
}

/// Simulates and prints.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    args.composite.check_form(args.composite.requests.is_some())?;
    let scenario = match args.composite.requests {
        None => args.scenario.scenario(session)?,
        Some(_) => args.scenario.scenario_of_requests()?,
    };
    if args.show_soc {
        let toml = scenario.processors().to_toml()?;
        return match session.json {
            true => print_json(&serde_json::json!({"soc": scenario.soc_name(), "toml": toml})),
            false => print(&visible(&toml)),
        };
    }
    if let Some(path) = &args.trace {
        whole_file::check(path)
            .map_err(|error| Failure::file("write the recording to", path, &error))?;
    }
    if let Some(requests) = &args.composite.requests {
        let notes = scenario.notes_on_settings();
        notes.iter().for_each(|note| session.note(&format!("note: {note}")));
        return composite::run(args, &scenario, requests, session);
    }
    let run = match &args.trace {
        None => scenario.run()?,
        Some(path) => {
            let (run, recording) = scenario.record()?;
            save(&recording, path, session)?;
            run
        }
    };
    let repeat = args.repeat.map(|count| Repeated::run(&scenario, count)).transpose()?;
    if repeat.is_some() && scenario.processors().value("noise.spread").is_ok_and(|s| s == 0.0) {
        session.note("note: without noise all runs are equal; add --set noise.spread=0.05");
    }
    if !session.json {
        let mut text = simulated::text(&scenario.to_string(), &run);
        text.extend(repeat.as_ref().map(simulated::means));
        return print(&text);
    }
    print_json(&Report {
        soc: scenario.soc_name(),
        device: scenario.chosen_devices().map(str::to_owned),
        model: scenario.model.clone(),
        strategy: scenario.strategy_name().to_owned(),
        prompt: scenario.prompt,
        decode: scenario.decode,
        fast_sync: scenario.fast_sync,
        order_swap: scenario.order_swap,
        moment: scenario.moment.name(),
        chunk: scenario.chunk,
        permits: scenario.permits,
        interference: scenario.interference.to_string(),
        verify: scenario.verify,
        stepped_preparation: scenario.stepped_preparation,
        seed: scenario.seed,
        run,
        repeat,
    })
}

/// Writes a recording, and says how to see it.
fn save(recording: &Recording, path: &Path, session: &Session) -> Result<(), Failure> {
    recording.save(path).map_err(|error| Failure::failed(error.to_string()))?;
    let (events, path) = (recording.events.len(), path.display());
    session.note(&format!("recorded {events} events; see them with: lapwing timeline {path}"));
    Ok(())
}
