//! The commands of ops that read rows of tables, and of those that only select.

use std::ops::Range;
use std::sync::Arc;

use super::{Encoder, Stored};
use crate::model::Model;
use crate::ops::{Add, Embed, JoinHeads, RepeatValues, SelectRows, Unary, UnaryOp, View};
use lapwing_model::device::DeviceError;
use lapwing_model::graph::{Node, WeightId};

impl Encoder<'_> {
    pub(super) fn embed(
        &mut self,
        node: &Node,
        table: WeightId,
        scale: f32,
    ) -> Result<Stored, DeviceError> {
        let rows = self.rows(node.output);
        self.check_ids(rows.clone(), table)?;
        self.model.weights.load_matrix(table)?;
        let out = self.output(node)?;
        let (ids, rows) = (self.ints.ids(rows.start), rows.len());
        let Model { kernels, weights, .. } = &mut *self.model;
        let table = &*weights.matrix(table).matrix;
        let added = kernels.embed(&Embed { ids, rows, table, scale, out: out.view() });
        self.added(added, out)
    }

    /// Rows of a table in the weight file: the host reads them, and gives them to the device.
    pub(super) fn lookup(
        &mut self,
        node: &Node,
        table: WeightId,
        scale: f32,
    ) -> Result<Stored, DeviceError> {
        let rows = self.rows(node.output);
        self.check_ids(rows.clone(), table)?;
        let ids = &self.work.payload.batch.ids[rows.clone()];
        let values = self.model.weights.rows_on_host(table, ids)?;
        let place = self.model.memory.input(bytemuck::cast_slice(&values), self.commands);
        let place = place.map_err(|error| self.failed(&error))?;
        let width = self.model.graph.value(node.output).width;
        let read = Stored { buffer: Arc::new(place), at: 0, stride: width, is_part: true };
        self.scaled(node, &read, scale)
    }

    /// Some columns of a value: a view of it, or a copy if a later stage reads them, or each is there several times.
    pub(super) fn some_columns(
        &mut self,
        node: &Node,
        first: usize,
        times: usize,
    ) -> Result<Stored, DeviceError> {
        let all = self.whole(node, 0)?;
        let columns = Stored { at: all.at + first, is_part: true, ..all };
        if times > 1 {
            let ((rows, width), out) = (self.size(node), self.output(node)?);
            let job = RepeatValues { x: columns.view(), rows, width, times, out: out.view() };
            let added = self.model.kernels.repeat_values(&job);
            return self.added(added, out);
        }
        match self.writes.contains(&node.output) {
            true => self.scaled(node, &columns, 1.0),
            false => Ok(columns),
        }
    }

    /// The values of each head of one value, followed by those of another one.
    pub(super) fn join_heads(
        &mut self,
        node: &Node,
        heads: usize,
        is_shared: bool,
    ) -> Result<Stored, DeviceError> {
        let (first, second, out) = (self.whole(node, 0)?, self.whole(node, 1)?, self.output(node)?);
        let width = |index: usize| self.model.graph.value(node.inputs[index]).width;
        let (of_a, of_b) = (width(0) / heads, width(1) / if is_shared { 1 } else { heads });
        let (a, b, rows) = (first.view(), second.view(), self.rows(node.output).len());
        let job = JoinHeads { a, b, rows, heads, of_a, of_b, is_shared, out: out.view() };
        let added = self.model.kernels.join_heads(&job);
        self.added(added, out)
    }

    /// The rows of a value that go on.
    pub(super) fn select_rows(&mut self, node: &Node) -> Result<Stored, DeviceError> {
        let (x, out) = (self.whole(node, 0)?, self.output(node)?);
        let (rows, width) = self.size(node);
        let of = |value| self.model.graph.value(value).rows;
        let (from, to) = (of(node.inputs[0]), of(node.output));
        let (x, to_view) = (x.view(), out.view());
        let added = if self.work.payload.batch.kept_rows(from, to).is_some() {
            let selected = self.ints.selected();
            let job = SelectRows { x, selected, rows, width, out: to_view };
            self.model.kernels.select_rows(&job)
        } else {
            let job = RepeatValues { x, rows, width, times: 1, out: to_view };
            self.model.kernels.repeat_values(&job)
        };
        self.added(added, out)
    }

    /// Values times the weights of their columns, or all of them times one weight.
    pub(super) fn scale_by(
        &mut self,
        node: &Node,
        x: &Stored,
        weight: WeightId,
    ) -> Result<Stored, DeviceError> {
        if self.model.graph.weights()[weight.0].cols == 1 {
            let factor = self.model.weights.factor(weight)?;
            return self.scaled(node, x, factor);
        }
        self.model.weights.load_vector(weight)?;
        let ((rows, width), out) = (self.size(node), self.output(node)?);
        let first = self.columns_of(node.output).start;
        let Model { kernels, weights, .. } = &mut *self.model;
        // Every row has the same factors.
        let factors = View { buffer: weights.vector(weight), at: first, stride: 0 };
        let added = kernels.mul(&Add { a: x.view(), b: factors, rows, width, out: out.view() });
        self.added(added, out)
    }

    fn scaled(&mut self, node: &Node, x: &Stored, factor: f32) -> Result<Stored, DeviceError> {
        let ((rows, width), out) = (self.size(node), self.output(node)?);
        let (op, number) = (UnaryOp::Scale, factor);
        let job = Unary { op, x: x.view(), rows, width, number, out: out.view() };
        let added = self.model.kernels.unary(&job);
        self.added(added, out)
    }

    /// Checks that a table has a row for the token of each of these rows.
    fn check_ids(&self, rows: Range<usize>, table: WeightId) -> Result<(), DeviceError> {
        let ids = &self.work.payload.batch.ids[rows];
        let vocab = self.model.graph.weights()[table.0].rows;
        match ids.iter().copied().find(|id| *id as usize >= vocab) {
            Some(id) => Err(DeviceError::TokenId { id, vocab }),
            None => Ok(()),
        }
    }
}
