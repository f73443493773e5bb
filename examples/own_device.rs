//! Lesson: give a processor that does not exist a law of time of your own, and see in virtual time what it
//! would be good for beside the processors of a phone.
//!
//! ```text
//!  one layer of a decode step, matmuls in memory: the weights never cross the bus
//!
//!    gpu │ norm │       │ rope, attention │       │ norm │         │ silu │      │ add │
//!        │      └─┐   ┌─┘                 └─┐   ┌─┘      └─┐     ┌─┘      └─┐  ┌─┘
//!    pim │        │q,k,v│                   │ o │          │gate,up│        │down│
//!
//!  its law: T(op) = rows · (command + bytes of the weights / bandwidth inside the memory)
//! ```
//!
//! A processor in memory multiplies where the weights are, at a bandwidth that the bus does not have, but one row
//! after another. So it should be fast in decode, where a step has one row, and slow in prefill. The device is 30
//! lines: what it is (its kind, its ops, its queue), and its law. The scheduler, the strategies and the solver are those
//! of the live engine, and they plan with the same law: no other code knows the device. Strategies that give each
//! kind of processor a role leave it out, those that compare predicted times use it where it is fastest, and one of
//! your own can ask for its kind.

use std::sync::Arc;
use std::time::Duration;

use lapwing::plan::strategy::LayerLevel;
use lapwing::plan::{
    ChunkShape, DeviceInfo, DeviceKind, Job, MemoryDomain, Op, OpSet, Phase, PlanError, PlanInput,
    Route, RouteBuilder, Strategies, Strategy, TimeModel,
};
use lapwing::simulate::{Axis, OwnDevice, Runs, Scenario, Simulated, Sweep, Workload};

/// The kind of the device, by which a strategy asks for it.
const PIM: DeviceKind = DeviceKind::Own("pim");
/// Bandwidth inside the memory, in bytes per second: five times that of the phone's GPU.
const BANDWIDTH: f64 = 200e9;
/// Time of the command that starts a row.
const COMMAND: Duration = Duration::from_micros(1);
/// Time until the host's values are there, and until it sees that the device is done.
const SYNC: Duration = Duration::from_micros(10);

/// The law of time of a processor in memory.
struct InMemory {
    workload: Workload,
}

impl TimeModel for InMemory {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        if job.crossed { SYNC } else { Duration::ZERO }
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let work = self.workload.work(job, node);
        (COMMAND + Duration::from_secs_f64(work.weight_bytes / BANDWIDTH)) * work.rows as u32
    }
}

/// The device: it runs the ops whose rows do not depend on each other, which are matmuls and what stands between them,
/// but no attention; it reads and writes values in the host's memory, and takes four submissions ahead.
fn in_memory() -> OwnDevice {
    let info = DeviceInfo::new("pim", PIM).with_ops(OpSet::STATIC);
    let info = info.with_queue(MemoryDomain::Host, 4);
    OwnDevice::new(info, |workload: &Workload| InMemory { workload: workload.clone() })
}

/// Prompts on the NPU and the GPU, by their roles; the matmuls of decode steps in memory, all else of them on the GPU.
struct DecodeInMemory {
    prompts: LayerLevel,
}

impl Strategy for DecodeInMemory {
    fn name(&self) -> &str {
        NAME
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let (pim, gpu) = (input.need(NAME, PIM)?, input.need(NAME, DeviceKind::Gpu)?);
        if shape.phase == Phase::Prefill {
            return self.prompts.route(input, shape);
        }
        let mut route = RouteBuilder::new(input, shape);
        let multiplies = |node: usize| matches!(input.graph.nodes()[node].op, Op::MatMul { .. });
        for (nodes, multiplies) in route.runs(multiplies) {
            route.on(if multiplies { pim } else { gpu }, nodes);
        }
        route.finish("matmuls in memory, the rest on the GPU".to_owned())
    }
}

/// Name of the strategy.
const NAME: &str = "decode-in-memory";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let strategies = Strategies::builtin().with(NAME, "matmuls of decode in memory", |_| {
        DecodeInMemory { prompts: LayerLevel::default() }
    })?;
    let scenario = Scenario::new("sd8gen3")?.strategies(strategies).own_device(in_memory());
    let choices = format!("strategy=gpu-only,layer-level,auto-place,tensor-level,{NAME}");
    let axes = vec![Axis::parse("device=gpu+npu,gpu+npu+pim")?, Axis::parse(&choices)?];
    let sweep = Sweep::run(&scenario, axes, &mut Runs::default())?;
    let (prompt, steps) = (scenario.prompt, scenario.decode);
    println!(
        "{}, {prompt} prompt tokens and {steps} decode steps in virtual time\n",
        scenario.model
    );
    println!(
        "{:12} {:17} {:>8} {:>13} {:>10}",
        "devices", "strategy", "TTFT ms", "decode tok/s", "pim busy"
    );
    for point in &sweep.points {
        let (devices, strategy) = (&point.values[0], &point.values[1]);
        let row = match &point.outcome {
            Ok(run) => figures(run),
            Err(error) => error.split(';').next().unwrap_or_default().to_owned(),
        };
        println!("{devices:12} {strategy:17} {row}");
    }
    holds(&sweep, steps)
}

/// The figures of a run: time to first token, speed of decode, and how busy the processor in memory is.
fn figures(run: &Simulated) -> String {
    let busy = busy_ms(run)
        .map_or_else(|| "–".to_owned(), |ms| format!("{:.0} %", 100.0 * ms / run.makespan_ms));
    let speed = run.decode_tokens_per_second.unwrap_or(f64::NAN);
    format!("{:8.0} {speed:13.1} {busy:>10}", run.prefill_ms)
}

fn busy_ms(run: &Simulated) -> Option<f64> {
    run.devices.iter().find(|device| device.name == "pim").map(|device| device.busy_ms)
}

/// Checks that the runs are those that the law implies.
fn holds(sweep: &Sweep, steps: usize) -> Result<(), Box<dyn std::error::Error>> {
    let run = |devices: &str, strategy: &str| {
        let is = |values: &[String]| values == [devices, strategy];
        let point = sweep.points.iter().find(|point| is(&point.values)).ok_or("no such run")?;
        point.outcome.as_ref().map_err(String::as_str)
    };
    let (alone, beside) = ("gpu+npu", "gpu+npu+pim");

    // Llama-3-8B: 32 layers of width 4096, keys of 1024, a feed-forward of 14336, 128256 tokens; 4 bits a weight.
    let (layers, width, keys, feed, tokens) = (32.0, 4096.0, 1024.0, 14336.0, 128256.0);
    let weights = layers * width * (2.0 * width + 2.0 * keys + 3.0 * feed) + width * tokens;
    let matmuls = 32 * 7 + 1;
    let step = weights / 2.0 / BANDWIDTH + COMMAND.as_secs_f64() * f64::from(matmuls);
    let law_ms = 1e3 * step * steps as f64;
    let apart = run(beside, NAME)?;
    let (decode_ms, in_memory) =
        (apart.decode_ms.ok_or("no steps")?, busy_ms(apart).ok_or("no device")?);
    println!(
        "\nthe law: {law_ms:.1} ms of {steps} steps in memory; simulated: {in_memory:.1} of {decode_ms:.1} ms"
    );
    assert!((in_memory / law_ms - 1.0).abs() < 1e-5, "the device takes the times of its law");
    assert!(decode_ms > law_ms, "no schedule is faster than its slowest device");

    let speed = |devices, strategy| run(devices, strategy).map(|run| run.decode_tokens_per_second);
    assert!(speed(beside, NAME)? > speed(alone, "tensor-level")?, "decode is bound by bandwidth");
    assert!(speed(beside, "tensor-level")? > speed(alone, "tensor-level")?, "the solver finds it");
    assert_eq!(speed(beside, "layer-level")?, speed(alone, "layer-level")?, "it has no role");
    let wait = |devices| run(devices, "gpu-only").map(|run| run.prefill_ms);
    assert_eq!(wait(beside)?, wait(alone)?, "a device without work changes nothing");
    assert!(run(alone, NAME).is_err(), "the strategy asks for a device that is not chosen");
    Ok(())
}
