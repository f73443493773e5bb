//! Strategies on throttled devices of known rates: how close the solver's plan is to the bound of the
//! devices, whether `auto` chooses the fastest strategy, and how accurate the predicted times are.
//!
//! ```text
//! cargo bench -p lapwing --bench overlap -- FILE.gguf [DEVICES] [LENGTHS]
//! ```
//!
//! Measures every strategy at each length (medians), prints the results, and fails if a bound is
//! violated:
//! - the solver's plan (`tensor-level`): time to first token divided by its lower bound, at most
//!   [`BOUND_MAX`]. The lower bound is max(busiest device, critical path) of the plan with the devices'
//!   stated times; threads, messages and wake-ups are free, except for the stated synchronisation;
//! - `auto`: time to first token divided by that of the fastest strategy, at most [`AUTO_MAX`];
//! - the cost model: median of |predicted − measured| / measured, at most [`ERROR_MAX`].

use lapwing::Engine;
use lapwing::compare::{Compare, LengthComparison, StrategyRun};
use lapwing::devices::DeviceSpec;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Maximum of the solver's makespan divided by the lower bound.
const BOUND_MAX: f64 = 1.10;
/// Maximum of `auto`'s time divided by that of the fastest strategy.
const AUTO_MAX: f64 = 1.05;
/// Maximum median error of the predictions.
const ERROR_MAX: f64 = 0.10;
/// Devices slow enough for two cores to compute their true values in time.
const DEVICES: &str = "cpu=throttled:gflops=8,gbps=6+gpu=throttled:gflops=24,gbps=8+\
                       npu=systolic:gflops=72,gbps=6";
const LENGTHS: &str = "64,135,300,525";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("give a model: cargo bench -p lapwing --bench overlap -- FILE.gguf");
        return Ok(());
    };
    let devices = DeviceSpec::list(&args.next().unwrap_or_else(|| DEVICES.to_owned()))?;
    let lengths = args.next().unwrap_or_else(|| LENGTHS.to_owned());
    let lengths = lengths.split(',').map(str::parse).collect::<std::result::Result<Vec<_>, _>>()?;
    let mut engine = Engine::builder().model(model);
    for device in devices {
        engine = engine.device(device);
    }
    let compare = Compare::new(engine).all_strategies().lengths(lengths).repetitions(3);
    let compared = compare.run(|_| {}).await?;
    println!("{}; predictions from {}", compared.devices.join(" + "), compared.cost_source);
    let mut missed = Vec::new();
    let mut errors = Vec::new();
    for length in &compared.lengths {
        print_length(length);
        errors.extend(length.runs.iter().filter_map(prediction_error));
        let tokens = length.tokens;
        if !length.same_tokens {
            missed.push(format!("{tokens} tokens: strategies generated different tokens"));
        }
        match find(length, "tensor-level").and_then(bound_ratio) {
            Some(ratio) if ratio <= BOUND_MAX => {}
            ratio => {
                missed.push(format!("{tokens} tokens: solver's plan / lower bound: {ratio:?}"))
            }
        }
        let fastest = length.runs[length.fastest].ttft_ms.median;
        match find(length, "auto").map(|run| run.ttft_ms.median / fastest) {
            Some(ratio) if ratio <= AUTO_MAX => {}
            ratio => missed.push(format!("{tokens} tokens: auto / fastest: {ratio:?}")),
        }
    }
    errors.sort_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2).copied().unwrap_or(f64::INFINITY);
    println!("prediction error over {} runs: median {:.1} %", errors.len(), median * 100.0);
    if median > ERROR_MAX {
        missed.push(format!("median prediction error {median:.3}"));
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n").into()) }
}

fn find<'a>(length: &'a LengthComparison, strategy: &str) -> Option<&'a StrategyRun> {
    length.runs.iter().find(|run| run.strategy == strategy)
}

fn print_length(length: &LengthComparison) {
    println!("\n{} tokens", length.tokens);
    let fastest = length.runs[length.fastest].ttft_ms.median;
    for run in &length.runs {
        println!(
            "  {:20} TTFT {:8.1} ms ({:.2} of the fastest), predicted {:>8}, late {:.1} ms, overlap {}",
            run.strategy,
            run.ttft_ms.median,
            run.ttft_ms.median / fastest,
            run.predicted.map_or("-".to_owned(), |p| format!("{:.1}", p.as_secs_f64() * 1e3)),
            run.late.as_secs_f64() * 1e3,
            run.figures().overlap.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        );
    }
    for (strategy, why) in &length.absent {
        println!("  {strategy:20} impossible: {why}");
    }
}

/// |Predicted − measured| / measured time to the first token.
fn prediction_error(run: &StrategyRun) -> Option<f64> {
    let predicted = run.predicted?.as_secs_f64() * 1e3;
    Some((predicted - run.ttft_ms.median).abs() / run.ttft_ms.median)
}

/// Measured time to first token divided by the lower bound of the plan with the devices' stated times:
/// its critical path or its busiest device, whichever is longer.
fn bound_ratio(run: &StrategyRun) -> Option<f64> {
    Some(run.ttft_ms.median / (run.predicted?.as_secs_f64() * 1e3))
}
