//! Operations of attention, counted as the literature on chunked prefill counts them.
//!
//! There, a chunk computes the full rectangle of its rows × all keys up to its own end, twice
//! (q·kᵀ, then the weighted sum of v), two operations each (S0-6 … S0-8). Kernels that skip masked
//! keys do less: a row at position p sees p + 1 keys. [`AttentionWork::causal`] counts that, and is
//! what [`Graph::cost`](lapwing_kernels::graph::Graph::cost) counts without a window.
//!
//! All sums are exact integers.

/// Shape of an attention: B·H·D, the factor that all formulas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionWork {
    /// B, sequences.
    pub batch: u64,
    /// H, heads of q.
    pub heads: u64,
    /// D, values of a head.
    pub head_dim: u64,
}

impl AttentionWork {
    /// Operations for one (row, key) pair: 4·D·B·H.
    fn pair(&self) -> u128 {
        4 * u128::from(self.batch) * u128::from(self.heads) * u128::from(self.head_dim)
    }

    /// All rows against all keys: 4·S²·D·B·H (S0-6).
    pub fn unchunked(&self, rows: u64) -> u128 {
        self.chunk(0, rows)
    }

    /// A chunk of `rows` rows after `start` others: rows·(start + rows)·4·D·B·H. For the i-th
    /// chunk of C rows that is 4·i·C²·D·B·H (S0-7).
    pub fn chunk(&self, start: u64, rows: u64) -> u128 {
        let (start, rows) = (u128::from(start), u128::from(rows));
        self.pair() * rows * (start + rows)
    }

    /// S rows in chunks of C, the last one shorter: with S = q·C + r,
    /// 4·D·B·H·(C²·q(q + 1)/2 + r·(q·C + r)) (S0-8). For r = 0 it is 2·C·S·D·B·H + 2·S²·D·B·H,
    /// the share ½·(1 + C/S) of [`unchunked`](AttentionWork::unchunked) (S0-7).
    ///
    /// A `chunk` of 0 counts as one chunk of all rows.
    pub fn chunked(&self, rows: u64, chunk: u64) -> u128 {
        let chunk = if chunk == 0 { rows.max(1) } else { chunk };
        let (s, c) = (u128::from(rows), u128::from(chunk));
        let (q, r) = (s / c, s % c);
        self.pair() * (c * c * (q * (q + 1) / 2) + r * (q * c + r))
    }

    /// What a causal kernel does for a chunk: 4·D·B·H·Σ (p + 1) over its positions
    /// p = start … start + rows − 1. Never more than [`chunk`](AttentionWork::chunk), and the same
    /// in sum for every way to cut a prompt.
    pub fn causal(&self, start: u64, rows: u64) -> u128 {
        let triangle = |n: u64| u128::from(n) * (u128::from(n) + 1) / 2;
        self.pair() * (triangle(start + rows) - triangle(start))
    }
}
