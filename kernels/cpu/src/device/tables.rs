//! Rows of tables: embeddings, and rows that are added; and rows that are given from outside.

use super::ops::OpRun;
use super::stage::Stage;
use crate::embed::{EmbedError, add_rows, embed_rows};
use lapwing_model::device::{Batch, DeviceError};
use lapwing_model::graph::WeightId;
use lapwing_model::op::TableRow;

impl OpRun<'_> {
    pub(super) fn embed(
        &self,
        table: WeightId,
        scale: f32,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let Stage { model, part, batch, .. } = self.stage;
        let ids = &batch.ids[part.rows_of(model.graph.value(self.node.output), batch)];
        let embedded = embed_rows(&model.cpu, model.table(table)?, ids, scale, out);
        embedded.map_err(|error| match error {
            EmbedError::Id { id, rows } => DeviceError::TokenId { id, vocab: rows },
            EmbedError::Read(error) => model.failed(error),
        })
    }

    /// Rows that are given from outside.
    pub(super) fn given(&self, out: &mut [f32]) -> Result<(), DeviceError> {
        let Stage { model, part, batch, .. } = self.stage;
        let spec = model.graph.value(self.node.output);
        let rows = part.rows_of(spec, batch);
        match batch.given.get(rows.start * spec.width..rows.end * spec.width) {
            Some(given) => out.copy_from_slice(given),
            None => return Err(self.stage.unsupported(self.node, "rows that are not given")),
        }
        Ok(())
    }

    pub(super) fn add_row(
        &self,
        table: WeightId,
        row: TableRow,
        out: &mut [f32],
    ) -> Result<(), DeviceError> {
        let Stage { model, part, batch, .. } = self.stage;
        let spec = model.graph.value(self.node.output);
        let first = part.rows_of(spec, batch).start;
        self.check_positions(table, row)?;
        let types = token_types(batch, row, model.graph.weights()[table.0].rows);
        let (table, width) = (model.weights.vector(table), spec.width);
        let row_of = |at: usize| {
            let index = match row {
                TableRow::First => 0,
                TableRow::Part { .. } => types[first + at],
                TableRow::Position => batch.positions[first + at] as usize,
            };
            &table[index * width..][..width]
        };
        add_rows(&model.cpu, self.stage.whole(self.node, 0)?, width, row_of, out);
        Ok(())
    }

    /// Checks that a table has a row for each position of the part.
    fn check_positions(&self, table: WeightId, row: TableRow) -> Result<(), DeviceError> {
        let Stage { model, part, batch, .. } = self.stage;
        let rows = model.graph.weights()[table.0].rows;
        let all = part.rows_of(model.graph.value(self.node.output), batch);
        let last = batch.positions[all].iter().max().filter(|_| row == TableRow::Position);
        match last {
            Some(last) if *last as usize >= rows => {
                let what = format!("position {last} with a table of {rows} positions");
                Err(self.stage.unsupported(self.node, &what))
            }
            _ => Ok(()),
        }
    }
}

/// The row of a table of `rows` token types for each row of a batch; nothing for tables of another kind.
fn token_types(batch: &Batch, row: TableRow, rows: usize) -> Vec<usize> {
    let TableRow::Part { separator } = row else { return Vec::new() };
    let mut types = Vec::with_capacity(batch.rows());
    for span in &batch.spans {
        let mut part = 0;
        for id in &batch.ids[span.rows.clone()] {
            types.push(part);
            part = (part + usize::from(*id == separator)).min(rows.saturating_sub(1));
        }
    }
    types
}
