//! Launches of writes to the KV cache, and of attention.
#![expect(unsafe_code, reason = "launches kernels")]

use super::heads::HeadDims;
use super::kernels::Kernels;
use super::programs::{Family, ROW_ITEMS};
use super::rows::{Rope, RopeHeads};
use super::views::{F32, Ints, View, int};
use crate::error::OpenClError;
use crate::session::{Arg, Buffer, Range};
use lapwing_model::kv::KvDtype;
use lapwing_model::op::RopePairs;
use std::ops::Range as Rows;

/// The KV cache of a layer, and where rows are in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvRows<'a> {
    /// Pages of the layer, each as in [`KvStore`](lapwing_model::kv::KvStore).
    pub(crate) kv: &'a Buffer,
    pub(crate) kv_heads: usize,
    pub(crate) dims: HeadDims,
    /// Position of each row in its sequence.
    pub(crate) positions: Ints<'a>,
    /// For each row, where the pages of its sequence begin in `pages`.
    pub(crate) row_pages: Ints<'a>,
    /// Pages of the sequences, in position order. Numbers out of range are replaced by the nearest.
    pub(crate) pages: Ints<'a>,
}

/// Adds the keys and values of rows to the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvWrite<'a> {
    /// Rows of `kv_heads` keys.
    pub(crate) k: View<'a>,
    /// Rows of `kv_heads` values.
    pub(crate) v: View<'a>,
    pub(crate) rows: usize,
    pub(crate) to: KvRows<'a>,
}

/// Rotates queries, and adds rotated keys, and values, to the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RopeKv<'a> {
    /// The queries, with the angles of the keys too. Its heads have the size of the cache's.
    pub(crate) queries: Rope<'a>,
    /// As many rows; the keys are not rotated yet.
    pub(crate) cache: KvWrite<'a>,
}

impl<'a> KvWrite<'a> {
    /// Some of its rows.
    pub(crate) fn part(&self, rows: Rows<usize>) -> KvWrite<'a> {
        let KvWrite { k, v, to, .. } = self;
        let (positions, row_pages) =
            (to.positions.after(rows.start), to.row_pages.after(rows.start));
        let to = KvRows { positions, row_pages, ..*to };
        KvWrite { k: k.after(rows.start), v: v.after(rows.start), rows: rows.len(), to }
    }
}

impl<'a> RopeKv<'a> {
    /// Some of its rows.
    pub(crate) fn part(&self, rows: Rows<usize>) -> RopeKv<'a> {
        let queries = self.queries;
        let after = |view: View<'a>| view.after(rows.start);
        let (x, angles, out) = (after(queries.x), after(queries.angles), after(queries.out));
        let queries = Rope { x, angles, out, rows: rows.len(), ..queries };
        RopeKv { queries, cache: self.cache.part(rows) }
    }
}

/// Causal attention of rows, whose own keys are in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention<'a> {
    /// Rows of `heads` queries.
    pub(crate) q: View<'a>,
    pub(crate) rows: usize,
    /// Query heads; a multiple of the KV heads.
    pub(crate) heads: usize,
    pub(crate) from: KvRows<'a>,
    /// Keys that a row sees, its own included; `None` for all.
    pub(crate) window: Option<usize>,
    /// Factor on q·k.
    pub(crate) scale: f32,
    /// cap·tanh(score/cap) on every score.
    pub(crate) soft_cap: Option<f32>,
    /// For each query head, the score of a key that every row sees and that has no value.
    pub(crate) sinks: Option<&'a Buffer>,
    /// Rows of `heads` outputs, as long as values.
    pub(crate) out: View<'a>,
}

impl<'a> KvRows<'a> {
    /// Parameters of a kernel, after the buffer of the cache.
    ///
    /// # Panics
    /// If the cache has no page, or there are fewer numbers than rows.
    fn args(&self, rows: usize, page_rows: usize, dtype: KvDtype) -> [Arg<'a>; 9] {
        self.positions.check(rows, "positions");
        self.row_pages.check(rows, "starts of page lists");
        let value = if dtype == KvDtype::F16 { 2 } else { 4 };
        let page = self.kv_heads * (self.dims.key + self.dims.value) * page_rows * value;
        let pages = self.kv.bytes().checked_div(page).unwrap_or(0);
        assert!(pages > 0 && self.pages.len() > 0, "a KV cache without a page");
        [
            Arg::Buffer(self.positions.buffer),
            Arg::Buffer(self.row_pages.buffer),
            Arg::Buffer(self.pages.buffer),
            int(self.positions.at),
            int(self.row_pages.at),
            int(self.pages.at),
            int(self.pages.len()),
            int(pages),
            int(self.kv_heads),
        ]
    }
}

impl Kernels {
    /// Adds keys, which are rotated already, and values to the cache.
    ///
    /// # Panics
    /// If an operand is too small, or the cache has no page.
    pub(crate) fn kv_write(&mut self, job: &KvWrite<'_>) -> Result<(), OpenClError> {
        let (rows, to) = (job.rows, &job.to);
        if rows == 0 {
            return Ok(());
        }
        job.k.check(rows, to.kv_heads * to.dims.key, "k");
        job.v.check(rows, to.kv_heads * to.dims.value, "v");
        let mut args = [job.k.args(), job.v.args()].concat();
        args.push(Arg::Buffer(to.kv));
        args.extend(to.args(rows, self.spec.page_rows, self.spec.kv));
        args.push(int(rows));
        let kernel = Family::Attention(to.dims).kernel("kv_write");
        let of_head = if self.is_cpu { 1 } else { to.dims.key.max(to.dims.value) };
        // SAFETY: the kernel's parameters; the operands were checked, and the kernel keeps numbers of
        // pages within the lists and the cache.
        unsafe { self.launch(kernel, &args, [of_head, to.kv_heads, rows]) }
    }

    /// Rotates queries, and adds rotated keys, and values, to the cache.
    ///
    /// # Panics
    /// If an operand is too small, the cache has no page, or heads and rows of the two differ.
    pub(crate) fn rope_kv(&mut self, job: &RopeKv<'_>) -> Result<(), OpenClError> {
        let RopeKv { queries, cache: KvWrite { k, v, rows, to } } = job;
        let RopeHeads { heads, head_dim, dims, pairs } = queries.shape;
        let rows = *rows;
        assert!(head_dim == to.dims.key && queries.rows == rows, "queries and keys differ");
        assert!(dims <= head_dim, "{dims} of {head_dim} values are rotated");
        if rows == 0 {
            return Ok(());
        }
        k.check(rows, to.kv_heads * head_dim, "k");
        v.check(rows, to.kv_heads * to.dims.value, "v");
        queries.x.check(rows, heads * head_dim, "x of a rotary embedding");
        queries.out.check(rows, heads * head_dim, "out of a rotary embedding");
        queries.angles.check(rows, 2 * (dims / 2), "angles");
        let mut args = [queries.x.args(), queries.angles.args(), queries.out.args()].concat();
        let is_adjacent = Arg::Int(i32::from(pairs == RopePairs::Adjacent));
        args.extend([int(heads), int(dims / 2), is_adjacent]);
        args.extend([k.args(), v.args()].concat());
        args.push(Arg::Buffer(to.kv));
        args.extend(to.args(rows, self.spec.page_rows, self.spec.kv));
        args.push(int(rows));
        let kernel = Family::Attention(to.dims).kernel("rope_kv");
        let of_head = if self.is_cpu { 1 } else { head_dim.max(to.dims.value) };
        // SAFETY: the kernel's parameters; the operands were checked, and the kernel keeps numbers of
        // pages within the lists and the cache.
        unsafe { self.launch(kernel, &args, [of_head, heads + 2 * to.kv_heads, rows]) }
    }

    /// Attention.
    ///
    /// # Panics
    /// If an operand is too small, the cache has no page, or the query heads are no multiple of the
    /// KV heads.
    pub(crate) fn attention(&mut self, job: &Attention<'_>) -> Result<(), OpenClError> {
        let (rows, heads, from) = (job.rows, job.heads, &job.from);
        if rows == 0 || heads == 0 {
            return Ok(());
        }
        job.q.check(rows, heads * from.dims.key, "q");
        job.out.check(rows, heads * from.dims.value, "out of attention");
        let args = from.args(rows, self.spec.page_rows, self.spec.kv);
        assert!(heads.is_multiple_of(from.kv_heads), "{heads} heads, {} KV heads", from.kv_heads);
        let has_room = |sinks: &Buffer| sinks.bytes() >= heads * F32;
        assert!(job.sinks.is_none_or(has_room), "sinks of fewer than {heads} heads");
        let args = [&job.q.args()[..], &[Arg::Buffer(from.kv)], &job.out.args(), &args].concat();
        let rest = [
            int(rows),
            int(heads),
            // A window that no position fills is none.
            int(job.window.filter(|window| *window <= i32::MAX as usize).unwrap_or(0)),
            Arg::Float(job.scale),
            Arg::Float(job.soft_cap.unwrap_or(0.0)),
            // Without sinks, a buffer that is not read.
            Arg::Buffer(job.sinks.unwrap_or(job.q.buffer)),
            Arg::Int(i32::from(job.sinks.is_some())),
        ];
        let args = [&args[..], &rest].concat();
        let family = Family::Attention(from.dims);
        let (single, group) = (family.kernel("attention"), family.kernel("attention_group"));
        if self.shares(group, ROW_ITEMS)? {
            let range = Range::plane([heads, rows], [ROW_ITEMS, 1]);
            // SAFETY: as below; the kernel states groups of that many items.
            return unsafe { self.launch_groups(group, &args, range) };
        }
        // SAFETY: the kernel's parameters; the operands were checked, and the kernel keeps numbers of
        // pages within the lists and the cache.
        unsafe { self.launch(single, &args, [heads, rows, 1]) }
    }
}
