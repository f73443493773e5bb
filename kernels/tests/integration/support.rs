//! Data and comparisons for the tests.

use lapwing_kernels::cpu::{Cpu, Isa, Matrix, PackedMatrix};

/// Deterministic pseudo-random values in (−1, 1).
pub(crate) fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// One CPU of `threads` threads for every instruction set of this machine.
pub(crate) fn cpus(threads: usize) -> Vec<Cpu> {
    Isa::available().into_iter().map(|isa| Cpu::new(threads, isa)).collect()
}

/// Whether an emulated machine runs the tests. What does not depend on the instruction set is tried there with fewer
/// cases: the host tries all of them much faster.
pub(crate) fn is_emulated() -> bool {
    std::env::var_os("LAPWING_EMULATED").is_some()
}

/// Every instruction set of this machine; on an emulated one without portable Rust.
pub(crate) fn multiplying() -> Vec<Isa> {
    Isa::available().into_iter().filter(|isa| !is_emulated() || isa.name() != "generic").collect()
}

/// As [`cpus`], but only instruction sets with attention kernels of their own; the others only differ in
/// int8 matmuls. On an emulated machine also without portable Rust.
pub(crate) fn attending(threads: usize) -> Vec<Cpu> {
    let plain = is_emulated().then_some("generic");
    let others = ["avxvnni", "neon-dotprod", "neon-i8mm"].into_iter().chain(plain);
    let is_own = |isa: &Isa| others.clone().all(|other| other != isa.name());
    Isa::available().into_iter().filter(is_own).map(|isa| Cpu::new(threads, isa)).collect()
}

/// Fails unless every value is within `tolerance · (|want| + scale)` of the reference.
#[track_caller]
pub(crate) fn assert_close(got: &[f32], want: &[f64], tolerance: f64, scale: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs();
        let allowed = tolerance * (want.abs() + scale);
        assert!(error <= allowed, "{what}[{i}]: {got} instead of {want}, off by {error:e}");
    }
}

/// Bit patterns, so that signs of zero and NaN payloads count.
pub(crate) fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// A matrix packed for matmuls.
pub(crate) fn packed(cpu: &Cpu, matrix: &Matrix<'_>) -> PackedMatrix {
    PackedMatrix::new(cpu, matrix).expect("memory")
}
