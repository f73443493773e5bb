//! Matmuls, embeddings, norms and element-wise ops on every instruction set against the reference, over awkward sizes.

use crate::support::{assert_close, bits, cpus, noise, packed};
use lapwing_kernels::cpu::{self, Cpu, EmbedError, Isa, Matrix, MatrixError, PackedMatrix, Table};
use lapwing_kernels::formats::DType;
use lapwing_kernels::op::Activation;
use lapwing_kernels::reference;

/// Rows, output channels, blocks per row.
pub(crate) const SHAPES: [(usize, usize, usize); 13] = [
    (1, 1, 1),
    (1, 16, 2),
    (2, 17, 3),
    (3, 15, 1),
    (4, 33, 5),
    (5, 31, 2),
    (6, 17, 9),
    (7, 48, 1),
    (8, 35, 10),
    (12, 16, 15),
    (13, 7, 3),
    (32, 18, 15),
    (33, 20, 2),
];

/// A column count near `blocks` blocks; not a round number for float formats.
pub(crate) fn cols(dtype: DType, blocks: usize) -> usize {
    if dtype.block_len() == 1 { blocks * 151 } else { blocks * dtype.block_len() }
}

#[test]
fn matmul_matches_the_reference_in_every_format() {
    for cpu in cpus(2) {
        for dtype in DType::ALL {
            for (m, n, blocks) in SHAPES {
                let k = cols(dtype, blocks);
                let bytes = reference::quantize(dtype, &noise(1, n * k));
                let (x, bias) = (noise(2, m * k), noise(3, n));
                let matrix = Matrix::new(dtype, n, k, &bytes).unwrap();
                let mut out = vec![f32::NAN; m * n];
                cpu::matmul(&cpu, &packed(&cpu, &matrix).all(), &x, Some(&bias), &mut out);
                let mut want = reference::matmul(dtype, &bytes, k, &x);
                for (i, want) in want.iter_mut().enumerate() {
                    *want += f64::from(bias[i % n]);
                }
                // Formats with a zero point subtract two sums of up to ~k/2 · 0.5.
                let what = format!("{} {dtype} {m}x{n}x{k}", cpu.isa().name());
                assert_close(&out, &want, 2e-6, (k as f64).sqrt(), &what);
            }
        }
    }
}

#[test]
fn matmul_of_extreme_values_does_not_saturate() {
    // The largest quantised weights times the largest activations: a kernel that sums pairs in 16
    // bits too long saturates.
    for cpu in cpus(1) {
        for (dtype, fill) in [
            (DType::Q8_0, 0x7f),
            (DType::Q8_0, 0x80),
            (DType::Q4_0, 0xff),
            (DType::Q4_1, 0xff),
            (DType::Q5_0, 0xff),
            (DType::Q5_1, 0xff),
            (DType::Q6K, 0xff),
            (DType::Q2K, 0xff),
            (DType::Q3K, 0xff),
            (DType::Q3K, 0x00),
            (DType::Iq4Nl, 0x00),
            (DType::Iq4Xs, 0x00),
            (DType::Mxfp4, 0x77),
            (DType::Tq2_0, 0xff),
            (DType::Tq2_0, 0x00),
            (DType::Iq3S, 0xff),
            (DType::Iq3Xxs, 0xff),
            (DType::Iq2S, 0xff),
            (DType::Iq2Xs, 0xff),
            (DType::Iq2Xxs, 0xff),
            (DType::Iq1S, 0xff),
            (DType::Tq1_0, 0xff),
            (DType::Q1_0, 0xff),
            (DType::Q1_0, 0x00),
            (DType::Q2_0, 0xff),
            (DType::Nvfp4, 0x77),
            (DType::Nvfp4, 0xff),
        ] {
            let (k, n) = (512, 16);
            let mut bytes = reference::quantize(dtype, &vec![1.0; n * k]);
            let scale = match dtype {
                DType::Q6K => 208,
                DType::Q2K => 80,
                DType::Q3K => 108,
                DType::Tq2_0 => 64,
                DType::Tq1_0 => 52,
                _ => 0,
            };
            for block in bytes.chunks_mut(dtype.block_bytes()) {
                let keep = [block[scale], block[scale + 1]];
                block.fill(fill);
                block[scale..scale + 2].copy_from_slice(&keep);
                match dtype {
                    DType::Q4_1 | DType::Q5_1 => block[2..4].fill(0),
                    DType::Q2K => block[82..84].fill(0),
                    _ => {}
                }
            }
            for (sign, rows) in [(1.0, 1), (-1.0, 1), (1.0, 4), (-1.0, 9)] {
                let x = vec![sign; rows * k];
                let matrix = Matrix::new(dtype, n, k, &bytes).unwrap();
                let mut out = vec![0.0; rows * n];
                cpu::matmul(&cpu, &packed(&cpu, &matrix).all(), &x, None, &mut out);
                let want = reference::matmul(dtype, &bytes, k, &x);
                let what = format!("{} {dtype} {fill:#x} · {sign}", cpu.isa().name());
                assert_close(&out, &want, 1e-5, 1e-3, &what);
            }
        }
    }
}

#[test]
fn matmul_of_degenerate_activations_returns() {
    let quantised = DType::ALL.into_iter().filter(|dtype| dtype.block_len() > 1);
    for (dtype, cpu) in quantised.flat_map(|dtype| cpus(1).into_iter().map(move |c| (dtype, c))) {
        let (k, n) = (512, 16);
        let bytes = reference::quantize(dtype, &noise(5, n * k));
        let packed = packed(&cpu, &Matrix::new(dtype, n, k, &bytes).expect("a matrix"));
        let what = format!("{} {dtype}", cpu.isa().name());
        for rows in [1, 9] {
            // One value of each block is replaced.
            let product = |x: f32, fourth: f32| {
                let mut out = vec![f32::NAN; rows * n];
                let mut x = vec![x; rows * k];
                x.iter_mut().skip(3).step_by(32).for_each(|x| *x = fourth);
                cpu::matmul(&cpu, &packed.all(), &x, None, &mut out);
                out
            };
            // So small that 127 divided by it is infinite.
            for tiny in [1e-38, -1e-38, f32::MIN_POSITIVE, 1e-45] {
                let out = product(tiny, 0.0);
                assert!(out.iter().all(|out| out.abs() < 1e-30), "{what} of {tiny}: {out:?}");
            }
            // No result is specified for these; the matmul must only return.
            for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                product(0.25, odd);
                product(0.0, odd);
            }
        }
    }
}

#[test]
fn quantised_matmul_is_close_to_the_f32_one() {
    let (m, n, k) = (4, 32, 512);
    let (weights, x) = (noise(1, n * k), noise(2, m * k));
    let want = reference::matmul_exact(&weights, k, &x);
    let norm = want.iter().map(|w| w * w).sum::<f64>().sqrt();
    let cpu = Cpu::new(1, Isa::best());
    let mut wrong = Vec::new();
    for dtype in DType::ALL {
        let bytes = reference::quantize(dtype, &weights);
        let matrix = Matrix::new(dtype, n, k, &bytes).unwrap();
        let mut out = vec![0.0; m * n];
        cpu::matmul(&cpu, &packed(&cpu, &matrix).all(), &x, None, &mut out);
        let error = out.iter().zip(&want).map(|(o, w)| (f64::from(*o) - w).powi(2)).sum::<f64>();
        let allowed = match dtype {
            DType::F32 => 1e-6,
            DType::F16 => 1e-3,
            DType::Bf16 => 5e-3,
            DType::Q8_0 => 0.01,
            DType::Q6K => 0.04,
            DType::Q5_0 | DType::Q5_1 | DType::Q5K => 0.06,
            DType::Q4_0 | DType::Q4_1 | DType::Q4K | DType::Iq4Nl | DType::Iq4Xs => 0.12,
            DType::Mxfp4 | DType::Nvfp4 => 0.15,
            DType::Q3K => 0.25,
            DType::Q2K => 0.5,
            DType::Iq3S => 0.2,
            DType::Iq3Xxs => 0.25,
            DType::Iq2S | DType::Iq2Xs | DType::Iq2Xxs => 0.5,
            DType::Tq2_0 | DType::Tq1_0 | DType::Q2_0 | DType::Q1_0 => 0.7,
            DType::Iq1S | DType::Iq1M => 0.7,
        };
        let found = error.sqrt() / norm;
        if found >= allowed {
            wrong.push(format!("{dtype}: {found} of {allowed}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn embedding_matches_the_reference_in_every_format() {
    for cpu in cpus(2) {
        for dtype in DType::ALL {
            let (n, k) = (5, cols(dtype, 3));
            let bytes = reference::quantize(dtype, &noise(7, n * k));
            let all = reference::dequantize(dtype, &bytes);
            let matrix = Matrix::new(dtype, n, k, &bytes).unwrap();
            let ids = [4, 0, 4, 2];
            let mut out = vec![0.0; ids.len() * k];
            let table = Table::Stored(matrix);
            cpu::embed_rows(&cpu, table, &ids, 1.5, &mut out).unwrap();
            let packed = PackedMatrix::new(&cpu, &matrix).unwrap();
            let mut same = vec![0.0; ids.len() * k];
            cpu::embed_rows(&cpu, Table::Packed(&packed), &ids, 1.5, &mut same).unwrap();
            assert_eq!(bits(&same), bits(&out), "{dtype}: packed");
            let want = ids.iter().flat_map(|id| all[*id as usize * k..][..k].iter());
            let want: Vec<f64> = want.map(|w| f64::from(*w) * 1.5).collect();
            assert_close(&out, &want, 5e-7, 1.0, &format!("{dtype}"));
            let error = cpu::embed_rows(&cpu, table, &[1, 5], 1.0, &mut out[..2 * k]);
            assert!(matches!(error, Err(EmbedError::Id { id: 5, rows: 5 })), "{error:?}");
        }
    }
}

#[test]
fn a_matrix_of_the_wrong_size_is_refused() {
    let bytes = vec![0; 36];
    assert_eq!(
        Matrix::new(DType::Q4_0, 2, 33, &bytes).unwrap_err(),
        MatrixError::Row { dtype: DType::Q4_0, cols: 33 }
    );
    assert!(Matrix::new(DType::Q4_0, 2, 32, &bytes).is_ok());
    for (rows, cols) in [(3, 32), (1, 32), (usize::MAX, 32), (2, 0)] {
        assert!(Matrix::new(DType::Q4_0, rows, cols, &bytes).is_err(), "{rows} × {cols}");
    }
}

#[test]
fn rms_norm_matches_the_reference_at_awkward_widths() {
    for cpu in cpus(2) {
        for width in [1, 7, 16, 31, 33, 64, 576] {
            for rows in [1, 3, 40] {
                let (x, weight) = (noise(4, rows * width), noise(5, width));
                let mut out = vec![0.0; x.len()];
                cpu::rms_norm(&cpu, &x, &weight, 1e-5, &mut out);
                let want = reference::rms_norm(&x, &weight, 1e-5);
                assert_close(&out, &want, 1e-6, 1e-6, &format!("rms_norm {rows}x{width}"));
            }
        }
    }
}

#[test]
fn element_wise_ops_match_the_reference_at_awkward_lengths() {
    for cpu in cpus(2) {
        let name = cpu.isa().name();
        for len in [0, 1, 7, 31, 33, 1000, 9001] {
            let a: Vec<f32> = noise(6, len).iter().map(|x| x * 20.0).collect();
            let b = noise(7, len);
            let mut out = vec![0.0; len];
            for gate in Activation::ALL {
                cpu::gated(&cpu, gate, &a, &b, &mut out);
                let naive = |x: &f32| reference::activation(gate, f64::from(*x));
                let want = a.iter().zip(&b).map(|(a, b)| naive(a) * f64::from(*b));
                let want: Vec<f64> = want.collect();
                assert_close(&out, &want, 3e-6, 1e-6, &format!("{name} {gate:?}"));
            }
            cpu::add(&cpu, &a, &b, &mut out);
            let mut in_place = a.clone();
            cpu::add_assign(&cpu, &mut in_place, &b);
            let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            assert!(out == want && in_place == want);
            cpu::scale(&cpu, &mut out, 0.5);
            assert!(out.iter().zip(&want).all(|(o, w)| *o == w * 0.5));
            let mut capped = a.clone();
            cpu::soft_cap(&cpu, &mut capped, 5.0);
            let want = a.iter().map(|a| reference::soft_cap(f64::from(*a), 5.0));
            assert_close(&capped, &want.collect::<Vec<_>>(), 2e-6, 1e-6, "soft_cap");
        }
    }
}

#[test]
fn extreme_gates_stay_finite() {
    for cpu in cpus(1) {
        let gate = [-1e30, -200.0, -90.0, 0.0, 90.0, 1e4];
        for kind in Activation::ALL {
            let mut out = [f32::NAN; 6];
            cpu::gated(&cpu, kind, &gate, &[1.0; 6], &mut out);
            assert!(out[..3].iter().all(|o| o.abs() < 1e-30), "{kind:?}: {out:?}");
            let open = match kind {
                Activation::Silu | Activation::GeluTanh => [0.0, 90.0, 1e4],
                Activation::Sigmoid => [0.5, 1.0, 1.0],
            };
            assert_eq!(out[3..], open, "{kind:?}");
        }
    }
}
