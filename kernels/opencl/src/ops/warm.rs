//! First launches, which may take long.

mod experts;
mod states;

use super::attention::{Attention, KvRows, KvWrite, RopeKv};
use super::curves::{Curved, LayerNorm};
use super::gather::{Embed, JoinHeads, RepeatValues, SelectRows};
use super::heads::HeadDims;
use super::kernels::Kernels;
use super::matmul::{Fused, MatMul, Norm};
use super::matrix::Matrix;
use super::rows::{Add, Gated, RmsNorm, Rope, RopeHeads, Unary, UnaryOp};
use super::sums::{AddWeighted, Excess, WithLength};
use super::variants::FEW;
use super::views::{Ints, View};
use crate::error::OpenClError;
use crate::pack::CHANNELS;
use crate::session::Buffer;
use lapwing_model::formats::DType;
use lapwing_model::op::{Activation, Curve, RopePairs, Xielu};

/// Values per row of the operands.
const WIDTH: usize = 256;

/// Rows that bring every kernel of a matmul into use.
const ROWS: usize = 8;

impl Kernels {
    /// Compiles the programs of the model, chooses the kernels of its matmuls, and launches each kernel
    /// once, on zeros: some drivers compile a kernel when it is first launched. Waits.
    pub(crate) fn warm_up(&mut self) -> Result<(), OpenClError> {
        let zeros =
            |len: usize| self.session.filled(&vec![0; len * size_of::<f32>()], "warming up");
        let heads =
            self.spec.head_dims.iter().flat_map(|dims| [dims.key, dims.value]).max().unwrap_or(1);
        let (x, y) = (zeros(ROWS * WIDTH.max(heads))?, zeros(ROWS * WIDTH.max(heads))?);
        let ints = zeros(ROWS)?;
        let kv = zeros(2 * heads * self.spec.page_rows)?;
        self.warm_rows(&x, &y, &ints)?;
        self.warm_routes(&x, &y)?;
        self.warm_states(&x, &y)?;
        for dims in self.spec.head_dims.clone() {
            self.warm_attention(dims, [&x, &y, &ints, &kv])?;
        }
        for dtype in self.spec.dtypes.clone() {
            self.tune(dtype)?;
            self.warm_matmul(dtype, &x, &y, &ints)?;
        }
        for dtype in self.spec.experts.clone() {
            self.tune(dtype)?;
            self.warm_experts(dtype, &x)?;
        }
        self.session.finish()
    }

    fn warm_rows(&mut self, x: &Buffer, y: &Buffer, ints: &Buffer) -> Result<(), OpenClError> {
        let view = |buffer| View { buffer, at: 0, stride: WIDTH };
        let numbers = Ints { buffer: ints, at: 0 };
        let (x, out, rows, width) = (view(x), view(y), 1, WIDTH);
        for activation in Activation::ALL {
            self.gated(&Gated { activation, gate: x, up: x, rows, width, out })?;
        }
        self.add(&Add { a: x, b: x, rows, width, out })?;
        self.mul(&Add { a: x, b: x, rows, width, out })?;
        self.add_weighted(&AddWeighted { a: x, b: x, factors: x, rows, width, out })?;
        self.excess(&Excess { x, rows, width, deviations: 1.0, out })?;
        self.with_length(&WithLength { x, y: x, rows, width, out })?;
        for op in [UnaryOp::Scale, UnaryOp::SoftCap] {
            self.unary(&Unary { op, x, rows, width, number: 1.0, out })?;
        }
        let xielu = Xielu { positive: 1.0, negative: 1.0, beta: 1.0, eps: 0.0 };
        let clamp = Curve::Clamp { limit: 1.0 };
        let plain = [Curve::Gelu, Curve::GeluTanh, Curve::ReluSquared, Curve::Sigmoid];
        let with_numbers = [clamp, Curve::Xielu(xielu), Curve::Softplus, Curve::Exp];
        for curve in plain.into_iter().chain(with_numbers) {
            self.curve(&Curved { curve, x, rows, width, out })?;
        }
        let weight = x.buffer;
        let (weights, groups) = (Some(weight), 1);
        let (bias, len) = (weights, width);
        self.layer_norm(&LayerNorm { x, rows, groups, len, weight: weights, bias, eps: 1.0, out })?;
        self.rms_norm(&RmsNorm { x, rows, groups: 1, weight, len: width, eps: 1.0, out })?;
        let shape = RopeHeads { heads: 1, head_dim: WIDTH, dims: WIDTH, pairs: RopePairs::Halves };
        self.rope(&Rope { x, rows, shape, angles: x, out })?;
        self.select_rows(&SelectRows { x, selected: numbers, rows, width, out })?;
        self.repeat_values(&RepeatValues { x, rows, width, times: 1, out })?;
        let (a, b, of_b, is_shared) = (x, x, width - 1, false);
        self.join_heads(&JoinHeads { a, b, rows, heads: 1, of_a: 1, of_b, is_shared, out })?;
        self.top(x, rows, width, out.buffer)
    }

    fn warm_attention(
        &mut self,
        dims: HeadDims,
        [x, y, ints, kv]: [&Buffer; 4],
    ) -> Result<(), OpenClError> {
        let view = |buffer| View { buffer, at: 0, stride: dims.key.max(dims.value) };
        let numbers = Ints { buffer: ints, at: 0 };
        let (positions, row_pages, pages) = (numbers, numbers, numbers);
        let at = KvRows { kv, kv_heads: 1, dims, positions, row_pages, pages };
        self.kv_write(&KvWrite { k: view(x), v: view(x), rows: 1, to: at })?;
        let shape = RopeHeads { heads: 1, head_dim: dims.key, dims: 0, pairs: RopePairs::Halves };
        let queries = Rope { x: view(x), rows: 1, shape, angles: view(x), out: view(y) };
        let cache = KvWrite { k: view(x), v: view(x), rows: 1, to: at };
        self.rope_kv(&RopeKv { queries, cache })?;
        self.attention(&Attention {
            q: view(x),
            rows: 1,
            heads: 1,
            from: at,
            window: None,
            scale: 1.0,
            soft_cap: None,
            sinks: None,
            out: view(y),
        })
    }

    fn warm_matmul(
        &mut self,
        dtype: DType,
        x: &Buffer,
        y: &Buffer,
        ints: &Buffer,
    ) -> Result<(), OpenClError> {
        let shape = [CHANNELS, WIDTH];
        let weight = &Matrix::repeated(&self.session, dtype, shape, [0; 2], "warming up")?;
        let view = |buffer| View { buffer, at: 0, stride: WIDTH };
        let ids = Ints { buffer: ints, at: 0 };
        self.embed(&Embed { ids, rows: 1, table: weight, scale: 1.0, out: view(y) })?;
        for rows in FEW.map(|few| few.rows).into_iter().chain([ROWS]) {
            self.matmul_each_way(&MatMul::plain(view(x), rows, weight, view(y)), x)?;
        }
        self.session.finish()
    }

    /// Multiplies, and multiplies again with a norm and gates if kernels for so many rows compute these.
    ///
    /// # Panics
    /// As [`matmul`](Kernels::matmul), and if `gain` has fewer values than a row.
    pub(super) fn matmul_each_way(
        &mut self,
        job: &MatMul<'_>,
        gain: &Buffer,
    ) -> Result<(), OpenClError> {
        self.matmul(job)?;
        if self.fuses(job.weight.dtype, job.rows, job.x)? {
            let norm = Some(Norm { gain, eps: 1.0 });
            let fused = Fused { norm, gate: Some(Activation::Silu) };
            self.matmul(&MatMul { fused, ..job.clone() })?;
        }
        Ok(())
    }
}
