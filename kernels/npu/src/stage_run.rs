//! A stage's run on prepared graphs, one after another.

use std::ops::Range;
use std::sync::Arc;

use super::backend::{PreparedGraph, Started};
use super::device::NpuDevice;
use super::graph_builder::NpuGraph;
use lapwing_model::device::{
    DeviceError, Notify, Observer, Slot, StageRun, Step, Tensor, TensorSet,
};
use lapwing_model::graph::ValueId;
use lapwing_model::sync::lock;

/// Rows of a stage that one graph computes.
pub(super) struct Piece {
    pub(super) graph: Arc<NpuGraph>,
    pub(super) rows: Range<usize>,
}

/// A stage's rows in pieces, of which one at a time is loaded, computed and unloaded. The nodes are reported once,
/// while the last piece is computed; what the pieces before it take is part of the first step reported after them.
pub(super) struct StagePieces {
    nodes: Range<usize>,
    rows: Range<usize>,
    pieces: Vec<Piece>,
    /// The piece that is loaded, or the next one.
    at: usize,
    /// Values that the stage writes: their widths and their rows.
    results: Vec<(ValueId, usize, Slot)>,
    /// Bytes that were converted and not yet reported.
    converted: u64,
}

impl StagePieces {
    /// The pieces of a stage, with their graphs ready.
    ///
    /// # Errors
    /// [`DeviceError`] for rows or nodes that the device does not have, and for graphs that are not ready or cannot be
    /// prepared.
    pub(super) fn new(
        device: &NpuDevice,
        work: &mut StageRun<'_>,
    ) -> Result<StagePieces, DeviceError> {
        let rows = device.rows(work)?;
        let pieces = device.pieces(work, rows.clone())?;
        let result = |id: &ValueId| {
            let width = device.width(*id, work.part);
            (*id, width, device.slot(rows.len() * width))
        };
        let results = work.writes.iter().map(result).collect();
        Ok(StagePieces { nodes: work.nodes.clone(), rows, pieces, at: 0, results, converted: 0 })
    }

    /// Loads the next piece; `false` if there is none.
    ///
    /// # Errors
    /// [`DeviceError`] if an input is missing.
    pub(super) fn load(
        &mut self,
        device: &NpuDevice,
        inputs: &TensorSet,
        observer: &mut dyn Observer,
    ) -> Result<bool, DeviceError> {
        let Some(Piece { graph, rows }) = self.pieces.get(self.at) else { return Ok(false) };
        let mut prepared = lock(&graph.graph);
        self.converted += device.load(inputs, &graph.spec, prepared.as_mut(), rows)?;
        if self.at == 0 {
            observer.step_done(Step::Converted { bytes: std::mem::take(&mut self.converted) });
        }
        Ok(true)
    }

    /// Calls `run` with the graph of the loaded piece, and the observer if it is the last one.
    fn with_graph<T>(
        &self,
        observer: &mut dyn Observer,
        run: impl FnOnce(&mut dyn PreparedGraph, &mut dyn Observer) -> T,
    ) -> T {
        let mut graph = lock(&self.pieces[self.at].graph.graph);
        match self.at + 1 == self.pieces.len() {
            true => run(graph.as_mut(), observer),
            false => run(graph.as_mut(), &mut ()),
        }
    }

    /// Computes the loaded piece.
    ///
    /// # Errors
    /// [`DeviceError`] of the back end.
    pub(super) fn compute(&self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        self.with_graph(observer, |graph, observer| graph.run(observer))
    }

    /// Begins to compute the loaded piece ([`PreparedGraph::start`]).
    ///
    /// # Errors
    /// [`DeviceError`] of the back end.
    pub(super) fn start(
        &self,
        notify: &Notify,
        observer: &mut dyn Observer,
    ) -> Result<Started, DeviceError> {
        self.with_graph(observer, |graph, observer| graph.start(notify, observer))
    }

    /// The result of the piece that was begun ([`PreparedGraph::finish`]).
    ///
    /// # Errors
    /// [`DeviceError`] of the back end.
    pub(super) fn finish(&self, observer: &mut dyn Observer) -> Option<Result<(), DeviceError>> {
        self.with_graph(observer, |graph, observer| graph.finish(observer))
    }

    /// Takes the results of the computed piece.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for a value that the graph does not have.
    pub(super) fn unload(&mut self, device: &NpuDevice) -> Result<(), DeviceError> {
        let Piece { graph, rows } = &self.pieces[self.at];
        device.count_run();
        let prepared = lock(&graph.graph);
        for (id, width, result) in &mut self.results {
            let Some(port) = graph.spec.outputs.iter().position(|port| port.value == *id) else {
                return Err(device.unsupported(format!("value {} of nodes {:?}", id.0, self.nodes)));
            };
            let to = &mut result[(rows.start - self.rows.start) * *width..][..rows.len() * *width];
            to.copy_from_slice(&prepared.output(port)[..to.len()]);
            self.converted += 2 * size_of_val(to) as u64;
        }
        self.at += 1;
        Ok(())
    }

    /// Hands the results over.
    pub(super) fn end(self, observer: &mut dyn Observer, outputs: &mut TensorSet) {
        match self.pieces.is_empty() {
            // Nothing to compute, which is soon done.
            true => self.nodes.for_each(|node| observer.nodes_done(node..node + 1)),
            false => observer.step_done(Step::Converted { bytes: self.converted }),
        }
        for (id, width, slot) in self.results {
            outputs.put(id, Tensor::new(width, slot));
        }
    }
}
