//! What attention is computed of.

use super::mask::AttentionMask;
use crate::kv::{KvLayer, PageId};
use std::ops::Range;

/// Consecutive positions of one sequence.
#[derive(Clone, Debug)]
pub struct AttentionSequence<'a> {
    /// Rows of `q` and of the output.
    pub rows: Range<usize>,
    /// Position of the first of them.
    pub start_pos: usize,
    /// Pages of the sequence, the first holding position 0. Keys and values of all
    /// positions up to the last row's must have been written.
    pub pages: &'a [PageId],
}

/// What to attend to.
#[derive(Clone, Debug)]
pub struct AttentionJob<'a> {
    /// Keys and values of the layer; its layout has the number of KV heads and the head's size.
    pub kv: &'a KvLayer<'a>,
    /// `[rows][heads][head_dim]`.
    pub q: &'a [f32],
    /// Spans with ascending, disjoint rows.
    pub spans: &'a [AttentionSequence<'a>],
    /// Query heads, a multiple of the KV heads; neighbours share a KV head.
    pub heads: usize,
    /// Factor on the scores, usually 1/√head_dim.
    pub scale: f32,
    /// Keys that a row sees.
    pub mask: AttentionMask<'a>,
    /// `cap · tanh(score / cap)` on the scaled scores.
    pub soft_cap: Option<f32>,
}
