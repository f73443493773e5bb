//! Activations to int8, in the way llama.cpp does for each weight format, so that results
//! can be compared with it.

use crate::binary16;
use crate::cpu::Cpu;
use crate::cpu::tile::Acts;
use crate::quant::DType;

/// How activations are quantised for a weight format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActKind {
    /// Blocks of 32, scale amax/127 rounded to binary16 (ggml's Q8_0).
    Block,
    /// As `Block`, and the sum of a block is that of the unrounded scale, rounded to
    /// binary16 (ggml's Q8_1).
    BlockSum,
    /// Blocks of 256 with an f32 scale (ggml's Q8_K), divided in groups of the given length.
    Super(usize),
}

impl ActKind {
    /// `None` for float weights, which take activations as they are.
    pub(crate) fn of(dtype: DType) -> Option<ActKind> {
        match dtype {
            DType::Q4_0 | DType::Q5_0 | DType::Q8_0 => Some(ActKind::Block),
            DType::Q4_1 | DType::Q5_1 => Some(ActKind::BlockSum),
            DType::Q4K | DType::Q5K => Some(ActKind::Super(32)),
            DType::Q6K => Some(ActKind::Super(16)),
            DType::F32 | DType::F16 | DType::Bf16 => None,
        }
    }

    fn group(self) -> usize {
        match self {
            ActKind::Block | ActKind::BlockSum => 32,
            ActKind::Super(group) => group,
        }
    }
}

/// Where one row goes: `q` has the row's length, `d`, `s` and `sum` one value per group.
pub(crate) struct RowOut<'a> {
    pub(crate) kind: ActKind,
    pub(crate) q: &'a mut [i8],
    pub(crate) d: &'a mut [f32],
    pub(crate) s: &'a mut [f32],
    pub(crate) sum: &'a mut [i32],
}

/// Buffers of a quantised activation matrix; kept between calls.
#[derive(Debug, Default)]
pub(crate) struct ActBuffer {
    q: Vec<i8>,
    d: Vec<f32>,
    s: Vec<f32>,
    sum: Vec<i32>,
    k: usize,
    group: usize,
}

impl ActBuffer {
    /// Quantises the rows of `x`, each of `k` values.
    pub(crate) fn fill(&mut self, ctx: &Cpu, kind: ActKind, x: &[f32], k: usize) {
        let (rows, group) = (x.len() / k, kind.group());
        let groups = k / group;
        self.q.resize(rows * k, 0);
        self.d.resize(rows * groups, 0.0);
        self.s.resize(rows * groups, 0.0);
        self.sum.resize(rows * groups, 0);
        (self.k, self.group) = (k, group);
        let d = self.d.chunks_exact_mut(groups);
        let s = self.s.chunks_exact_mut(groups);
        let q = self.q.chunks_exact_mut(k);
        let sum = self.sum.chunks_exact_mut(groups);
        let out = q.zip(d).zip(s).zip(sum).map(|(((q, d), s), sum)| RowOut { kind, q, d, s, sum });
        let mut work: Vec<_> = x.chunks_exact(k).zip(out).collect();
        let per_task = rows.div_ceil(ctx.pool().threads() * 2).max(4);
        let kernels = ctx.kernels();
        ctx.pool().chunks_mut(&mut work, per_task, |_, work| {
            for (x, out) in work {
                let RowOut { kind, q, d, s, sum } = out;
                (kernels.quantize)(x, RowOut { kind: *kind, q, d, s, sum });
            }
        });
    }

    /// The quantised rows.
    pub(crate) fn acts(&self) -> Acts<'_> {
        Acts {
            q: &self.q,
            d: &self.d,
            s: &self.s,
            sum: &self.sum,
            rows: self.q.len() / self.k.max(1),
            k: self.k,
        }
    }
}

/// Quantises one row.
#[inline(always)]
pub(crate) fn row(x: &[f32], out: RowOut<'_>) {
    match out.kind {
        ActKind::Block => blocks::<false>(x, out),
        ActKind::BlockSum => blocks::<true>(x, out),
        ActKind::Super(16) => super_blocks::<16>(x, out),
        ActKind::Super(_) => super_blocks::<32>(x, out),
    }
}

/// Nearest integer, ties to even, for |x| below 2^22; the result is cut to 8 bits.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    const MAGIC: f32 = 12_582_912.0;
    (x + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i8
}

#[inline(always)]
fn blocks<const ROUNDED_SUM: bool>(x: &[f32], out: RowOut<'_>) {
    let blocks = x.as_chunks::<32>().0.iter().zip(out.q.as_chunks_mut::<32>().0);
    for ((((x, q), d_out), s_out), sum_out) in blocks.zip(out.d).zip(out.s).zip(out.sum) {
        let mut lanes = [0.0f32; 16];
        for i in 0..16 {
            let (a, b) = (x[i].abs(), x[16 + i].abs());
            lanes[i] = if a > b { a } else { b };
        }
        let mut amax = 0.0f32;
        for lane in lanes {
            amax = if lane > amax { lane } else { amax };
        }
        let d = amax / 127.0;
        let inverse = if amax == 0.0 { 0.0 } else { 127.0 / amax };
        for i in 0..32 {
            q[i] = nearest(x[i] * inverse);
        }
        *sum_out = q.iter().map(|q| i32::from(*q)).sum();
        let sum = *sum_out as f32;
        let rounded = binary16::round(d);
        *d_out = rounded;
        *s_out = if ROUNDED_SUM { binary16::round(d * sum) } else { rounded * sum };
    }
}

#[inline(always)]
fn super_blocks<const GROUP: usize>(x: &[f32], out: RowOut<'_>) {
    let groups = 256 / GROUP;
    let blocks = x.as_chunks::<256>().0.iter().zip(out.q.as_chunks_mut::<256>().0);
    let scales = out.d.chunks_exact_mut(groups).zip(out.s.chunks_exact_mut(groups));
    let sums = out.sum.chunks_exact_mut(groups);
    for (((x, q), (d_out, s_out)), sum_out) in blocks.zip(scales).zip(sums) {
        let (d, inverse) = super_scale(x);
        for i in 0..256 {
            q[i] = nearest(x[i] * inverse);
        }
        for (g, q) in q.as_chunks::<GROUP>().0.iter().enumerate() {
            sum_out[g] = q.iter().map(|q| i32::from(*q)).sum();
            (d_out[g], s_out[g]) = (d, d * sum_out[g] as f32);
        }
    }
}

/// Scale and its inverse from the first value of the largest magnitude, sign included.
#[inline(always)]
fn super_scale(x: &[f32; 256]) -> (f32, f32) {
    let mut lanes = [0.0f32; 16];
    for x in x.as_chunks::<16>().0 {
        for i in 0..16 {
            let a = x[i].abs();
            lanes[i] = if a > lanes[i] { a } else { lanes[i] };
        }
    }
    let amax = lanes.into_iter().fold(0.0, |m: f32, a| if a > m { a } else { m });
    if amax == 0.0 {
        return (0.0, 0.0);
    }
    let first = x.iter().find(|x| x.abs() == amax);
    let inverse = -127.0 / first.copied().unwrap_or(amax);
    (1.0 / inverse, inverse)
}
