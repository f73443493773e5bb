//! Matmuls and embedding tables of every format.

use super::{Bench, Guarded, assert_near, bits, cases, grouped, ints, noise, plain};
use crate::ops::{Embed, MatMul, Matrix};
use crate::pack::Stored;
use lapwing_model::formats::DType;
use lapwing_model::reference;

const ROWS: [usize; 7] = [1, 2, 3, 7, 8, 9, 33];
const CHANNELS: [usize; 6] = [1, 15, 16, 17, 33, 576];

/// Input channels with and without whole segments of 256.
fn cols_of(dtype: DType) -> &'static [usize] {
    match dtype.block_len() {
        1 => &[1, 3, 31, 33, 257, 576],
        32 => &[32, 64, 288, 576],
        _ => &[256, 768],
    }
}

fn matrix(bench: &Bench, dtype: DType, [rows, cols]: [usize; 2]) -> (Matrix, Vec<f32>) {
    let bytes = reference::quantize(dtype, &noise(rows as u32, rows * cols));
    let stored = Stored { dtype, bytes: &bytes, rows, cols };
    let matrix = Matrix::upload(&bench.session, stored, "a test").unwrap();
    assert_eq!((matrix.rows(), matrix.cols()), (rows, cols));
    assert!(matrix.bytes() >= bytes.len());
    (matrix, reference::dequantize(dtype, &bytes))
}

/// `x · weightᵀ` on the device, for some rows.
fn product(bench: &mut Bench, weight: &Matrix, x: &[f32]) -> Vec<f32> {
    let x = bench.guarded(x, weight.cols());
    product_of(bench, weight, &x)
}

/// As [`product`], where each row begins at a multiple of 4 values.
fn product_of_aligned(bench: &mut Bench, weight: &Matrix, x: &[f32]) -> Vec<f32> {
    let x = bench.aligned(x, weight.cols());
    product_of(bench, weight, &x)
}

fn product_of(bench: &mut Bench, weight: &Matrix, x: &Guarded) -> Vec<f32> {
    let rows = x.count;
    let out = bench.room(rows, weight.rows());
    bench.kernels.matmul(&MatMul::plain(x.view(), rows, weight, out.view())).unwrap();
    bench.rows(&out)
}

/// The error of sums in f32 of one output: half a unit in the last place for each addition in a
/// segment and of segments, each at most as large as the sum of the magnitudes.
fn assert_sums(found: &[f32], weights: &[f32], cols: usize, x: &[f32], what: &str) {
    let abs = |values: &[f32]| values.iter().map(|v| v.abs()).collect::<Vec<_>>();
    let wanted = reference::matmul_exact(weights, cols, x);
    let magnitudes = reference::matmul_exact(&abs(weights), cols, &abs(x));
    let roundings = (cols.min(256) + cols.div_ceil(256)) as f64;
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (i, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let error = (f64::from(*found) - wanted).abs();
        let most = roundings * magnitudes[i] * 2f64.powi(-24);
        assert!(error <= most, "{what}: output {i} is {found}, not {wanted}");
    }
}

/// Outputs of each choice of kernels, for any number of rows, equal those of the default one for 70 rows
/// in every bit.
fn check_shapes(bench: &mut Bench, dtype: DType) {
    let shapes = bench.shapes();
    for cols in cols_of(dtype) {
        let x = noise(*cols as u32, 70 * cols);
        for &channels in cases(&[17][..], &[1, 17, 64, 100]) {
            let (weight, _) = matrix(bench, dtype, [channels, *cols]);
            bench.kernels.force(shapes[0]);
            let all = product(bench, &weight, &x);
            let counts = cases(&[1, 7, 49][..], &[1, 2, 3, 7, 16, 49, 70]);
            for (shapes, &rows) in shapes.iter().flat_map(|s| counts.iter().map(move |n| (s, n))) {
                bench.kernels.force(*shapes);
                for multiply in [product, product_of_aligned] {
                    let some = multiply(bench, &weight, &x[..rows * cols]);
                    let same = bits(&some) == bits(&all[..rows * channels]);
                    assert!(same, "{shapes:?} {dtype} [{channels}, {cols}] {rows}");
                }
            }
        }
    }
}

fn check_format(dtype: DType) {
    let Some(mut bench) = plain() else { return };
    for cols in cols_of(dtype) {
        let x = noise(*cols as u32, 33 * cols);
        for channels in CHANNELS {
            let (weight, values) = matrix(&bench, dtype, [channels, *cols]);
            let what = format!("{dtype} [{channels}, {cols}]");
            let all = product(&mut bench, &weight, &x);
            assert_sums(&all, &values, *cols, &x, &what);
            for rows in ROWS {
                // The last rows: their places in the tiles differ from those in the whole.
                let first = 33 - rows;
                let some = product(&mut bench, &weight, &x[first * cols..]);
                let same = bits(&some) == bits(&all[first * channels..]);
                assert!(same, "{what}: {rows} rows alone differ from those among 33");
            }
        }
    }
    check_shapes(&mut bench, dtype);
    let Some(mut bench) = grouped() else { return };
    check_shapes(&mut bench, dtype);
}

macro_rules! every_format {
    ($($name:ident $dtype:ident)*) => {
        $(
            #[test]
            fn $name() {
                check_format(DType::$dtype);
            }
        )*
    };
}

every_format! {
    f32_products_are_right_and_independent_of_other_rows F32
    f16_products_are_right_and_independent_of_other_rows F16
    bf16_products_are_right_and_independent_of_other_rows Bf16
    q4_0_products_are_right_and_independent_of_other_rows Q4_0
    q4_1_products_are_right_and_independent_of_other_rows Q4_1
    q5_0_products_are_right_and_independent_of_other_rows Q5_0
    q5_1_products_are_right_and_independent_of_other_rows Q5_1
    q8_0_products_are_right_and_independent_of_other_rows Q8_0
    q4_k_products_are_right_and_independent_of_other_rows Q4K
    q5_k_products_are_right_and_independent_of_other_rows Q5K
    q6_k_products_are_right_and_independent_of_other_rows Q6K
    q2_k_products_are_right_and_independent_of_other_rows Q2K
    q3_k_products_are_right_and_independent_of_other_rows Q3K
    iq4_nl_products_are_right_and_independent_of_other_rows Iq4Nl
    iq4_xs_products_are_right_and_independent_of_other_rows Iq4Xs
    mxfp4_products_are_right_and_independent_of_other_rows Mxfp4
    tq2_0_products_are_right_and_independent_of_other_rows Tq2_0
    iq3_s_products_are_right_and_independent_of_other_rows Iq3S
    iq3_xxs_products_are_right_and_independent_of_other_rows Iq3Xxs
    iq2_s_products_are_right_and_independent_of_other_rows Iq2S
    iq2_xs_products_are_right_and_independent_of_other_rows Iq2Xs
    iq2_xxs_products_are_right_and_independent_of_other_rows Iq2Xxs
    iq1_s_products_are_right_and_independent_of_other_rows Iq1S
    iq1_m_products_are_right_and_independent_of_other_rows Iq1M
    tq1_0_products_are_right_and_independent_of_other_rows Tq1_0
    q1_0_products_are_right_and_independent_of_other_rows Q1_0
    q2_0_products_are_right_and_independent_of_other_rows Q2_0
    nvfp4_products_are_right_and_independent_of_other_rows Nvfp4
}

#[test]
fn a_matmul_of_some_channels_gives_the_bits_of_all_channels() {
    let Some(mut bench) = plain() else { return };
    for dtype in [DType::F32, DType::Q4_0, DType::Q6K] {
        let (cols, channels) = (512, 100);
        let (weight, _) = matrix(&bench, dtype, [channels, cols]);
        for rows in [1, 5, 9] {
            let x = noise(5, rows * cols);
            let all = product(&mut bench, &weight, &x);
            for range in [0..1, 0..32, 32..33, 32..64, 64..100, 96..99, 96..96] {
                let (from, out) = (bench.guarded(&x, cols), bench.room(rows, range.len().max(1)));
                let plain = MatMul::plain(from.view(), rows, &weight, out.view());
                let job = MatMul { channels: range.clone(), ..plain };
                bench.kernels.matmul(&job).unwrap();
                let found = bench.rows(&out);
                let wanted = all.chunks(channels).flat_map(|row| &row[range.clone()]);
                let wanted: Vec<f32> = wanted.copied().collect();
                let found = &found[..wanted.len()];
                assert_eq!(bits(found), bits(&wanted), "{dtype} {rows} {range:?}");
            }
        }
    }
}

#[test]
fn bias_and_residual_are_added_to_the_sums_also_in_place() {
    let Some(mut bench) = plain() else { return };
    let (cols, channels) = (96, 70);
    let (weight, _) = matrix(&bench, DType::Q8_0, [channels, cols]);
    let bias_values = noise(1, channels);
    let bias = bench.floats(&bias_values);
    for rows in [1, 3, 10] {
        let (x, added) = (noise(2, rows * cols), noise(3, rows * channels));
        let plain = product(&mut bench, &weight, &x);
        for (range, in_place) in [(0..70, false), (0..70, true), (32..70, true), (64..67, false)] {
            let part: Vec<f32> =
                added.chunks(channels).flat_map(|row| row[range.clone()].to_vec()).collect();
            let (x, residual) = (bench.guarded(&x, cols), bench.guarded(&part, range.len()));
            let room = bench.room(rows, range.len());
            let out = if in_place { &residual } else { &room };
            let job = MatMul {
                channels: range.clone(),
                bias: Some(&bias),
                residual: Some(residual.view()),
                ..MatMul::plain(x.view(), rows, &weight, out.view())
            };
            bench.kernels.matmul(&job).unwrap();
            let found = bench.rows(out);
            let wanted = (0..rows).flat_map(|row| range.clone().map(move |c| (row, c)));
            let wanted: Vec<f32> = wanted
                .map(|(row, c)| {
                    let at = row * channels + c;
                    plain[at] + bias_values[c] + added[at]
                })
                .collect();
            assert_eq!(bits(&found), bits(&wanted), "{rows} rows {range:?} {in_place}");
        }
    }
}

#[test]
fn an_embedding_is_the_row_of_the_table_times_the_scale() {
    let Some(mut bench) = plain() else { return };
    for dtype in DType::ALL {
        for cols in cols_of(dtype) {
            let (table, values) = matrix(&bench, dtype, [37, *cols]);
            let ids = [0, 36, 15, 16, 17, 31, 32, 16];
            let (numbers, out) = (bench.ints(&ids), bench.room(ids.len(), *cols));
            let job = Embed {
                ids: ints(&numbers),
                rows: ids.len(),
                table: &table,
                scale: 24.0,
                out: out.view(),
            };
            bench.kernels.embed(&job).unwrap();
            let row = |id: &i32| &values[*id as usize * cols..][..*cols];
            let wanted: Vec<f32> =
                ids.iter().flat_map(row).map(|value| value * 24.0 + 0.0).collect();
            let found: Vec<f32> = bench.rows(&out).iter().map(|value| value + 0.0).collect();
            assert_eq!(bits(&found), bits(&wanted), "{dtype} {cols}");
        }
    }
}

#[test]
fn token_ids_beyond_the_table_read_its_ends() {
    let Some(mut bench) = plain() else { return };
    let (table, values) = matrix(&bench, DType::F32, [3, 4]);
    let (numbers, out) = (bench.ints(&[-5, i32::MAX]), bench.room(2, 4));
    let job = Embed { ids: ints(&numbers), rows: 2, table: &table, scale: 1.0, out: out.view() };
    bench.kernels.embed(&job).unwrap();
    let ends: Vec<f64> = values[..4].iter().chain(&values[8..]).map(|v| f64::from(*v)).collect();
    assert_near(&bench.rows(&out), &ends, 0.0, "ends");
}

#[test]
fn every_finite_f16_and_bf16_is_decoded_exactly_also_subnormal_ones() {
    let Some(mut bench) = plain() else { return };
    for dtype in [DType::F16, DType::Bf16] {
        let stored = (0..=u16::MAX).filter(|h| match dtype {
            DType::F16 => h & 0x7c00 != 0x7c00,
            // A device may flush subnormal numbers of f32.
            _ => (1..255).contains(&(h >> 7 & 0xff)) || h << 1 == 0,
        });
        let bytes: Vec<u8> = stored.flat_map(u16::to_le_bytes).collect();
        let values = reference::dequantize(dtype, &bytes);
        let rows = values.len();
        let stored = Stored { dtype, bytes: &bytes, rows, cols: 1 };
        let matrix = Matrix::upload(&bench.session, stored, "a test").unwrap();
        for x in [vec![1.0], vec![1.0; 8]] {
            let found = product(&mut bench, &matrix, &x);
            assert!(found.iter().zip(values.iter().cycle()).all(|(a, b)| a == b), "{dtype}");
        }
        let ids: Vec<i32> = (0..rows as i32).collect();
        let (numbers, out) = (bench.ints(&ids), bench.room(rows, 1));
        let job = Embed { ids: ints(&numbers), rows, table: &matrix, scale: 1.0, out: out.view() };
        bench.kernels.embed(&job).unwrap();
        assert!(bench.rows(&out).iter().zip(&values).all(|(a, b)| a == b), "{dtype}");
    }
}

#[test]
fn products_in_groups_are_right_for_many_channels_and_inputs() {
    let Some(mut bench) = grouped() else { return };
    for dtype in [DType::F32, DType::Q5_1, DType::Q6K] {
        for (channels, cols) in [(1, 256), (100, 2560), (2100, 256)] {
            let (weight, values) = matrix(&bench, dtype, [channels, cols]);
            for rows in [1, 3, 9, 18] {
                let x = noise(11, rows * cols);
                let found = product_of_aligned(&mut bench, &weight, &x);
                assert_sums(&found, &values, cols, &x, &format!("{dtype} [{channels}, {cols}]"));
            }
        }
    }
}
