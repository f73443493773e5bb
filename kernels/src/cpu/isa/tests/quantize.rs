use crate::cpu::isa::Isa;
use crate::cpu::loops::quantize::{Q8Block, QuantScheme, row};

/// Rows of 256 values in which something can go wrong.
fn rows() -> Vec<(&'static str, Vec<f32>)> {
    let of = |value: &dyn Fn(usize) -> f32| (0..256).map(value).collect::<Vec<f32>>();
    let noise = |i: usize| ((i * 2_654_435_761) >> 7 & 0xffff) as f32 / 32_768.0 - 1.0;
    vec![
        ("noise", of(&noise)),
        ("zeros", of(&|_| 0.0)),
        ("a block of zeros among others", of(&|i| if i / 32 == 3 { 0.0 } else { noise(i) })),
        ("negative only", of(&|i| -1.0 - noise(i))),
        (
            "halves between two integers",
            of(&|i| if i % 32 == 0 { 127.0 } else { i as f32 / 2.0 - 60.0 }),
        ),
        ("the largest is negative", of(&|i| if i == 200 { -4.0 } else { noise(i) })),
        (
            "two of one magnitude",
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
        ("a scale that binary16 rounds to nothing", of(&|i| noise(i) * 1e-7)),
        ("a scale that binary16 has as a subnormal", of(&|i| noise(i) * 1e-3)),
        ("a scale beyond binary16", of(&|i| noise(i) * 1e9)),
    ]
}

#[test]
fn a_row_is_rounded_otherwise_on_another_isa() {
    for isa in Isa::available() {
        for kind in
            [QuantScheme::Q8_0(8), QuantScheme::Q8_0(128), QuantScheme::Q8_1, QuantScheme::Q8K]
        {
            for (what, x) in rows() {
                let mut want = [Q8Block::default(); 8];
                let mut found = want;
                row(&x, kind, &mut want);
                (isa.kernels().quantize)(&x, kind, &mut found);
                let bits = |b: &Q8Block| (b.q, b.d.to_bits(), b.s.to_bits(), b.start);
                let (want, found) = (want.each_ref().map(bits), found.each_ref().map(bits));
                assert_eq!(found, want, "{}: {kind:?} of {what}", isa.name());
            }
        }
    }
}
