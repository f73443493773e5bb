//! Loops that do nothing but the arithmetic of an instruction set's products, on registers, to
//! measure how much of it a core does at most.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod peak_loop;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::cpu::isa::Isa;
pub(crate) use peak_loop::{PeakLoop, PeakLoops};

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
