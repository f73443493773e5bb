//! Matrices of experts.

use std::ops::Range;

use super::DeviceWeights;
use crate::ops::{ExpertMatrices, Stack};
use lapwing_model::device::DeviceError;
use lapwing_model::op::ExpertMatrix;

/// A matrix of each of some experts.
#[derive(Debug)]
pub(super) struct ExpertStack {
    stack: Stack,
    experts: Range<usize>,
}

impl DeviceWeights {
    /// Copies a matrix of each of these experts to the device, with all biases and factors, unless they are there. The matrix of an
    /// expert is read at a time. If some others are there, they stay.
    ///
    /// # Errors
    /// As [`load_matrix`](DeviceWeights::load_matrix).
    pub(crate) fn load_experts(
        &mut self,
        of: &ExpertMatrix,
        experts: Range<usize>,
    ) -> Result<(), DeviceError> {
        for vector in [of.bias, of.scale].into_iter().flatten() {
            self.load_vector(vector)?;
        }
        let key = (of.weight.0, of.first);
        let mut experts = experts;
        if let Some(ExpertStack { experts: there, .. }) = self.stacks.get(&key) {
            if there.start <= experts.start && experts.end <= there.end {
                return Ok(());
            }
            experts = there.start.min(experts.start)..there.end.max(experts.end);
        }
        let (spec, tensor) = (&self.graph.weights()[of.weight.0], &self.tensors[of.weight.0]);
        let shape = [experts.len(), of.rows, spec.cols];
        let stack = Stack::new(&self.session, spec.dtype, shape, &spec.name);
        let stack = stack.map_err(|error| error.of_run(&self.device))?;
        tensor.check_unchanged().map_err(|error| self.failed(&error))?;
        let row_bytes = self.graph.stored(of.weight).row_bytes(spec.cols).unwrap_or(0);
        for (place, expert) in experts.clone().enumerate() {
            let mut bytes = vec![0; of.rows * row_bytes];
            let read = tensor.read_range(of.rows_of(expert).start * row_bytes, &mut bytes);
            read.map_err(|error| self.failed(&error))?;
            let bytes = self.in_format(of.weight, bytes)?;
            let put = stack.put(&self.session, place, &bytes);
            put.map_err(|error| error.of_run(&self.device))?;
        }
        self.bytes += stack.bytes();
        if let Some(before) = self.stacks.insert(key, ExpertStack { stack, experts }) {
            self.bytes -= before.stack.bytes();
        }
        Ok(())
    }

    /// Matrices of experts that have been copied.
    pub(crate) fn experts(&self, of: &ExpertMatrix) -> ExpertMatrices<'_> {
        let stack = self.stacks.get(&(of.weight.0, of.first));
        let ExpertStack { stack, experts } = stack.expect("matrices that were loaded");
        ExpertMatrices {
            stack,
            first: experts.start,
            bias: of.bias.map(|bias| (self.vector(bias), [of.first, of.stride])),
            factors: of.scale.map(|scale| self.vector(scale)),
        }
    }
}
