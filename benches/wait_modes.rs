//! Decode speed of two devices in each wait mode: tokens per second, and the ratio to parking.
//!
//! ```text
//! cargo bench -p lapwing --bench wait_modes -- FILE.gguf [ROUNDS] [TOKENS]
//! ```
//!
//! Two devices of one thread each take turns (`layer-split`: two borders per token) or divide every
//! matmul (`row-cut`: several borders per layer). They are not throttled below the speed of the
//! machine, so that the waits are those of real work. The engines of all modes generate in turn, in
//! another order in each round. The ratio of a mode is the median over the rounds of its speed divided
//! by that of parking (`callback`) in the same round, so slow changes of the machine cancel out.
//!
//! Fails if the default, by which a worker chooses for each wait, reaches less than [`DEFAULT_MIN`] of
//! the fastest mode.

use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::{Engine, Prompt, Request, WaitLink, WaitMode};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Smallest accepted speed of the default, relative to the fastest mode.
const DEFAULT_MIN: f64 = 0.95;
const DEVICES: &str = "cpu=cores:threads=1+\
                       gpu=throttled:gflops=1e9,gbps=1e9,submit=0,idle-submit=0,sync=0,threads=1";
const STRATEGIES: [&str; 2] = ["layer-split", "row-cut"];
/// The default comes first.
const MODES: [Option<WaitMode>; 5] = [
    None,
    Some(WaitMode::Callback),
    Some(WaitMode::Blocking),
    Some(WaitMode::Spin),
    Some(WaitMode::SleepThenSpin),
];
/// Position of `callback` in [`MODES`].
const PARK: usize = 1;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!(
            "usage: cargo bench -p lapwing --bench wait_modes -- FILE.gguf [ROUNDS] [TOKENS]"
        );
        return Ok(());
    };
    let rounds: usize = args.next().map_or(Ok(9), |arg| arg.parse())?;
    let tokens: usize = args.next().map_or(Ok(32), |arg| arg.parse())?;
    let mut slow = Vec::new();
    for strategy in STRATEGIES {
        let mut engines = Vec::new();
        for mode in MODES {
            engines.push(engine(&model, strategy, mode).await?);
        }
        let mut speeds = MODES.map(|_| Vec::new());
        for round in 0..=rounds {
            for at in (0..MODES.len()).map(|at| (at + round) % MODES.len()) {
                let speed = speed(&engines[at], tokens).await?;
                // The first round is for learning how long the waits are.
                if round > 0 {
                    speeds[at].push(speed);
                }
            }
        }
        let ratios = print(strategy, &speeds);
        let fastest = ratios.iter().copied().fold(0.0, f64::max);
        if ratios[0] < DEFAULT_MIN * fastest {
            slow.push(format!("{strategy}: {:.3} of the fastest mode", ratios[0] / fastest));
        }
    }
    if slow.is_empty() { Ok(()) } else { Err(slow.join("\n").into()) }
}

async fn engine(model: &str, strategy: &str, mode: Option<WaitMode>) -> Result<Engine> {
    let builder = Engine::builder().model(model).devices(DeviceSpec::list(DEVICES)?);
    let builder = builder.strategy(strategy).context(256).wait_for_graphs(true);
    let builder = match mode {
        Some(mode) => builder.wait(WaitLink::Devices, mode),
        None => builder,
    };
    Ok(builder.build().await?)
}

/// Tokens per second after the first token.
async fn speed(engine: &Engine, tokens: usize) -> Result<f64> {
    let bos = engine.tokenizer().bos().unwrap_or(0);
    let request = Request::new(Prompt::Ids(vec![bos])).greedy().ignore_eos().max_tokens(tokens);
    let mut stream = engine.generate(request).await?;
    let clock = engine.recorder().clock();
    let (mut first, mut last) = (None, clock.now());
    while let Some(token) = stream.next().await {
        token?;
        last = clock.now();
        first.get_or_insert(last);
    }
    let time = first.map_or(Duration::ZERO, |first| last - first);
    Ok((tokens - 1) as f64 / time.as_secs_f64())
}

/// Prints the modes and returns their ratios to parking.
fn print(strategy: &str, speeds: &[Vec<f64>; MODES.len()]) -> [f64; MODES.len()] {
    println!("{strategy:<12} {:>16} {:>14} {:>14}", "mode", "tokens/s", "of parking");
    let ratios = speeds.each_ref().map(|mode| {
        median(mode.iter().zip(&speeds[PARK]).map(|(speed, park)| speed / park).collect())
    });
    for ((mode, speeds), ratio) in MODES.iter().zip(speeds).zip(&ratios) {
        let name = mode.map_or("default", WaitMode::name);
        println!("{:<12} {name:>16} {:>14.1} {ratio:>14.3}", "", median(speeds.clone()));
    }
    ratios
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
