//! The tile: 16 weight rows unpacked side by side, so that one vector holds one value of
//! each row and no sum runs across a vector.

use crate::cpu::unpack;
use crate::quant::DType;
use std::ops::Range;

/// Weight rows per tile.
pub(crate) const TILE: usize = 16;

/// Some columns of up to [`TILE`] rows of a weight matrix, as stored.
#[derive(Clone, Debug)]
pub(crate) struct RowsView<'a> {
    pub(crate) dtype: DType,
    /// Starts at the first of the rows.
    pub(crate) bytes: &'a [u8],
    pub(crate) row_bytes: usize,
    /// At most [`TILE`].
    pub(crate) rows: usize,
    pub(crate) cols: Range<usize>,
}

/// 16 rows of a quantised matrix: `value = scale · (q − offset) + min`, q unsigned, one scale
/// and minimum per row and group of `group` columns. Formats with a minimum have no offset.
#[derive(Debug, Default)]
pub(crate) struct QTile {
    /// `[k/4][16 rows][4 columns]`.
    pub(crate) q: Vec<u8>,
    /// `[k/group][16 rows]`.
    pub(crate) scale: Vec<f32>,
    /// `[k/group][16 rows]`.
    pub(crate) min: Vec<f32>,
    k: usize,
    group: usize,
    offset: i32,
}

impl QTile {
    /// Makes room for rows of `k` values of `dtype`; rows that are not written later count as
    /// zero.
    pub(crate) fn reshape(&mut self, k: usize, dtype: DType) {
        let group = unpack::group_len(dtype);
        let groups = k / group;
        self.q.resize(k * TILE, 0);
        self.scale.clear();
        self.scale.resize(groups * TILE, 0.0);
        self.min.clear();
        self.min.resize(groups * TILE, 0.0);
        (self.k, self.group, self.offset) = (k, group, unpack::offset(dtype));
    }

    pub(crate) fn group(&self) -> usize {
        self.group
    }

    pub(crate) fn groups(&self) -> usize {
        self.k / self.group
    }

    /// Whether `q` may exceed 127.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "AVX2 asks"))]
    pub(crate) fn wide(&self) -> bool {
        self.offset == 128
    }

    /// What `q` is above the stored value.
    pub(crate) fn offset(&self) -> i32 {
        self.offset
    }

    /// Checks everything that a kernel's pointer arithmetic relies on.
    ///
    /// # Panics
    /// When tile, activations and output do not fit each other.
    pub(crate) fn check(&self, acts: &Acts<'_>, out: &[f32]) {
        let groups = self.groups();
        assert!(matches!(self.group, 16 | 32) && self.k.is_multiple_of(self.group));
        assert!(self.k == acts.k && self.q.len() == self.k * TILE);
        assert!(self.scale.len() == groups * TILE && self.min.len() == groups * TILE);
        assert!(acts.q.len() == acts.rows * self.k && out.len() == acts.rows * TILE);
        assert!(acts.d.len() == acts.rows * groups && acts.s.len() == acts.rows * groups);
        assert!(acts.sum.len() == acts.rows * groups);
    }
}

/// Rows of quantised activations: `value = d · q`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acts<'a> {
    /// `[rows][k]`, each within ±127.
    pub(crate) q: &'a [i8],
    /// `[rows][k/group]`.
    pub(crate) d: &'a [f32],
    /// Sum of the values of each group, `[rows][k/group]`.
    pub(crate) s: &'a [f32],
    /// Sum of the integers of each group, `[rows][k/group]`.
    pub(crate) sum: &'a [i32],
    pub(crate) rows: usize,
    pub(crate) k: usize,
}

/// Some columns of 16 rows of a float matrix, transposed: `[columns][16 rows]`.
#[derive(Debug, Default)]
pub(crate) struct F32Tile {
    pub(crate) data: Vec<f32>,
}

/// `a · b + c`, fused when `FMA`.
#[inline(always)]
pub(crate) fn madd<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// The tile product in plain Rust: `out[row][lane] = Σ_groups scale·d·Σ((q − offset)·x) +
/// min·s`.
#[inline(always)]
pub(crate) fn dot_tile<const FMA: bool>(tile: &QTile, acts: &Acts<'_>, out: &mut [f32]) {
    tile.check(acts, out);
    let (groups, group) = (tile.groups(), tile.group);
    let (lines, _) = out.as_chunks_mut::<TILE>();
    for (row, out) in lines.iter_mut().enumerate() {
        let x = &acts.q[row * acts.k..][..acts.k];
        *out = [0.0; TILE];
        for g in 0..groups {
            let q = &tile.q[g * group * TILE..][..group * TILE];
            let dot = dot_group(q, &x[g * group..][..group]);
            let (d, s) = (acts.d[row * groups + g], acts.s[row * groups + g]);
            let start = -tile.offset * acts.sum[row * groups + g];
            let scale = &tile.scale[g * TILE..][..TILE];
            let min = &tile.min[g * TILE..][..TILE];
            for lane in 0..TILE {
                out[lane] = madd::<FMA>((start + dot[lane]) as f32, scale[lane] * d, out[lane]);
                out[lane] = madd::<FMA>(min[lane], s, out[lane]);
            }
        }
    }
}

#[inline(always)]
fn dot_group(q: &[u8], x: &[i8]) -> [i32; TILE] {
    let mut dot = [0; TILE];
    let (lines, quads) = (q.as_chunks::<{ TILE * 4 }>().0, x.as_chunks::<4>().0);
    for (line, x) in lines.iter().zip(quads) {
        for lane in 0..TILE {
            for j in 0..4 {
                dot[lane] += i32::from(line[lane * 4 + j]) * i32::from(x[j]);
            }
        }
    }
    dot
}
