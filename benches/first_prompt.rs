//! The first prompt on a set with an NPU: before and after its graphs were prepared, beside the CPU alone.
//!
//! ```text
//! cargo bench -p lapwing --bench first_prompt --features openvino -- [MODEL] [DEVICES] [STRATEGY] [LENGTHS] [REPETITIONS]
//! ```
//!
//! MODEL is a .gguf file or a name, by default smollm2-135m-instruct; DEVICES are by default `cpu+npu=openvino`, the strategy is
//! `chunk-graph`, the lengths are 40,400 tokens, and there are 5 repetitions. Each prompt is the first of an engine of its own, sent
//! as soon as the engine is built. The rows alternate, so that other programs affect all alike; numbers are medians.
//!
//! - `cpu alone`: one device;
//! - `cold`: packed weights are there, but neither plans nor graphs;
//! - `prepared`: the plans of `EngineBuilder::prepare_blocking`, and its graphs on disk;
//! - `cold, waits`: as cold, with requests that wait for their graphs (`EngineBuilder::wait_for_graphs`), once.
//!
//! Fails if a cold prompt takes more than [`COLD_MAX`] of the time of the CPU alone.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::prepare::{Plans, PrepareOptions};
use lapwing::traces::{Clock, OsClock};
use lapwing::{Engine, EngineBuilder, Prompt, Request, Shutdown};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Maximum of a cold prompt's time divided by that of the CPU alone.
const COLD_MAX: f64 = 1.2;

/// How an engine is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    CpuAlone,
    Cold,
    Prepared,
    Waits,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::CpuAlone => "cpu alone",
            State::Cold => "cold",
            State::Prepared => "prepared",
            State::Waits => "cold, waits",
        }
    }
}

/// One engine and its first prompt, in ms.
#[derive(Clone, Copy, Debug)]
struct First {
    start: f64,
    ttft: f64,
    predicted: Option<f64>,
    /// Chunks that other devices computed.
    elsewhere: u64,
}

/// What all engines share.
struct Bench {
    model: String,
    devices: Vec<DeviceSpec>,
    strategy: String,
    plans: Plans,
    clock: OsClock,
    /// Folder of packed weights and of graphs, with the prepared graphs.
    prepared: tempfile::TempDir,
}

fn of_model(model: &str) -> EngineBuilder {
    let builder = Engine::builder().context(1024).prefix_cache(false);
    match Path::new(model).exists() {
        true => builder.model(model),
        false => builder.model_named(model),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Bench {
    fn with_devices(&self) -> EngineBuilder {
        of_model(&self.model).devices(self.devices.clone()).strategy(&self.strategy)
    }

    /// A builder, with the folder that must exist as long as its engine.
    fn builder(&self, state: State) -> Result<(EngineBuilder, Option<tempfile::TempDir>)> {
        let with =
            |builder: EngineBuilder, folder: &Path| builder.packed_cache(folder.join("packed"));
        let warm = self.prepared.path();
        Ok(match state {
            State::CpuAlone => (with(of_model(&self.model).timed(), warm), None),
            State::Prepared => (with(self.with_devices().plans(self.plans.clone()), warm), None),
            State::Cold | State::Waits => {
                let folder = tempfile::tempdir()?;
                copy_packed(&warm.join("packed"), &folder.path().join("packed"))?;
                let builder = self.with_devices().wait_for_graphs(state == State::Waits);
                (with(builder, folder.path()), Some(folder))
            }
        })
    }

    async fn first(&self, state: State, tokens: usize) -> Result<First> {
        let (builder, _folder) = self.builder(state)?;
        let begin = self.clock.now();
        let engine = builder.build().await?;
        let start = ms(self.clock.now().since(begin));
        let predicted = engine.predict_first(tokens)?.map(ms);
        let ids = (0..tokens as u32).map(|at| 100 + at * 7919 % 20_000).collect();
        let request = Request::new(Prompt::Ids(ids)).greedy().ignore_eos().max_tokens(2);
        let mut stream = engine.generate(request).await?;
        while let Some(token) = stream.next().await {
            token?;
        }
        let summary = stream.summary().ok_or("the stream has no end")?;
        let ttft = ms(summary.times.ttft());
        let elsewhere = engine.stats().await?.graphs.chunks_elsewhere;
        engine.shutdown(Shutdown::Now).await?;
        Ok(First { start, ttft, predicted, elsewhere })
    }
}

/// Copies the packed weights, which stand beside the folder of graphs.
fn copy_packed(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.metadata()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let arg = |at: usize, default: &str| args.get(at).map_or(default, String::as_str).to_owned();
    let (model, strategy) = (arg(0, "smollm2-135m-instruct"), arg(2, "chunk-graph"));
    let devices = DeviceSpec::list(&arg(1, "cpu+npu=openvino"))?;
    let lengths = arg(3, "40,400")
        .split(',')
        .map(str::parse)
        .collect::<std::result::Result<Vec<usize>, _>>()?;
    let repetitions: usize = arg(4, "5").parse()?;

    let (prepared, clock) = (tempfile::tempdir()?, OsClock::start());
    let builder = of_model(&model).devices(devices.clone()).strategy(&strategy);
    let builder = builder.packed_cache(prepared.path().join("packed"));
    // Packs the weights for the rows without graphs, too.
    let begin = clock.now();
    let options = PrepareOptions { prompts: lengths.clone(), decode_rows: 1 };
    let made = builder.prepare_blocking(&options, &mut |_| ControlFlow::Continue(()))?;
    let took = ms(clock.now().since(begin)) / 1e3;
    for device in &made.devices {
        println!("prepared {} graphs of {} in {took:.1} s", device.prepared, device.device);
    }
    let bench = Bench { model, devices, strategy, plans: made.plans, clock, prepared };

    let states = [State::CpuAlone, State::Cold, State::Prepared];
    let mut found: Vec<(State, usize, First)> = Vec::new();
    for _ in 0..repetitions {
        for tokens in &lengths {
            for state in states {
                found.push((state, *tokens, bench.first(state, *tokens).await?));
            }
        }
    }
    for tokens in &lengths {
        found.push((State::Waits, *tokens, bench.first(State::Waits, *tokens).await?));
    }
    report(&lengths, &found)
}

/// Prints the table.
fn report(lengths: &[usize], found: &[(State, usize, First)]) -> Result<()> {
    println!(
        "{:>6}  {:12} {:>10} {:>22} {:>14} {:>10}  chunks elsewhere",
        "tokens", "state", "start, ms", "to the first token, ms", "predicted, ms", "of the cpu"
    );
    let mut missed = Vec::new();
    for tokens in lengths {
        let of = |state: State| {
            let runs = found.iter().filter(move |(s, t, _)| (*s, t) == (state, tokens));
            runs.map(|(_, _, first)| *first)
        };
        let alone = median(of(State::CpuAlone).map(|first| first.ttft));
        for state in [State::CpuAlone, State::Cold, State::Prepared, State::Waits] {
            let ttft = median(of(state).map(|first| first.ttft));
            let start = median(of(state).map(|first| first.start));
            let predicted = median(of(state).filter_map(|first| first.predicted));
            let elsewhere = of(state).map(|first| first.elsewhere).max().unwrap_or(0);
            let (name, ratio) = (state.name(), ttft / alone);
            println!(
                "{tokens:>6}  {name:12} {start:>10.0} {ttft:>22.1} {predicted:>14.1} {ratio:>9.2}×  {elsewhere}"
            );
            if state == State::Cold && ratio > COLD_MAX {
                missed.push(format!("{tokens} tokens: a cold prompt takes {ratio:.2} of the CPU"));
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n").into()) }
}
