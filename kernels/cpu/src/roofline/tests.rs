use std::cell::Cell;
use std::time::Instant;

use super::*;
use crate::simd::prefetch::{PrefetchHint, PrefetchOffset};
use lapwing_model::ops::OpInfo;

/// A clock that advances by `step` with each call.
fn ticking(step: Duration) -> impl Fn() -> Duration {
    let now = Cell::new(Duration::ZERO);
    move || {
        now.set(now.get() + step);
        now.get()
    }
}

#[test]
fn rates_are_work_over_time() {
    // An emulated machine reads memory so slowly that one number of threads has to be enough.
    let emulated = std::env::var_os("LAPWING_EMULATED").is_some();
    for isa in Isa::available() {
        for &threads in if emulated { &[2][..] } else { &[1, 2] } {
            let cpu = Cpu::new(threads, isa);
            let step = Duration::from_millis(10);
            let roof = Roofline::measure(&cpu, 2, &ticking(step)).expect("memory");
            let loops = PeakLoops::of(isa);
            for (peak, of) in
                [(roof.int8, loops.int8), (roof.bf16, loops.bf16), (roof.f32, loops.f32)]
            {
                let expected =
                    of.map(|of| (of.ops * ITERATIONS_FIRST * threads as u64) as f64 / 0.01);
                let got = peak.map(|peak| peak.ops_per_second);
                assert_eq!(got, expected, "{isa:?} with {threads} threads");
            }
            assert_eq!(roof.read_bytes_per_second, roof.read_bytes as f64 / 0.01);
            assert_eq!((roof.isa, roof.threads), (isa, threads));
        }
    }
}

/// The shortest of several times of a loop: other programs make a time longer, never shorter.
#[expect(clippy::disallowed_methods, reason = "the loops are timed in real time")]
fn fastest(of: &PeakLoop, iterations: u64) -> Duration {
    let time = |_| {
        let start = Instant::now();
        (of.run)(iterations);
        start.elapsed()
    };
    (0..9).map(time).min().expect("nine times")
}

/// A loop that the compiler removed takes the same time for any number of iterations, however often it is
/// measured. On a busy machine the times of a loop that is there may take several measurements.
#[test]
fn the_compiler_keeps_the_measured_loops() {
    const MEASUREMENTS: usize = 200;
    for isa in Isa::available() {
        let loops = PeakLoops::of(isa);
        for of in [loops.int8, loops.bf16, loops.f32].into_iter().flatten() {
            let (mut short, mut long) = (Duration::MAX, Duration::MAX);
            let grows = (0..MEASUREMENTS).any(|_| {
                short = short.min(fastest(&of, 1 << 12));
                long = long.min(fastest(&of, 1 << 16));
                long > 6 * short
            });
            assert!(grows, "{} of {isa:?}: {short:?}, {long:?}", of.instructions);
            // No core does more than 4096 operations in a cycle of 10 GHz.
            let ops = (of.ops << 16) as f64;
            assert!(ops / long.as_secs_f64() < 4096.0 * 1e10, "{}: {long:?}", of.instructions);
        }
    }
}

#[test]
fn stream_read_reads_every_line() {
    for isa in Isa::available() {
        for lines in [0, 1, 4, 7, 100] {
            for largest in (0..lines * 16).step_by(1 + lines / 4) {
                let value = |at: usize| if at == largest { 3.0f32 } else { -(at as f32) };
                let bytes: Vec<u8> =
                    (0..lines * 16).flat_map(|at| value(at).to_le_bytes()).collect();
                for prefetch in
                    [None, Some(PrefetchOffset { bytes: 8192, hint: PrefetchHint::L2Only })]
                {
                    let found = (isa.kernels().stream_read)(&bytes, prefetch);
                    assert_eq!(found, 3.0, "{isa:?}, {largest} of {lines} lines");
                }
            }
        }
    }
}

#[test]
fn the_median_ignores_slow_rounds() {
    let cpu = Cpu::new(2, Isa::best());
    let probe = BandwidthProbe::new(&cpu, 3 << 20).expect("memory");
    // Two clock calls are one round; the third and the eighth round take long.
    let (calls, time) = (Cell::new(0), Cell::new(0));
    let now = || {
        calls.set(calls.get() + 1);
        let long = [6, 16].contains(&calls.get());
        time.set(time.get() + if long { 1000 } else { 10 });
        Duration::from_millis(time.get())
    };
    let rate = probe.median(&cpu, 5, &now);
    assert!((rate - (3 << 20) as f64 / 0.01).abs() < 1.0, "{rate}");
}

#[test]
fn every_instruction_set_has_a_peak_of_f32() {
    for isa in Isa::available() {
        assert!(PeakLoops::of(isa).f32.is_some(), "{isa:?}");
    }
}

#[test]
fn the_bound_is_set_by_the_scarcer_resource() {
    let peak = |ops_per_second| Some(Peak { instructions: "", ops_per_second });
    let roof = Roofline {
        isa: Isa::available()[0],
        threads: 1,
        int8: peak(100.0),
        bf16: peak(20.0),
        f32: peak(10.0),
        read_bytes_per_second: 5.0,
        read_bytes: 1,
    };
    let rows = [
        (Arithmetic::Int8, (1000, 20), Some((10.0, "int8"))),
        (Arithmetic::Bf16, (1000, 20), Some((50.0, "bf16"))),
        (Arithmetic::F32, (1000, 20), Some((100.0, "f32"))),
        (Arithmetic::Int8, (1000, 200), Some((40.0, "memory"))),
        (Arithmetic::F32, (0, 20), Some((4.0, "memory"))),
        (Arithmetic::F32, (0, 0), None),
    ];
    for (arithmetic, (flops, bytes), expected) in rows {
        let bound = roof.bound(arithmetic, Cost { flops, bytes });
        assert_eq!(bound.map(|bound| (bound.seconds, bound.by)), expected);
    }
    let unknown = Roofline { int8: None, ..roof };
    assert_eq!(unknown.bound(Arithmetic::Int8, Cost { flops: 1, bytes: 1 }), None);
}

#[test]
fn the_read_buffer_is_larger_than_the_caches() {
    assert_eq!(read_bytes(Some(32 << 20)), 128 << 20);
    assert_eq!(read_bytes(Some(1 << 10)), READ_BYTES_MIN);
    assert_eq!(read_bytes(Some(1 << 40)), READ_BYTES_MAX);
    assert_eq!(read_bytes(None), READ_BYTES_UNKNOWN);
}

#[test]
fn quantised_weights_are_multiplied_as_integers_and_floats_as_floats() {
    for activations in [Activations::Int8, Activations::F32] {
        let cpu = Cpu::new(1, Isa::best()).with_activations(activations);
        for dtype in DType::ALL {
            let kernel = Kernel::of(&cpu, "matmul", Some(dtype), KvDtype::F16).expect("a kernel");
            let float = matches!(dtype, DType::F32 | DType::F16 | DType::Bf16)
                || activations == Activations::F32;
            let expected = if float { Arithmetic::F32 } else { Arithmetic::Int8 };
            assert_eq!(kernel.arithmetic, expected, "{dtype}: {}", kernel.how);
            assert!(kernel.how.contains(&dtype.to_string()), "{}", kernel.how);
        }
    }
}

#[test]
fn attention_uses_bf16_unless_f32_is_requested() {
    for isa in Isa::available() {
        for activations in [Activations::Int8, Activations::F32] {
            for kv in KvDtype::ALL {
                let cpu = Cpu::new(1, isa).with_activations(activations);
                let kernel = Kernel::of(&cpu, "attention", None, kv).expect("a kernel");
                let pairs = isa.name() == "avx512-bf16"
                    && activations == Activations::Int8
                    && kv != KvDtype::F32;
                let expected = if pairs { Arithmetic::Bf16 } else { Arithmetic::F32 };
                assert_eq!(kernel.arithmetic, expected, "{isa:?} {activations:?} {kv}");
                assert_eq!(kernel.how.contains("bfloat16"), pairs, "{}", kernel.how);
                assert!(kernel.how.contains(kv.name()), "{}", kernel.how);
            }
        }
    }
}

#[test]
fn every_op_has_a_kernel() {
    let of = |op: &str, weight: Option<DType>| {
        Kernel::of(&Cpu::new(1, Isa::best()), op, weight, KvDtype::F16)
    };
    for op in OpInfo::ALL {
        assert!(OP_NAMES.contains(&op.name), "{}", op.name);
    }
    for op in OP_NAMES {
        assert!(of(op, Some(DType::Q8_0)).is_some(), "{op}");
    }
    assert_eq!(of("convolution", None), None);
    assert_eq!(of("matmul", None), None, "a matmul needs a weight");
}
