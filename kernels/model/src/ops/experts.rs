//! Feed-forward blocks of chosen experts.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::graph::Graph;
use crate::op::{ExpertForm, ExpertMatrix, ExpertsOp, Op};
use crate::part::Part;

pub(super) const INFO: OpInfo = OpInfo::new("experts", 26, OpKind::Rowwise);

/// The weights are those of as many experts as rows touch if each expert is equally likely.
pub(super) fn work(at: &OpShape<'_>, op: &ExpertsOp) -> Work {
    let (slots, used) = (at.rows * op.used as u64, touched(op.count, op.used, at.rows));
    let inner = op.up.rows as u64;
    let of_matrix = |matrix: &ExpertMatrix| {
        let cols = at.graph.weights()[matrix.weight.0].cols as u64;
        let rows = matrix.rows as u64;
        let added = u64::from(matrix.bias.is_some()) + u64::from(matrix.scale.is_some());
        let bytes = rows * (at.row_bytes(matrix.weight) + 4 * u64::from(matrix.bias.is_some()));
        Work { flops: slots * rows * (2 * cols + added), bytes: (used * bytes as f64) as u64 }
    };
    let of_value = match op.form {
        ExpertForm::ReluGated => 2,
        ExpertForm::Gated(_) | ExpertForm::Plain(_) => 6,
        ExpertForm::ClampedGated { .. } => 10,
    };
    let middle = Work::of_values(slots * inner * of_value);
    op.matrices().map(of_matrix).fold(middle, |sum, work| Work {
        flops: sum.flops + work.flops,
        bytes: sum.bytes + work.bytes,
    })
}

/// Bytes of the matrices of as many experts as `rows` rows touch.
pub(crate) fn matrix_bytes(graph: &Graph, op: &ExpertsOp, rows: u64) -> u64 {
    let of_expert = |matrix: &ExpertMatrix| matrix.rows as u64 * graph.row_bytes(matrix.weight);
    let bytes = op.matrices().map(of_expert).sum::<u64>();
    (touched(op.count, op.used, rows) * bytes as f64) as u64
}

impl Graph {
    /// How much of a node's experts a part has, from 0 to 1: as much of their slots, and of the experts that rows touch, are its own on
    /// average. 1 for other ops.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn expert_share(&self, node: usize, part: &Part) -> f64 {
        match &self.nodes()[node].op {
            Op::Experts(op) if op.count > 0 => {
                part.experts_of(op.count).len() as f64 / op.count as f64
            }
            _ => 1.0,
        }
    }
}

/// A share of a number, which is all of it if the share is 1.
pub(crate) fn part_of(all: u64, share: f64) -> u64 {
    if share < 1.0 { (all as f64 * share) as u64 } else { all }
}

/// Experts that `rows` rows touch, on average, if each of `count` experts is equally likely to be among the `used` of a row.
fn touched(count: usize, used: usize, rows: u64) -> f64 {
    let missed = 1.0 - used as f64 / count as f64;
    count as f64 * (1.0 - missed.powf(rows as f64))
}

#[cfg(test)]
mod tests {
    use super::touched;

    #[test]
    fn rows_touch_ever_more_experts() {
        assert!((touched(128, 8, 1) - 8.0).abs() < 1e-9);
        assert!((touched(128, 8, 8) / 128.0 - 0.403).abs() < 1e-3);
        assert!((touched(128, 8, 512) - 128.0).abs() < 1e-9);
        assert!((touched(8, 8, 3) - 8.0).abs() < 1e-9);
    }
}
