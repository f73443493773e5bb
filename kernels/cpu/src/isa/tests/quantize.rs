use crate::isa::Isa;
use crate::loops::quantize::{Q8Block, QuantScheme, row};
use crate::loops::quantize_row::{self, RowScheme};
use lapwing_model::reference::rounded_by_row;

/// Rows of 256 values: ordinary ones and edge cases.
fn rows() -> Vec<(&'static str, Vec<f32>)> {
    let of = |value: &dyn Fn(usize) -> f32| (0..256).map(value).collect::<Vec<f32>>();
    let noise = |i: usize| ((i * 2_654_435_761) >> 7 & 0xffff) as f32 / 32_768.0 - 1.0;
    vec![
        ("noise", of(&noise)),
        ("zeros", of(&|_| 0.0)),
        ("one block of zeros", of(&|i| if i / 32 == 3 { 0.0 } else { noise(i) })),
        ("negative only", of(&|i| -1.0 - noise(i))),
        (
            "ties between two integers",
            of(&|i| if i % 32 == 0 { 127.0 } else { i as f32 / 2.0 - 60.0 }),
        ),
        ("the largest is negative", of(&|i| if i == 200 { -4.0 } else { noise(i) })),
        (
            "two values of the largest magnitude",
            of(&|i| {
                if i % 31 == 0 {
                    2.0
                } else if i % 37 == 0 {
                    -2.0
                } else {
                    noise(i)
                }
            }),
        ),
        ("subnormal", of(&|i| noise(i) * 1e-40)),
        ("a scale that binary16 rounds to zero", of(&|i| noise(i) * 1e-7)),
        ("a scale that is subnormal in binary16", of(&|i| noise(i) * 1e-3)),
        ("a scale beyond binary16", of(&|i| noise(i) * 1e9)),
    ]
}

#[test]
fn every_isa_quantises_a_row_with_one_scale_to_the_same_bits() {
    use QuantScheme::{Q8_0, Q8_0Halves, Q8_1, Q8K};
    let blocks = [Q8_0(8), Q8_0Halves(128), Q8_1, Q8K(32)];
    let schemes = blocks.map(|blocks| [false, true].map(|with_min| RowScheme { blocks, with_min }));
    for scheme in schemes.into_iter().flatten() {
        for (what, x) in rows() {
            let mut want = [Q8Block::default(); 8];
            let shift = quantize_row::row(&x, scheme, &mut want);
            for isa in Isa::available() {
                let mut found = [Q8Block::default(); 8];
                let same = (isa.kernels().quantize_row)(&x, scheme, &mut found) == shift;
                assert!(same && found == want, "{}: {scheme:?} of {what}", isa.name());
            }
            let values = rounded_by_row(&x, scheme.with_min);
            for (i, (x, value)) in x.iter().zip(values).enumerate() {
                let what = format!("{scheme:?} of {what}: value {i}");
                let block = &want[i / 32];
                let got = f64::from(block.d) * f64::from(block.q[i % 32]) + f64::from(shift);
                assert!(
                    (got - value).abs() <= 1e-5 * value.abs().max(f64::from(block.d)),
                    "{what}"
                );
                let error = (f64::from(*x) - value).abs();
                let tiny = f64::from(f32::MIN_POSITIVE);
                assert!(error <= 0.50001 * f64::from(block.d) + tiny, "{what}: {error}");
            }
            for block in &want {
                let sums = [&block.q[..16], &block.q[16..]]
                    .map(|half| half.iter().map(|q| i32::from(*q)).sum::<i32>());
                let sum = sums[0] + sums[1];
                let (s, start) = match scheme.blocks {
                    QuantScheme::Q8_0(zero) => (block.d * sum as f32, [-zero * sum, 0]),
                    QuantScheme::Q8_0Halves(zero) => {
                        (block.d * sum as f32, sums.map(|sum| -zero * sum))
                    }
                    QuantScheme::Q8_1 => (block.d * sum as f32, [0, 0]),
                    QuantScheme::Q8K(zero) => (sum as f32, sums.map(|sum| -zero * sum)),
                };
                assert_eq!((block.s, block.start, block.d), (s, start, want[0].d));
                assert!(block.q.iter().all(|q| *q != -128));
            }
        }
    }
}

#[test]
fn every_isa_quantises_a_row_to_the_same_bits() {
    for isa in Isa::available() {
        use QuantScheme::{Q8_0, Q8_0Halves, Q8_1, Q8K};
        for scheme in [Q8_0(8), Q8_0(128), Q8_0Halves(128), Q8_1, Q8K(32)] {
            for (what, x) in rows() {
                let mut want = [Q8Block::default(); 8];
                let mut found = want;
                row(&x, scheme, &mut want);
                (isa.kernels().quantize)(&x, scheme, &mut found);
                let bits = |b: &Q8Block| (b.q, b.d.to_bits(), b.s.to_bits(), b.start);
                let (want, found) = (want.each_ref().map(bits), found.each_ref().map(bits));
                assert_eq!(found, want, "{}: {scheme:?} of {what}", isa.name());
            }
        }
    }
}
