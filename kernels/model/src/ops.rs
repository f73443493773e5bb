//! What is known of each op, whatever computes it: one file for each.

mod add;
mod add_row;
mod attention;
mod columns;
mod curve;
mod embed;
mod excess;
mod experts;
mod gated;
mod given;
pub(crate) mod info;
mod join_heads;
mod layer_norm;
mod linear_attention;
mod lookup;
mod matmul;
mod mix;
mod multiply;
mod rms_norm;
mod rope;
mod route;
mod scale;
mod scale_by;
mod select_rows;
mod shape;
mod short_conv;
mod soft_cap;
mod temperature;
mod weighted_sum;
mod with_length;

pub(crate) use experts::{matrix_bytes, part_of};
pub use info::{OpInfo, OpKind, Reads};
pub(crate) use shape::{OpShape, Work};

use crate::op::Op;

impl OpInfo {
    /// All kinds.
    pub const ALL: [OpInfo; 30] = [
        embed::INFO,
        rms_norm::INFO,
        matmul::INFO,
        rope::INFO,
        attention::INFO,
        gated::INFO,
        add::INFO,
        select_rows::INFO,
        soft_cap::INFO,
        layer_norm::INFO,
        add_row::INFO,
        curve::INFO,
        attention::FULL,
        scale::INFO,
        attention::BIASED,
        temperature::INFO,
        scale_by::INFO,
        lookup::INFO,
        columns::INFO,
        weighted_sum::INFO,
        excess::INFO,
        with_length::INFO,
        join_heads::INFO,
        multiply::INFO,
        short_conv::INFO,
        route::INFO,
        experts::INFO,
        mix::INFO,
        linear_attention::INFO,
        given::INFO,
    ];
}

impl Op {
    /// What is known of its kind.
    pub fn info(&self) -> &'static OpInfo {
        match self {
            Op::Embed { .. } => &embed::INFO,
            Op::Lookup { .. } => &lookup::INFO,
            Op::Given => &given::INFO,
            Op::RmsNorm { .. } => &rms_norm::INFO,
            Op::LayerNorm { .. } => &layer_norm::INFO,
            Op::AddRow { .. } => &add_row::INFO,
            Op::MatMul { .. } => &matmul::INFO,
            Op::Rope { .. } => &rope::INFO,
            Op::Attention(op) if op.mask.sees_later() => &attention::FULL,
            Op::Attention(op) if op.alibi.is_some() => &attention::BIASED,
            Op::Attention(_) => &attention::INFO,
            Op::Gated(_) => &gated::INFO,
            Op::Curve(_) => &curve::INFO,
            Op::Add => &add::INFO,
            Op::Multiply => &multiply::INFO,
            Op::ShortConv(_) => &short_conv::INFO,
            Op::LinearAttention(_) => &linear_attention::INFO,
            Op::Scale { .. } => &scale::INFO,
            Op::ScaleBy { .. } => &scale_by::INFO,
            Op::Temperature(_) => &temperature::INFO,
            Op::SelectRows => &select_rows::INFO,
            Op::Columns { .. } => &columns::INFO,
            Op::JoinHeads { .. } => &join_heads::INFO,
            Op::SoftCap { .. } => &soft_cap::INFO,
            Op::WeightedSum { .. } => &weighted_sum::INFO,
            Op::Excess { .. } => &excess::INFO,
            Op::WithLength => &with_length::INFO,
            Op::Route(_) => &route::INFO,
            Op::Experts(_) => &experts::INFO,
            Op::Mix { .. } => &mix::INFO,
        }
    }

    /// Operations, and bytes beside those of its inputs and its output.
    pub(crate) fn work(&self, at: &OpShape<'_>) -> Work {
        match self {
            Op::Embed { table, .. } | Op::Lookup { table, .. } => embed::work(at, *table),
            Op::Given => given::work(at),
            Op::RmsNorm { weight, .. } => rms_norm::work(at, *weight),
            Op::LayerNorm { weight, bias, .. } => layer_norm::work(at, [*weight, *bias]),
            Op::AddRow { table, row } => add_row::work(at, *table, *row),
            Op::MatMul { weight, bias } => matmul::work(at, *weight, *bias),
            Op::Rope { heads, rope } => rope::work(at, *heads, *rope),
            Op::Attention(op) => attention::work(at, op),
            Op::Gated(activation) => gated::work(at, *activation),
            Op::Curve(curve) => curve::work(at, *curve),
            Op::Add => add::work(at),
            Op::Multiply => multiply::work(at),
            Op::ShortConv(op) => short_conv::work(at, *op),
            Op::LinearAttention(op) => linear_attention::work(at, op),
            Op::Scale { .. } => scale::work(at),
            Op::ScaleBy { .. } => scale_by::work(at),
            Op::Temperature(_) => temperature::work(at),
            Op::SelectRows | Op::Columns { .. } | Op::JoinHeads { .. } => select_rows::work(),
            Op::SoftCap { .. } => soft_cap::work(at),
            Op::WeightedSum { .. } => weighted_sum::work(at),
            Op::Excess { .. } => excess::work(at),
            Op::WithLength => with_length::work(at),
            Op::Route(op) => route::work(at, op),
            Op::Experts(op) => experts::work(at, op),
            Op::Mix { used, .. } => mix::work(at, *used),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (place, info) in OpInfo::ALL.iter().enumerate() {
            assert_eq!(info.number as usize, place, "{}", info.name);
        }
    }
}
