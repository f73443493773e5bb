//! Options of a simulated scenario.

use std::path::Path;

use clap::Args;
use lapwing_engine::plan::MomentRoutes;
use lapwing_lab::simulate::{Change, Processors, Scenario};

use super::device_args::DeviceArgs;
use super::failure::Failure;
use super::parse::{at_least_one, policy};
use super::resolve::fetched_before;
use super::session::Session;

/// The scenario to simulate.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Scenario")]
pub(crate) struct ScenarioArgs {
    /// Processors: sd8gen3, ideal, fast-gpu, laptop, phone, or a .toml file with the numbers of a SoC, as printed by
    /// --show-soc, or with the devices of a live engine, as written by `lapwing calibrate`
    #[arg(long, value_name = "SOC", default_value = "sd8gen3")]
    soc: String,

    /// Choose the devices that compute, as in cpu+npu; repeat it, or join several with +
    ///
    /// Names are those of the processors of --soc: gpu, npu and cpu, or the devices of the file. NAME=FORM:KEY=VALUE,… is a
    /// device with the rates of a throttled live one, as in dsp=throttled:kind=gpu,gflops=400,gbps=20 or
    /// npu=systolic:gflops=4000,gbps=16; it takes the place of one with its name
    /// [default: all devices of a file; of a SoC gpu+npu, and cpu if the strategy requires it]
    #[arg(long = "device", value_name = "DEVICE")]
    device: Vec<String>,

    /// Shape of the model: llama-3-8b, llama-2-7b, llama-3.2-3b, internlm2-1.8b, qwen1.5-1.8b,
    /// qwen2-1.5b, and with experts qwen3-30b-a3b, gpt-oss-20b; a .gguf file or a fetched model by name, of which only the header is read; or
    /// dimensions, as in layers=16,dim=2048,ffn=8192,heads=32,vocab=128256 with, optionally,
    /// kv-heads=8,head-dim=64,tied=1,bits=4.5
    #[arg(
        short,
        long,
        visible_alias = "shape",
        value_name = "MODEL",
        default_value = "llama-3-8b"
    )]
    model: String,

    /// Tokens of the prompt
    #[arg(
        short,
        long,
        alias = "prompt",
        value_name = "N",
        default_value = "256",
        value_parser = at_least_one
    )]
    prompt_tokens: usize,

    /// Decode steps after the first token
    #[arg(short = 'n', long, alias = "decode", value_name = "N", default_value = "32")]
    max_tokens: usize,

    /// Strategy that places ops on processors, the same as in the live runtime
    #[arg(long, value_name = "NAME", default_value = "tensor-level")]
    strategy: String,

    /// Order of requests, the policies of the live runtime; a request that is alone, as here, has the
    /// same times with all of them
    #[arg(long, value_name = "NAME", default_value = "fcfs", value_parser = policy)]
    policy: String,

    /// Fast synchronisation between processors
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = on_off, action = clap::ArgAction::Set)]
    fast_sync: bool,

    /// Allow the NPU to swap the operands of matmuls; no effect on tensor-level, which always takes the
    /// better order, and on gpu-only
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = on_off, action = clap::ArgAction::Set)]
    order_swap: bool,

    /// Routes that auto chooses from for a chunk while devices are busy: class (those of devices that give the same bits), any, or
    /// off (the route for idle devices)
    #[arg(long, value_name = "any|class|off", default_value = "class")]
    moment: MomentRoutes,

    /// Maximum prompt tokens in a chunk; the chunk size of chunked and chunk-graph [default: the whole
    /// prompt; their own size]
    #[arg(long, value_name = "ROWS", value_parser = at_least_one)]
    chunk: Option<usize>,

    /// Maximum chunks in flight, 1 to 64 [default: 2; of a live engine's devices as there]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    permits: Option<usize>,

    /// Other load on the GPU: none, or game (60 frames per second)
    #[arg(long, value_name = "WHAT", default_value = "none")]
    interference: String,

    /// Tokens computed in each decode step, 1 to 64, as when a draft is verified; all count as accepted
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    verify: usize,

    /// Prepare graphs during the request for the next of 32, 64 … 1024 rows instead of the exact number
    #[arg(long, value_name = "on|off", default_value = "off", value_parser = on_off, action = clap::ArgAction::Set)]
    stepped_preparation: bool,

    /// Seed of the noise that noise.spread turns on
    #[arg(short, long, value_name = "N", default_value = "0")]
    seed: u64,

    /// Change numbers of the processors, as in sync.copy=2x,gpu.bandwidth=50 or, for devices,
    /// gpu.gflops=2x; may be repeated
    #[arg(long, value_name = "NUMBER=VALUE,…")]
    set: Vec<String>,
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it must be on or off".to_owned()),
    }
}

impl ScenarioArgs {
    /// Builds the scenario. Notes for readers of its results go to stderr.
    pub(crate) fn scenario(&self, session: &Session) -> Result<Scenario, Failure> {
        let scenario = self.scenario_of_requests()?;
        scenario.notes()?.iter().for_each(|note| session.note(&format!("note: {note}")));
        Ok(scenario)
    }

    /// Builds the scenario without notes, for requests that have lengths of their own.
    pub(crate) fn scenario_of_requests(&self) -> Result<Scenario, Failure> {
        DeviceArgs::check_strategy(&self.strategy)?;
        let mut scenario = soc(&self.soc)?.policy(&*self.policy);
        if !self.device.is_empty() {
            let chosen = scenario.set("device", &self.device.join("+"));
            chosen.map_err(|error| Failure::usage(format!("--device: {error}")))?;
        }
        scenario.model.clone_from(&self.model);
        if scenario.check_model().is_err()
            && let Some(path) = fetched_before(&self.model)?
        {
            scenario.model = path.display().to_string();
        }
        scenario.set("prompt", &self.prompt_tokens.to_string())?;
        scenario.set("decode", &self.max_tokens.to_string())?;
        scenario.set("strategy", &self.strategy)?;
        scenario.fast_sync = self.fast_sync;
        scenario.order_swap = self.order_swap;
        scenario.moment = self.moment;
        if let Some(rows) = self.chunk {
            scenario.set("chunk", &rows.to_string())?;
        }
        if let Some(permits) = self.permits {
            scenario.set("permits", &permits.to_string())?;
        }
        scenario.set("interference", &self.interference)?;
        scenario.set("verify", &self.verify.to_string())?;
        scenario.stepped_preparation = self.stepped_preparation;
        scenario.seed = self.seed;
        let mut changes = Vec::new();
        for text in &self.set {
            changes.extend(Change::list(text)?);
        }
        scenario.set_all(&changes)?;
        Ok(scenario)
    }
}

/// A scenario on a preset or on the processors of a file.
pub(crate) fn soc(name: &str) -> Result<Scenario, Failure> {
    let path = Path::new(name);
    if !name.ends_with(".toml") {
        return Ok(Scenario::new(name)?);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::file("read the SoC", path, &error))?;
    let processors = Processors::from_toml(&text)
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    Ok(Scenario::on(processors))
}
