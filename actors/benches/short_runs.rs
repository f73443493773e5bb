//! How many short runs of a modelled system one core makes in a second of its time. Fails below a
//! thousand.

use std::error::Error;
use std::hint::black_box;

use lapwing_actors::simulate::soc::{SocModel, SocOptions, SocSimulation};
use lapwing_kernels::model::shape::ModelShape;
use lapwing_plan::soc::Soc;
use lapwing_plan::strategy::{StrategyOptions, by_name};

#[path = "support/thread_time.rs"]
#[expect(dead_code, reason = "other benches set timers and stay on a core")]
mod thread_time;

use thread_time::thread_cpu_ns;

/// Least number of runs per second.
const LEAST: f64 = 1000.0;

/// Runs of each strategy.
const RUNS: usize = 1000;

/// Layers of a short run: enough for every kind of border.
const LAYERS: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    if cfg!(debug_assertions) {
        eprintln!("measured with --release only");
        return Ok(());
    }
    let shape = ModelShape::by_name("llama-3-8b").ok_or("no such shape")?;
    let model = SocModel::of_shape(&ModelShape { layers: LAYERS, ..shape.clone() })?;
    let soc = Soc::preset("sd8gen3")?;
    let (mut runs, mut seconds) = (0, 0.0);
    println!("{LAYERS} layers of {}, a prompt of 64 to 320 rows, 2 steps of decoding", shape.title);
    for name in ["gpu-only", "layer-level", "pipe", "row-cut", "chunked", "tensor-level"] {
        let strategy = by_name(name, &StrategyOptions::default())?;
        let start = thread_cpu_ns();
        for at in 0..RUNS {
            let options = SocOptions { prompt: 64 + at % 257, decode: 2, ..SocOptions::default() };
            black_box(SocSimulation::new(&model, &soc, &strategy, &options)?.run()?);
        }
        let time = (thread_cpu_ns() - start) as f64 / 1e9;
        if time == 0.0 {
            return Err("the system does not tell a thread's time".into());
        }
        println!("{name:14} {:8.0} runs per second", RUNS as f64 / time);
        (runs, seconds) = (runs + RUNS, seconds + time);
    }
    let rate = runs as f64 / seconds;
    println!("{:14} {rate:8.0} runs per second", "all");
    if rate < LEAST {
        return Err(format!("{rate:.0} runs per second are fewer than {LEAST}").into());
    }
    Ok(())
}
