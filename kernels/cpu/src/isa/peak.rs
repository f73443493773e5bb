//! Loops over the arithmetic of an instruction set's matmuls, on registers only: they measure a
//! core's peak throughput.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod peak_loop;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::isa::Isa;
pub(crate) use peak_loop::{PeakLoop, PeakLoops};

impl PeakLoops {
    /// The loops of an instruction set of this machine.
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

/// Values per iteration of the plain Rust loop.
const LANES: usize = 32;

/// Compiled for the architecture's baseline, without extensions.
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
