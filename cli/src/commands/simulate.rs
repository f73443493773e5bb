//! `lapwing simulate`: one run in virtual time.

use std::path::PathBuf;

use lapwing_lab::simulate::{Repeated, Simulated};
use lapwing_traces::whole_file;
use serde::Serialize;

use crate::cli::ScenarioArgs;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::simulated;
use crate::cli::visible::visible;

const EXAMPLES: &str = "\
Examples:
  lapwing simulate -p 525 -n 32 --strategy pipe
  lapwing simulate --model llama-3.2-3b --strategy tensor-level --fast-sync off
  lapwing simulate --device cpu+npu --strategy chunk-graph -p 1024
  lapwing simulate --device gpu+npu --device pim=throttled:kind=gpu,gflops=500,gbps=200
  lapwing simulate --soc fast-gpu --set sync.fast=2x --interference game
  lapwing simulate --shape layers=16,dim=2048,ffn=8192,heads=32,kv-heads=8,vocab=128256,bits=4.5
  lapwing simulate --set noise.spread=0.05 --repeat 20
  lapwing simulate --strategy tensor-level --trace sim.lwt && lapwing timeline sim.lwt
  lapwing calibrate --device phone -o phone.toml
  lapwing simulate --soc phone.toml --model FILE.gguf -p 300 --trace sim.lwt
  lapwing timeline real.lwt sim.lwt       compare the same devices, live and simulated

The devices of a live engine are simulated warm, as they are measured: all graphs are prepared.
Their power and other load are unknown: energy is null, and --interference and --fast-sync off are
rejected.

With --json:
  {\"soc\":\"…\",\"device\":\"…\"|null,\"model\":\"…\",\"strategy\":\"…\",\"prompt\":N,\"decode\":N,
   \"fast_sync\":true|false,\"order_swap\":true|false,\"chunk\":N|null,\"permits\":N|null,
   \"interference\":\"none|game\",\"verify\":N,\"stepped_preparation\":true|false,\"seed\":N,
   \"prefill_ms\":F,\"prefill_tokens_per_second\":F,\"decode_ms\":F|null,
   \"decode_tokens_per_second\":F|null,\"makespan_ms\":F,\"lower_bound_ms\":F,\"preparation_ms\":F,
   \"energy_j\":F|null,\"power_w\":F|null,\"prefill_j\":F|null,\"prefill_w\":F|null,
   \"decode_j\":F|null,\"decode_w\":F|null,\"decode_gb_per_s\":F|null,
   \"overlap\":F,\"syncs\":N,\"frames_per_second\":F|null,
   \"devices\":[{\"name\":\"…\",\"busy_ms\":F,\"runs\":N}],
   \"repeat\":null|{\"count\":N,\"means\":[{\"figure\":\"…\",\"mean\":F,\"low\":F,\"high\":F}]}}";

/// Options of `simulate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,

    /// Write the run's timeline to FILE; `lapwing timeline FILE` shows it, or compares it with another
    /// one, simulated or real
    #[arg(long, value_name = "FILE.lwt")]
    trace: Option<PathBuf>,

    /// Run N times with seeds from --seed on; print the mean of each result, with a 95 % interval
    #[arg(long, value_name = "N", conflicts_with_all = ["trace", "show_soc"])]
    repeat: Option<usize>,

    /// Print the processors' numbers as TOML, with their sources, without simulating
    #[arg(long, conflicts_with = "trace")]
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
    let scenario = args.scenario.scenario(session)?;
    if args.show_soc {
        let toml = scenario.processors().to_toml()?;
        return match session.json {
            true => print_json(&serde_json::json!({"soc": scenario.soc_name(), "toml": toml})),
            false => print(&visible(&toml)),
        };
    }
    let run = match &args.trace {
        None => scenario.run()?,
        Some(path) => {
            whole_file::check(path)
                .map_err(|error| Failure::file("write the recording to", path, &error))?;
            let (run, recording) = scenario.record()?;
            recording.save(path).map_err(|error| Failure::failed(error.to_string()))?;
            let (events, path) = (recording.events.len(), path.display());
            session
                .note(&format!("recorded {events} events; see them with: lapwing timeline {path}"));
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
