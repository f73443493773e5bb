use crate::isa::Isa;
use crate::isa::kernels::AttnBf16Kernels;
use crate::loops::attn_bf16::{Bf16Pair, PairPanel};
use crate::loops::attn_matmul::{AttnMatmul, MatmulDims};
use crate::loops::kv::KvConvert;
use crate::simd::prefetch::PrefetchHint;
use half::{bf16, f16};
use lapwing_model::kv::Panel;

/// The kernels; `None` if the machine lacks the instructions.
fn kernels() -> Option<&'static AttnBf16Kernels> {
    let isa = Isa::available().into_iter().find(|isa| isa.name() == "avx512-bf16");
    isa.map(|isa| isa.kernels().attn_bf16.expect("bfloat16 kernels"))
}

/// Values in [−2, 2) that are not exact in bfloat16.
fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 22) as f32 - 2.0
    };
    (0..len).map(|_| next()).collect()
}

/// Storage of the right operand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Right {
    Packed,
    F32,
    F16,
    I8,
}

/// Lays rows out at a stride, with `fill` between them and none after the last.
fn apart<T: Copy>(rows: &[T], width: usize, stride: usize, fill: T) -> Vec<T> {
    let mut all = Vec::new();
    for (i, row) in rows.chunks(width).enumerate() {
        all.resize(i * stride, fill);
        all.extend_from_slice(row);
    }
    all
}

/// Pairs of rows 2i and 2i + 1; an odd last row is paired with `last`.
fn pairs_of(rows: &[f32], width: usize, last: bf16) -> Vec<Bf16Pair> {
    let pair = |two: &[f32], i: usize| {
        let second = two.get(width + i).map_or(last, |x| bf16::from_f32(*x));
        Bf16Pair::from(bf16::from_f32(two[i]).to_bits()) | Bf16Pair::from(second.to_bits()) << 16
    };
    rows.chunks(2 * width).flat_map(|two| (0..width).map(move |i| pair(two, i))).collect()
}

/// A matmul with NaN between its rows and after an odd depth.
struct Case {
    depth: usize,
    chunks: usize,
    add: bool,
    a: Vec<f32>,
    /// Values as the right operand stores them.
    b: Vec<f32>,
    c: Vec<f32>,
}

/// Gap between rows of `a`.
const A_GAP: usize = 3;
/// Gap between rows of `b` and of `c`.
const GAP: usize = 32;

impl Case {
    fn new(right: Right, rows: usize, depth: usize, chunks: usize, add: bool) -> Case {
        let width = 16 * chunks;
        let b = noise(2, depth * width).into_iter();
        let b: Vec<f32> = match right {
            Right::Packed | Right::F32 => b.collect(),
            Right::F16 => b.map(|x| f16::from_f32(x).to_f32()).collect(),
            Right::I8 => b.map(|x| (x * 63.0).round()).collect(),
        };
        let (a, c) = (noise(1, rows * depth), noise(3, rows * width));
        Case { depth, chunks, add, a, b, c }
    }

    /// Computes `rows` of the matmul, placed among NaN.
    fn run(
        &self,
        attn_bf16: &AttnBf16Kernels,
        right: Right,
        rows: std::ops::Range<usize>,
    ) -> Vec<f32> {
        let width = 16 * self.chunks;
        let a_width = self.depth.div_ceil(2);
        let a: Vec<Bf16Pair> =
            self.a.chunks(self.depth).flat_map(|row| pairs_of(row, 1, bf16::NAN)).collect();
        let a_stride = a_width + A_GAP;
        let nan = Bf16Pair::from(bf16::NAN.to_bits());
        let a = apart(&a[rows.start * a_width..rows.end * a_width], a_width, a_stride, nan);
        let (b, b_stride) = (&self.b, width + GAP);
        let made = apart(&pairs_of(b, width, bf16::NAN), width, b_stride, nan);
        let singles = apart(b, width, b_stride, f32::NAN);
        let halves: Vec<u16> = singles.iter().map(|x| f16::from_f32(*x).to_bits()).collect();
        let bytes: Vec<i8> = singles.iter().map(|x| *x as i8).collect();
        let c_stride = width + GAP;
        let dims = MatmulDims {
            rows: rows.len(),
            depth: self.depth,
            chunks: self.chunks,
            c_stride,
            add: self.add,
            next: Some(Panel::I8(&bytes)),
            prefetch_hint: PrefetchHint::AllLevels,
        };
        let b = match right {
            Right::Packed => PairPanel::Packed(&made),
            Right::F32 => PairPanel::Stored(Panel::F32(&singles)),
            Right::F16 => PairPanel::Stored(Panel::F16(&halves)),
            Right::I8 => PairPanel::Stored(Panel::I8(&bytes)),
        };
        let c = &self.c[rows.start * width..rows.end * width];
        let mut c = apart(c, width, c_stride, f32::NAN);
        (attn_bf16.matmul)(&AttnMatmul { a: &a, a_stride, b, b_stride, dims }, &mut c);
        for gap in c.chunks(c_stride).filter_map(|row| row.get(width..)) {
            assert!(gap.iter().all(|x| x.is_nan()), "written between rows");
        }
        c.chunks(c_stride).flat_map(|row| row[..width].to_vec()).collect()
    }

    fn check(&self, got: &[f32], what: &str) {
        let width = 16 * self.chunks;
        let round = |x: f32| bf16::from_f32(x).to_f64();
        for (i, got) in got.iter().enumerate() {
            let (row, col) = (i / width, i % width);
            let start = if self.add { f64::from(self.c[i]) } else { 0.0 };
            let (mut want, mut size) = (start, start.abs());
            for d in 0..self.depth {
                let x = round(self.a[row * self.depth + d]) * round(self.b[d * width + col]);
                want += x;
                size += x.abs();
            }
            // Products of bfloat16 are exact in f32; each sum rounds once, by 2⁻²⁴ of it.
            let allowed = self.depth as f64 * 2f64.powi(-24) * size;
            let error = (f64::from(*got) - want).abs();
            assert!(error <= allowed, "{what} [{row}][{col}]: {got} instead of {want}");
        }
    }
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_matmul_of_pairs_equals_that_of_their_values() {
    let Some(attn_bf16) = kernels() else { return };
    for right in [Right::Packed, Right::F32, Right::F16, Right::I8] {
        for rows in [1, 2, 3, 5, 6, 7, 13] {
            for depth in [1, 2, 3, 16, 33, 64] {
                for (chunks, add) in (1..=5).flat_map(|chunks| [(chunks, false), (chunks, true)]) {
                    let what = format!("{right:?}, {rows} rows, {depth} × {chunks}, {add}");
                    let case = Case::new(right, rows, depth, chunks, add);
                    let got = case.run(attn_bf16, right, 0..rows);
                    case.check(&got, &what);
                    let made = case.run(attn_bf16, Right::Packed, 0..rows);
                    assert_eq!(bits(&got), bits(&made), "{what} as stored");
                    let alone = (0..rows).flat_map(|row| case.run(attn_bf16, right, row..row + 1));
                    assert_eq!(bits(&got), bits(&alone.collect::<Vec<_>>()), "{what} alone");
                }
            }
        }
    }
}

#[test]
fn a_matmul_without_depth_keeps_or_clears_the_sums() {
    let Some(attn_bf16) = kernels() else { return };
    for add in [false, true] {
        let mut c = [7.0; 16];
        let dims = MatmulDims {
            rows: 1,
            depth: 0,
            chunks: 1,
            c_stride: 16,
            add,
            next: None,
            prefetch_hint: PrefetchHint::AllLevels,
        };
        let product =
            AttnMatmul { a: &[], a_stride: 0, b: PairPanel::Packed(&[]), b_stride: 16, dims };
        (attn_bf16.matmul)(&product, &mut c);
        assert_eq!(c, [if add { 7.0 } else { 0.0 }; 16]);
    }
}

#[test]
fn pack_kv_pairs_each_row_with_the_next() {
    let Some(attn_bf16) = kernels() else { return };
    for cols in [1, 7, 16, 24, 33, 64] {
        for rows in [1, 2, 3, 8] {
            // + 0.0 turns −0 into 0, which an integer can represent.
            let x: Vec<f32> =
                noise(5, rows * cols).iter().map(|x| (x * 63.0).round() + 0.0).collect();
            let halves: Vec<u16> = x.iter().map(|x| f16::from_f32(*x).to_bits()).collect();
            let bytes: Vec<i8> = x.iter().map(|x| *x as i8).collect();
            let (width, stride) = (cols.next_multiple_of(16), cols.next_multiple_of(16) + 16);
            let pairs = pairs_of(&x, cols, bf16::ZERO);
            for from in [Panel::F32(&x), Panel::F16(&halves), Panel::I8(&bytes)] {
                let mut out = vec![Bf16Pair::MAX; rows.div_ceil(2) * stride];
                (attn_bf16.pack_kv)(&KvConvert { from, cols, stride }, &mut out);
                for (out, pairs) in out.chunks(stride).zip(pairs.chunks(cols)) {
                    assert_eq!(out[..cols], *pairs, "{rows} × {cols} {from:?}");
                    assert!(out[cols..width].iter().all(|pair| *pair == 0), "{rows} × {cols}");
                    assert!(
                        out[width..].iter().all(|pair| *pair == Bf16Pair::MAX),
                        "{rows} × {cols}"
                    );
                }
            }
        }
    }
}

#[test]
fn round_is_to_nearest_ties_to_even() {
    let Some(attn_bf16) = kernels() else { return };
    let ties = (0..64).map(|i| f32::from_bits(0x3f80_8000 + (i << 16)));
    let extremes = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-37, 1.0 / 3.0];
    let all: Vec<f32> = ties.chain(extremes).chain(noise(7, 100)).collect();
    for len in [0, 1, 2, 15, 16, 17, 31, 32, 33, all.len()] {
        for x in [&all[..len], &all[all.len() - len..]] {
            let mut out = vec![Bf16Pair::MAX; len.div_ceil(2) + 1];
            (attn_bf16.round)(x, &mut out);
            let mut want = pairs_of(x, 1, bf16::ZERO);
            want.push(Bf16Pair::MAX);
            assert_eq!(out, want, "{len} values");
        }
    }
    let mut out = [0];
    (attn_bf16.round)(&[f32::NAN, 1e-39], &mut out);
    assert!(bf16::from_bits(out[0] as u16).is_nan(), "{out:x?}");
    assert_eq!(out[0] >> 16, 0, "below the normal numbers");
}
