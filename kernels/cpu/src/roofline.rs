//! Measured limits of this CPU (peak int8, bfloat16 and `f32` throughput on registers, read
//! bandwidth of memory), and which of them bound an op.
//!
//! An op of `flops` operations that moves `bytes` takes at least max(flops / peak, bytes /
//! bandwidth) (Williams, Waterman and Patterson, 2009). Operands in a cache may be faster than
//! that.

use std::time::Duration;

use crate::attention::bf16_kernels;
use crate::context::Cpu;
use crate::isa::Isa;
use crate::isa::peak::{PeakLoop, PeakLoops};
use crate::loops::quantize::QuantScheme;
use lapwing_model::cost::Cost;
use lapwing_model::formats::DType;
use lapwing_model::kv::KvDtype;
use lapwing_model::quant::Activations;

mod bandwidth;
mod error;
mod timing;

pub use bandwidth::BandwidthProbe;
pub use error::RooflineError;
use timing::Rounds;

/// Shortest time of a measured loop.
const ROUND_MIN: Duration = Duration::from_millis(5);
/// Iterations of the first, shortest loop.
const ITERATIONS_FIRST: u64 = 1 << 12;
/// Iterations after which a clock that does not advance is accepted: seconds on any machine.
const ITERATIONS_MAX: u64 = 1 << 28;
/// Limits of the bytes read per round, and their number if the cache size is unknown.
const READ_BYTES_MIN: usize = 64 << 20;
const READ_BYTES_MAX: usize = 1 << 30;
const READ_BYTES_UNKNOWN: usize = 256 << 20;

/// A measured peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Instructions that reach it, in assembler syntax.
    pub instructions: &'static str,
    /// Operations per second of all threads together; a multiply-add is two.
    pub ops_per_second: f64,
}

/// Measured limits of a CPU with a number of threads and an instruction set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// Instruction set.
    pub isa: Isa,
    /// Threads.
    pub threads: usize,
    /// int8 products, summed in 32 bits; `None` if no loop measures them.
    pub int8: Option<Peak>,
    /// Products of bfloat16 pairs, summed in `f32`; `None` if the instruction set has none.
    pub bf16: Option<Peak>,
    /// Multiply-adds of `f32`; `None` if no loop measures them.
    pub f32: Option<Peak>,
    /// Bytes per second read from a buffer larger than all caches.
    pub read_bytes_per_second: f64,
    /// Bytes of that buffer.
    pub read_bytes: usize,
}

/// Names of all ops, as [`Op::name`](lapwing_model::op::Op::name).
pub const OP_NAMES: [&str; 28] = [
    "embed",
    "given",
    "lookup",
    "rms_norm",
    "layer_norm",
    "add_row",
    "matmul",
    "rope",
    "attention",
    "gated",
    "curve",
    "add",
    "multiply",
    "short_conv",
    "linear_attention",
    "select_rows",
    "columns",
    "join_heads",
    "scale",
    "scale_by",
    "temperature",
    "soft_cap",
    "weighted_sum",
    "excess",
    "with_length",
    "route",
    "experts",
    "mix",
];

/// The arithmetic of most of an op's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Products of 8-bit integers, summed in 32 bits.
    Int8,
    /// Products of bfloat16 pairs, summed in `f32`.
    Bf16,
    /// Multiply-adds of `f32`.
    F32,
}

impl Arithmetic {
    /// Short name of the operands' type: `int8`, `bf16` or `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::Int8 => "int8",
            Arithmetic::Bf16 => "bf16",
            Arithmetic::F32 => "f32",
        }
    }
}

/// The kernel of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its arithmetic.
    pub arithmetic: Arithmetic,
    /// Its description.
    pub how: String,
}

impl Kernel {
    /// The kernel of an op by its [`Op::name`](lapwing_model::op::Op::name), for a weight of this format
    /// (if it has one) and keys and values of this type; `None` if there is no such op.
    pub fn of(cpu: &Cpu, op: &str, weight: Option<DType>, kv: KvDtype) -> Option<Kernel> {
        let float = |how: &str| Kernel { arithmetic: Arithmetic::F32, how: how.to_owned() };
        Some(match op {
            "matmul" | "experts" => return weight.map(|weight| Kernel::of_matmul(cpu, weight)),
            "embed" => float("table lookup, widened to f32"),
            "lookup" => float("rows read from the file, widened to f32"),
            "attention" => Kernel::of_attention(cpu, kv),
            "rms_norm" | "layer_norm" | "add_row" | "rope" | "gated" | "curve" | "add"
            | "multiply" | "short_conv" | "linear_attention" | "scale" | "scale_by"
            | "temperature" | "soft_cap" | "weighted_sum" | "excess" | "with_length" | "route"
            | "mix" => float("f32, row by row"),
            "given" | "select_rows" => float("copies of rows"),
            "columns" => float("copies of columns"),
            "join_heads" => float("copies of heads"),
            _ => return None,
        })
    }

    fn of_attention(cpu: &Cpu, kv: KvDtype) -> Kernel {
        let (arithmetic, factors) = match bf16_kernels(cpu, kv) {
            Some(_) => (Arithmetic::Bf16, "pairs of bfloat16, summed in f32,"),
            None => (Arithmetic::F32, "f32"),
        };
        let how = format!("{factors} over pages of {kv} keys and values, online softmax");
        Kernel { arithmetic, how }
    }

    fn of_matmul(cpu: &Cpu, dtype: DType) -> Kernel {
        match QuantScheme::of_format(dtype) {
            Some(_) if cpu.activations() == Activations::F32 => Kernel {
                arithmetic: Arithmetic::F32,
                how: format!("f32: {dtype} weights are widened to f32"),
            },
            Some(scheme) => Kernel {
                arithmetic: Arithmetic::Int8,
                how: format!(
                    "int8 dot products: {dtype} weights are integers, and activations are quantised \
                     to int8 {}",
                    match cpu.activations() {
                        Activations::Int8Row => "with one scale per row".to_owned(),
                        Activations::Int8RowMin => "with one scale and minimum per row".to_owned(),
                        _ => format!("in blocks of {}", scheme.columns()),
                    }
                ),
            },
            None => Kernel {
                arithmetic: Arithmetic::F32,
                how: format!("f32: {dtype} weights are widened to f32"),
            },
        }
    }
}

/// Lower bound of an op's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Seconds.
    pub seconds: f64,
    /// The limiting resource: an [`Arithmetic::name`] or `memory`.
    pub by: &'static str,
}

impl Roofline {
    /// Measures each limit in `rounds` runs (at least 1) of some milliseconds and takes the
    /// fastest; reading is measured with and without prefetch, `rounds` times each. Nothing else
    /// should run meanwhile. `now` is a monotonic clock with any origin.
    ///
    /// # Errors
    /// [`RooflineError`] when there is not enough memory to read.
    pub fn measure(
        cpu: &Cpu,
        rounds: usize,
        now: &dyn Fn() -> Duration,
    ) -> Result<Roofline, RooflineError> {
        let clock = Rounds { rounds: rounds.max(1), now };
        let loops = PeakLoops::of(cpu.isa());
        let read_bytes = read_bytes(cpu.caches().largest);
        Ok(Roofline {
            isa: cpu.isa(),
            threads: cpu.pool().threads(),
            int8: loops.int8.map(|of| measured_peak(&clock, cpu, of)),
            bf16: loops.bf16.map(|of| measured_peak(&clock, cpu, of)),
            f32: loops.f32.map(|of| measured_peak(&clock, cpu, of)),
            read_bytes_per_second: BandwidthProbe::new(cpu, read_bytes)?.fastest(cpu, &clock),
            read_bytes,
        })
    }

    /// The peak of an arithmetic; `None` if unknown.
    pub fn peak(&self, arithmetic: Arithmetic) -> Option<Peak> {
        match arithmetic {
            Arithmetic::Int8 => self.int8,
            Arithmetic::Bf16 => self.bf16,
            Arithmetic::F32 => self.f32,
        }
    }

    /// The lower bound of an op of this cost; `None` if the peak of its arithmetic is unknown, or
    /// it costs nothing.
    pub fn bound(&self, arithmetic: Arithmetic, cost: Cost) -> Option<Bound> {
        let peak = self.peak(arithmetic)?;
        let by = arithmetic.name();
        let compute = Bound { seconds: cost.flops as f64 / peak.ops_per_second, by };
        let memory =
            Bound { seconds: cost.bytes as f64 / self.read_bytes_per_second, by: "memory" };
        let bound = if compute.seconds > memory.seconds { compute } else { memory };
        (bound.seconds > 0.0).then_some(bound)
    }
}

/// The fastest of several runs of a loop on all threads.
fn measured_peak(clock: &Rounds<'_>, cpu: &Cpu, of: PeakLoop) -> Peak {
    let threads = cpu.pool().threads();
    let run = |iterations: u64| cpu.pool().run(threads, &|_| (of.run)(iterations));
    let mut iterations = ITERATIONS_FIRST;
    while iterations < ITERATIONS_MAX && clock.time(&|| run(iterations)) < ROUND_MIN {
        iterations *= 2;
    }
    let ops = of.ops as f64 * iterations as f64 * threads as f64;
    let ops_per_second = ops / clock.fastest(&|| run(iterations));
    Peak { instructions: of.instructions, ops_per_second }
}

/// Four times the largest cache, within limits.
fn read_bytes(cache: Option<usize>) -> usize {
    let wanted = cache.map_or(READ_BYTES_UNKNOWN, |cache| cache.saturating_mul(4));
    wanted.clamp(READ_BYTES_MIN, READ_BYTES_MAX)
}

#[cfg(test)]
mod tests;
