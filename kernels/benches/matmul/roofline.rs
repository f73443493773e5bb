//! What the machine can do at most: int8 products, f32 products and reading memory.
#![expect(unsafe_code, reason = "instructions that only some machines have")]

use lapwing_kernels::cpu::Pool;
use lapwing_kernels::quant::DType;
use std::fmt;
use std::hint::black_box;

use super::median_seconds;

/// Limits of a pool's threads together.
pub(crate) struct Limits {
    /// 8-bit products with 512-bit vectors, 2 operations each, in 1e9/s; 0 where they are missing.
    int8: f64,
    /// The same of f32 products.
    fp32: f64,
    /// Reading 192 MiB, in GB/s.
    stream: f64,
}

impl Limits {
    /// Measures them on a pool.
    pub(crate) fn measure(pool: &Pool) -> Limits {
        let threads = pool.threads();
        let rate = |ops: fn() -> f64| {
            let total = std::sync::Mutex::new(0.0);
            let seconds = median_seconds(|| {
                *total.lock().expect("no panic") = 0.0;
                pool.run(threads, &|_| {
                    let ops = ops();
                    *total.lock().expect("no panic") += ops;
                });
            });
            total.into_inner().expect("no panic") / seconds / 1e9
        };
        let data = vec![1u64; (192 << 20) / 8];
        let chunks: Vec<&[u64]> = data.chunks(1 << 15).collect();
        let seconds = median_seconds(|| {
            pool.run(chunks.len(), &|i| {
                let mut lanes = [0u64; 32];
                for line in chunks[i].as_chunks::<32>().0 {
                    for (lane, value) in lanes.iter_mut().zip(line) {
                        *lane ^= value;
                    }
                }
                black_box(lanes);
            });
        });
        let stream = size_of_val(&data[..]) as f64 / seconds / 1e9;
        Limits { int8: rate(int8), fp32: rate(fp32), stream }
    }

    /// How far a measurement of (operations, bytes) reaches to what limits it.
    pub(crate) fn part(&self, dtype: DType, (ops, bytes): (f64, f64), seconds: f64) -> String {
        let (ops, bytes) = (ops / seconds / 1e9, bytes / seconds / 1e9);
        let limit = if dtype.block_len() == 1 { self.fp32 } else { self.int8 };
        let (compute, memory) = (100.0 * ops / limit, 100.0 * bytes / self.stream);
        format!("{ops:7.1} GOPS {compute:5.1} % {bytes:6.2} GB/s {memory:5.1} %")
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { int8, fp32, stream } = self;
        write!(f, "limits: int8 {int8:.0} GOPS, f32 {fp32:.0} GFLOPS, reading {stream:.1} GB/s")
    }
}

const ROUNDS: usize = 100_000;

#[cfg(target_arch = "x86_64")]
fn int8() -> f64 {
    use std::arch::x86_64::*;
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn run() -> f64 {
        let (a, b) = (_mm512_set1_epi8(black_box(1)), _mm512_set1_epi8(black_box(2)));
        let mut acc = [_mm512_setzero_si512(); 12];
        for _ in 0..ROUNDS {
            for acc in &mut acc {
                *acc = _mm512_dpbusd_epi32(*acc, a, b);
            }
        }
        black_box(acc);
        (ROUNDS * 12 * 128) as f64
    }
    if !std::arch::is_x86_feature_detected!("avx512vnni") {
        return 0.0;
    }
    // SAFETY: the machine has the features.
    unsafe { run() }
}

#[cfg(target_arch = "x86_64")]
fn fp32() -> f64 {
    use std::arch::x86_64::*;
    #[target_feature(enable = "avx512f")]
    fn run() -> f64 {
        let (a, b) = (_mm512_set1_ps(black_box(1.0)), _mm512_set1_ps(black_box(2.0)));
        let mut acc = [_mm512_setzero_ps(); 12];
        for _ in 0..ROUNDS {
            for acc in &mut acc {
                *acc = _mm512_fmadd_ps(a, b, *acc);
            }
        }
        black_box(acc);
        (ROUNDS * 12 * 32) as f64
    }
    if !std::arch::is_x86_feature_detected!("avx512f") {
        return 0.0;
    }
    // SAFETY: the machine has the features.
    unsafe { run() }
}

#[cfg(not(target_arch = "x86_64"))]
fn int8() -> f64 {
    0.0
}

#[cfg(not(target_arch = "x86_64"))]
fn fp32() -> f64 {
    0.0
}
