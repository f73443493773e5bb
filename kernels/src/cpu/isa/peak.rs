//! Loops that do nothing but the arithmetic of an instruction set's products, on registers, to
//! measure how much of it a core does at most.

use super::Isa;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

/// A loop over one instruction, or the few that stand for one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeakLoop {
    /// The instructions, as assemblers write them.
    pub(crate) instructions: &'static str,
    /// Operations of one iteration; a multiply-add is two.
    pub(crate) ops: u64,
    /// Runs so many iterations on this thread.
    pub(crate) run: fn(u64),
}

/// Loops of an instruction set; `None` where it has no such instruction, or none is known here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeakLoops {
    /// Products of 8-bit integers, summed in 32 bits.
    pub(crate) int8: Option<PeakLoop>,
    /// Products of bfloat16 pairs, summed in `f32`.
    pub(crate) bf16: Option<PeakLoop>,
    /// MicroKernel-add of `f32`.
    pub(crate) f32: Option<PeakLoop>,
}

impl PeakLoops {
    /// Those of an instruction set that this machine has.
    pub(crate) fn of(isa: Isa) -> PeakLoops {
        match isa.name() {
            "generic" => PeakLoops { f32: Some(PLAIN), ..PeakLoops::default() },
            #[cfg(target_arch = "x86_64")]
            "avx2" => x86::AVX2,
            #[cfg(target_arch = "x86_64")]
            "avxvnni" => x86::AVXVNNI,
            #[cfg(target_arch = "x86_64")]
            "avx512" => x86::AVX512,
            #[cfg(target_arch = "x86_64")]
            "avx512-bf16" => x86::AVX512_BF16,
            #[cfg(target_arch = "aarch64")]
            "neon" => aarch64::NEON,
            #[cfg(target_arch = "aarch64")]
            "neon-dotprod" => aarch64::DOTPROD,
            #[cfg(target_arch = "aarch64")]
            "neon-i8mm" => aarch64::I8MM,
            _ => PeakLoops::default(),
        }
    }
}

/// Values that plain Rust multiplies and adds at a time.
const LANES: usize = 32;

/// What the compiler makes of plain Rust for this architecture without extensions.
const PLAIN: PeakLoop =
    PeakLoop { instructions: "plain f32 multiply and add", ops: 2 * LANES as u64, run: plain };

fn plain(iterations: u64) {
    let (a, b) = std::hint::black_box((0.999f32, 0.001f32));
    let mut sums = [1.0f32; LANES];
    for _ in 0..iterations {
        sums.iter_mut().for_each(|sum| *sum = *sum * a + b);
    }
    std::hint::black_box(sums);
}
