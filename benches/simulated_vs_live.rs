//! Throttled devices, live and in virtual time: how close the simulated time to first token is to the
//! measured one.
//!
//! ```text
//! cargo bench -p lapwing --bench simulated_vs_live -- FILE.gguf [MACHINE.toml|DEVICES] [LENGTHS]
//! ```
//!
//! The devices come from a preset written by `lapwing calibrate`, or are written out. Each strategy is
//! measured at each length (medians of three, warm) and simulated, also warm. Prints both, and fails if
//! they differ by more than [`ERROR_MAX`].

use lapwing::Engine;
use lapwing::compare::Compare;
use lapwing::devices::DeviceSpec;
use lapwing::simulate::{Machine, Scenario};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Maximum of |simulated − measured| / measured.
const ERROR_MAX: f64 = 0.10;
/// Devices slow enough for two cores to compute their true values in time.
const DEVICES: &str = "cpu=throttled:gflops=8,gbps=6+gpu=throttled:gflops=24,gbps=8+\
                       npu=systolic:gflops=72,gbps=6";
const LENGTHS: &str = "64,300,525";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("give a model: cargo bench -p lapwing --bench simulated_vs_live -- FILE.gguf");
        return Ok(());
    };
    let devices = args.next().unwrap_or_else(|| DEVICES.to_owned());
    let machine = match devices.ends_with(".toml") {
        true => Machine::from_toml(&std::fs::read_to_string(&devices)?)?,
        false => Machine::of_devices("bench", DeviceSpec::list(&devices)?)?,
    };
    let lengths = args.next().unwrap_or_else(|| LENGTHS.to_owned());
    let lengths = lengths.split(',').map(str::parse).collect::<std::result::Result<Vec<_>, _>>()?;
    let mut engine = Engine::builder().model(&model);
    for spec in machine.specs()? {
        engine = engine.device(spec);
    }
    let compare = Compare::new(engine).all_strategies().lengths(lengths).repetitions(3);
    let compared = compare.run(|_| {}).await?;
    println!("{}\n", compared.devices.join(" + "));
    println!("tokens  strategy               measured   simulated    error    late");
    let mut missed = Vec::new();
    for length in &compared.lengths {
        for run in &length.runs {
            let mut scenario = Scenario::on(machine.clone());
            scenario.model.clone_from(&model);
            (scenario.prompt, scenario.decode) = (length.tokens, 0);
            scenario.set("strategy", &run.strategy)?;
            let simulated = scenario.run()?.prefill_ms;
            let measured = run.ttft_ms.median;
            let error = (simulated - measured) / measured;
            println!(
                "{:6}  {:20} {measured:8.1} ms {simulated:8.1} ms {:+7.1} % {:6.1} ms",
                length.tokens,
                run.strategy,
                error * 100.0,
                run.late.as_secs_f64() * 1e3,
            );
            if error.abs() > ERROR_MAX {
                missed.push(format!("{} at {} tokens: {error:+.3}", run.strategy, length.tokens));
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n").into()) }
}
