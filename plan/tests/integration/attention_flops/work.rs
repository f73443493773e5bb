//! FLOPs of attention, counted as the literature on chunked prefill counts them.
//!
//! There, a chunk computes the full rectangle of its rows × all keys up to its own end, twice
//! (q·kᵀ, then the weighted sum of v), with 2 FLOPs per multiply-add. Kernels that skip masked keys
//! do less: a row at position p attends to p + 1 keys. [`AttentionWork::causal`] counts those, and
//! equals [`Graph::cost`](lapwing_kernels::graph::Graph::cost) without a sliding window.
//!
//! All sums are exact integers.

/// Shape of an attention op. All formulas are proportional to B·H·D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttentionWork {
    /// B: number of sequences.
    pub(super) batch: u64,
    /// H: number of query heads.
    pub(super) heads: u64,
    /// D: values per head.
    pub(super) head_dim: u64,
}

impl AttentionWork {
    /// FLOPs per (row, key) pair: 4·D·B·H.
    fn pair(&self) -> u128 {
        4 * u128::from(self.batch) * u128::from(self.heads) * u128::from(self.head_dim)
    }

    /// FLOPs of all S rows against all S keys: 4·S²·D·B·H.
    pub(super) fn unchunked(&self, rows: u64) -> u128 {
        self.chunk(0, rows)
    }

    /// FLOPs of a chunk of `rows` rows after `start` rows: 4·rows·(start + rows)·D·B·H. For the
    /// i-th chunk of C rows (i from 1) that is 4·i·C²·D·B·H.
    pub(super) fn chunk(&self, start: u64, rows: u64) -> u128 {
        let (start, rows) = (u128::from(start), u128::from(rows));
        self.pair() * rows * (start + rows)
    }

    /// FLOPs of S rows in chunks of C rows, the last one shorter: with S = q·C + r,
    /// 4·D·B·H·(C²·q(q + 1)/2 + r·(q·C + r)). For r = 0 that is 2·C·S·D·B·H + 2·S²·D·B·H,
    /// a fraction ½·(1 + C/S) of [`unchunked`](AttentionWork::unchunked).
    ///
    /// A `chunk` of 0 means one chunk of all rows.
    pub(super) fn chunked(&self, rows: u64, chunk: u64) -> u128 {
        let chunk = if chunk == 0 { rows.max(1) } else { chunk };
        let (s, c) = (u128::from(rows), u128::from(chunk));
        let (q, r) = (s / c, s % c);
        self.pair() * (c * c * (q * (q + 1) / 2) + r * (q * c + r))
    }

    /// FLOPs of a causal kernel for a chunk: 4·D·B·H·Σ (p + 1) over the positions
    /// p = start … start + rows − 1. At most [`chunk`](AttentionWork::chunk); the sum over a prompt
    /// does not depend on the chunk size.
    pub(super) fn causal(&self, start: u64, rows: u64) -> u128 {
        let triangle = |n: u64| u128::from(n) * (u128::from(n) + 1) / 2;
        self.pair() * (triangle(start + rows) - triangle(start))
    }
}
