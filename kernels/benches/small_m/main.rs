//! What a pass of n rows costs, as a multiple of a pass of one row: the price of verifying n drafted
//! tokens, or of decoding a batch of n sequences. Whole passes over a part of Llama 3.2 1B with logits
//! for every row, after a context, for each weight format.
//!
//! ```text
//! cargo bench -p lapwing-kernels --bench small_m -- [--threads N] [--formats Q4_0,F16] [--isa NAME]
//!     [--rows 1,2,4,8] [--rounds N] [--context N] [--ops] [--llama PATH/llama-bench]
//! ```
//!
//! Passes of all sizes take turns, so that a slower minute of the machine hits all of them; times are
//! medians. Beside each stands the larger of two bounds, measured in the same run: reading all weights,
//! keys and values once, and multiplying at the peak of the instruction set. `--ops` prints where the
//! time goes. `--llama` measures prompts of n tokens with llama.cpp on the same file (logits for the
//! last row only, which makes its work smaller).

mod llama;
mod model;
mod passes;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lapwing_kernels::cost::Cost;
use lapwing_kernels::cpu::roofline::{Kernel, Roofline};
use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_kernels::formats::DType;
use lapwing_kernels::kv::KvDtype;
use lapwing_kernels::op::Op;
use passes::{Passes, Timing};

pub(crate) type Failure = Box<dyn std::error::Error>;

/// Rounds of the measurement of the machine's limits.
const ROOFLINE_ROUNDS: usize = 15;

/// What to measure.
struct Options {
    threads: usize,
    formats: Vec<DType>,
    isa: Isa,
    /// Sizes of the passes; the first is 1.
    rows: Vec<usize>,
    rounds: usize,
    /// Positions in the cache before each pass.
    context: usize,
    ops: bool,
    llama: Option<PathBuf>,
}

impl Options {
    fn from_args() -> Result<Options, Failure> {
        let mut options = Options {
            threads: 2,
            formats: DType::ALL.to_vec(),
            isa: Isa::best(),
            rows: (1..=16).chain([24, 32]).collect(),
            rounds: 15,
            context: 256,
            ops: false,
            llama: None,
        };
        let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
        while let Some(arg) = args.next() {
            if arg == "--ops" {
                options.ops = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            match arg.as_str() {
                "--threads" => options.threads = value.parse()?,
                "--rounds" => options.rounds = value.parse::<usize>()?.max(1),
                "--context" => options.context = value.parse()?,
                "--llama" => options.llama = Some(value.into()),
                "--rows" => {
                    let rows: Result<Vec<usize>, _> = value.split(',').map(str::parse).collect();
                    options.rows = rows?;
                    options.rows.retain(|rows| *rows > 1);
                    options.rows.insert(0, 1);
                }
                "--formats" => {
                    let named = |name: &str| {
                        let format = DType::ALL.into_iter().find(|d| d.to_string() == name);
                        format.ok_or_else(|| format!("unknown format '{name}'"))
                    };
                    options.formats = value.split(',').map(named).collect::<Result<_, _>>()?;
                }
                "--isa" => {
                    let found = Isa::available().into_iter().find(|isa| isa.name() == value);
                    options.isa = found.ok_or_else(|| format!("no '{value}' on this machine"))?;
                }
                _ => return Err(format!("unknown option '{arg}'").into()),
            }
        }
        Ok(options)
    }
}

/// Time since the first call.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Duration {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

fn main() -> ExitCode {
    match Options::from_args().and_then(|options| measure(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("small_m: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Failure> {
    let cpu = || Cpu::new(options.threads, options.isa);
    let roof = Roofline::measure(&cpu(), ROOFLINE_ROUNDS, &now)?;
    println!("{}; {} threads", options.isa.explain(), options.threads);
    for (what, peak) in [("int8", roof.int8), ("f32", roof.f32)] {
        if let Some(peak) = peak {
            println!("{what}: {:.0} GOPS, {}", peak.ops_per_second / 1e9, peak.instructions);
        }
    }
    println!("reading: {:.1} GB/s", roof.read_bytes_per_second / 1e9);
    for dtype in &options.formats {
        let file = model::file(*dtype, cpu().caches().largest)?;
        let most = options.rows.iter().copied().max().unwrap_or(1);
        let mut passes = Passes::open(cpu(), file.path(), options.context, most)?;
        let timings = passes.run(&options.rows, options.rounds)?;
        let llama = options.llama.as_ref().map(|program| {
            llama::medians(program, file.path(), &options.rows, options.threads, options.context)
        });
        print_curve(&passes, *dtype, &roof, &timings, llama.transpose()?.as_deref());
        if options.ops {
            print_ops(&passes, &timings);
        }
    }
    Ok(())
}

/// Prints times as multiples of one row's, with the bounds of the matmuls.
fn print_curve(
    passes: &Passes,
    dtype: DType,
    roof: &Roofline,
    timings: &[Timing],
    llama: Option<&[f64]>,
) {
    let graph = &passes.graph;
    let kernel = Kernel::of(&passes.cpu, "matmul", Some(dtype), KvDtype::default());
    let one = timings[0].median;
    println!("\n{dtype}: {:.1} MB of weights", passes.weight_bytes as f64 / 1e6);
    println!("rows     ms  t(n)/t(1)  memory ms  compute ms  t/bound  llama.cpp t(n)/t(1)");
    for (at, timing) in timings.iter().enumerate() {
        let batch = passes.batch(timing.rows);
        let mut flops = 0;
        for node in 0..graph.nodes().len() {
            if matches!(graph.nodes()[node].op, Op::MatMul { .. }) {
                flops += graph.cost(node, &batch).flops;
            }
        }
        let memory = graph.stored_bytes(&batch) as f64 / roof.read_bytes_per_second;
        let bound = kernel.as_ref().and_then(|kernel| {
            roof.bound(kernel.arithmetic, Cost { flops, bytes: graph.stored_bytes(&batch) })
        });
        let compute = kernel.as_ref().and_then(|kernel| roof.peak(kernel.arithmetic));
        let compute = compute.map(|peak| flops as f64 / peak.ops_per_second);
        let number =
            |x: Option<f64>, digits: usize| x.map_or("-".into(), |x| format!("{x:.digits$}"));
        println!(
            "{:4} {:6.2} {:10.2} {:10.2} {:>11} {:>8} {:>20}",
            timing.rows,
            timing.median * 1e3,
            timing.median / one,
            memory * 1e3,
            number(compute.map(|s| s * 1e3), 2),
            number(bound.map(|bound| timing.median / bound.seconds), 2),
            number(llama.map(|llama| llama[at] / llama[0]), 2),
        );
    }
}

/// Prints the time of each kind of op in passes of each size.
fn print_ops(passes: &Passes, timings: &[Timing]) {
    let mut names: Vec<&str> = timings.iter().flat_map(|t| t.ops.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    println!("\nrows  {}  (ms, medians)", names.join("  "));
    for timing in timings {
        let cells = names.iter().map(|name| {
            let ms = timing.ops.get(name).copied().unwrap_or(0.0) * 1e3;
            format!("{ms:>width$.2}", width = name.len())
        });
        println!("{:4}  {}", timing.rows, cells.collect::<Vec<_>>().join("  "));
    }
    println!("({} layers)", passes.layers);
}
