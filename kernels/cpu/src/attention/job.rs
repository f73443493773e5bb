//! Arguments of attention.

use lapwing_model::kv::{KvLayer, PageId};
use lapwing_model::mask::Mask;
use std::ops::Range;

/// The query rows of one sequence, at consecutive positions.
#[derive(Clone, Debug)]
pub struct AttentionSequence<'a> {
    /// Rows of `q` and of the output.
    pub rows: Range<usize>,
    /// Position of the first row.
    pub start_pos: usize,
    /// KV pages of the sequence; the first holds position 0. Keys and values of all positions up to
    /// the last row's must have been written. Under the full mask these are all keys of the sequence.
    pub pages: &'a [PageId],
}

/// Arguments of attention.
#[derive(Clone, Debug)]
pub struct AttentionJob<'a> {
    /// Keys and values of the layer; its layout has the number of KV heads and the sizes of their keys and values.
    pub kv: &'a KvLayer<'a>,
    /// `[rows][heads][key_dim]`.
    pub q: &'a [f32],
    /// Sequences with ascending, disjoint rows.
    pub sequences: &'a [AttentionSequence<'a>],
    /// Query heads, a multiple of the KV heads; consecutive heads share a KV head.
    pub heads: usize,
    /// Factor on the scores, usually 1/√key_dim.
    pub scale: f32,
    /// Which keys each row sees.
    pub mask: &'a Mask,
    /// `cap · tanh(score / cap)` on the scaled scores.
    pub soft_cap: Option<f32>,
    /// For each head, the factor on the distance of a key, whose product is subtracted from the score: ALiBi.
    pub slopes: Option<&'a [f32]>,
    /// For each head, the score of a key that every row sees and that has no value.
    pub sinks: Option<&'a [f32]>,
}
