//! Parts: how the work of a stage is divided between devices.
//!
//! A stage writes values of `rows` tokens × `features`. A part is a rectangle of them: all rows
//! and some features (a row cut: the weight's output rows are divided), some rows and all
//! features (a sequence cut), or some of both (a hybrid cut). The parts of a stage tile its values.
//! A stage of one op of experts may be cut by these instead: a part has all rows, and of their
//! slots those of its experts.

use std::ops::Range;

use crate::device::batch::Batch;
use crate::graph::{RowSet, ValueSpec};

/// Which features of every value that a stage writes: the fractions `from / of .. to / of` of its
/// width, rounded to multiples of [`Share::ALIGN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// First unit.
    pub from: usize,
    /// One past the last unit.
    pub to: usize,
    /// Units of the whole width.
    pub of: usize,
}

impl Share {
    /// All features.
    pub const WHOLE: Share = Share { from: 0, to: 1, of: 1 };

    /// Borders between shares lie on multiples of this, so that no vector kernel or 32 × 32 array
    /// has a ragged edge inside a value.
    pub const ALIGN: usize = 32;

    /// Whether it is every feature.
    pub fn is_whole(&self) -> bool {
        self.from == 0 && self.to == self.of
    }

    /// Its features in a value of that width. Shares that follow each other give ranges that
    /// follow each other.
    pub fn of_width(&self, width: usize) -> Range<usize> {
        let border = |unit: usize| {
            if unit >= self.of {
                width
            } else {
                let exact = width * unit / self.of;
                (exact.next_multiple_of(Share::ALIGN)).min(width)
            }
        };
        border(self.from)..border(self.to)
    }
}

/// Operand order of an array processor's matmul; both orders give the same result (order swap,
/// HeteroLLM section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OperandOrder {
    /// x·Wᵀ: the weights are stationary, the rows of x are streamed.
    #[default]
    Straight,
    /// (W·xᵀ)ᵀ: x is stationary, the rows of W are streamed.
    Swapped,
}

/// One device's piece of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Rows of the batch; `None` is every row. Only values with a row per token can be cut so.
    pub rows: Option<Range<usize>>,
    /// Features of every value that the stage writes.
    pub features: Share,
    /// Of a stage of one op of experts, those whose slots the part computes; `None` is every expert. Its value has room for all
    /// slots of its rows, and what is in those of other experts means nothing.
    pub experts: Option<Range<usize>>,
    /// For a device that runs prepared graphs only: the row counts of those graphs, run one after
    /// another. Together they are at least the part's rows; what is over is padding.
    pub graphs: Vec<usize>,
    /// How an array processor multiplies.
    pub order: OperandOrder,
}

impl Part {
    /// Everything, on a device that takes any number of rows.
    pub const WHOLE: Part = Part {
        rows: None,
        features: Share::WHOLE,
        experts: None,
        graphs: Vec::new(),
        order: OperandOrder::Straight,
    };

    /// Some rows of the batch, and every feature.
    pub fn of_rows(rows: Range<usize>) -> Part {
        Part { rows: Some(rows), ..Part::WHOLE }
    }

    /// Every row and every feature, as far as some experts make them.
    pub fn of_experts(experts: Range<usize>) -> Part {
        Part { experts: Some(experts), ..Part::WHOLE }
    }

    /// The same part in prepared graphs of these numbers of rows, run one after another.
    #[must_use]
    pub fn in_graphs(self, graphs: impl Into<Vec<usize>>) -> Part {
        Part { graphs: graphs.into(), ..self }
    }

    /// Every row, every feature and every expert.
    pub fn is_whole(&self) -> bool {
        self.rows.is_none() && self.features.is_whole() && self.experts.is_none()
    }

    /// The rows of a value that the part reads or writes.
    pub fn rows_of(&self, value: ValueSpec, batch: &Batch) -> Range<usize> {
        match (value.rows, &self.rows) {
            (RowSet::All, None) => 0..batch.rows(),
            (RowSet::All | RowSet::Passed, Some(rows)) => rows.clone(),
            (RowSet::Passed, None) => 0..batch.passed_rows(),
            (RowSet::Selected, _) => 0..batch.selected.len(),
        }
    }

    /// Its experts out of `count`.
    pub fn experts_of(&self, count: usize) -> Range<usize> {
        self.experts.as_ref().map_or(0..count, |own| own.start.min(count)..own.end.min(count))
    }

    /// Number of the batch's rows.
    pub fn row_count(&self, batch: &Batch) -> usize {
        self.rows.as_ref().map_or(batch.rows(), ExactSizeIterator::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_follow_each_other_leave_no_feature_out() {
        for width in [1, 31, 32, 33, 192, 576, 1536, 49_152] {
            for of in 1..20 {
                let ranges = (0..of).map(|i| Share { from: i, to: i + 1, of }.of_width(width));
                let mut next = 0;
                for range in ranges {
                    assert_eq!(range.start, next, "{width} / {of}");
                    assert!(range.start <= range.end);
                    assert!(range.end == width || range.end.is_multiple_of(Share::ALIGN));
                    next = range.end;
                }
                assert_eq!(next, width);
            }
        }
    }
}
