//! Verification passes ahead: of a sequence whose last pass is still in flight. While one device computes the last
//! layers of a pass, another can compute the first layers of the next one (PipeInfer, Butler et al., 2024). The rows
//! continue the draft in flight, on the assumption that all of it is accepted. Otherwise the pass is dropped at the
//! next border of stages.

use lapwing_plan::Phase;
use lapwing_plan::strategy::ChunkShape;

use super::chunks::{NextChunk, Selection};
use super::graphs::Readiness;
use super::state::Scheduler;
use crate::sequence::Permit;

impl Scheduler {
    /// Whether the sequence is the only request of its model that generates, so that all its passes are batches of one.
    pub(super) fn is_alone(&self, at: usize) -> bool {
        let model = self.running[at].model;
        let others = self.running.iter().enumerate().filter(|(other, _)| *other != at);
        !others.into_iter().any(|(_, other)| {
            other.model == model && !other.is_companion() && other.has_generated()
        })
    }

    /// The next pass ahead, if there is one. Takes the permit if it returns a chunk.
    pub(super) fn pass_ahead(&mut self, permit: &mut Option<Permit>) -> NextChunk {
        for at in 0..self.running.len() {
            let sequence = &self.running[at];
            let has_pages = sequence.has_pages(&self.models[sequence.model.0].kv);
            if !sequence.is_ahead() || !has_pages || !self.is_alone(at) {
                continue;
            }
            let (rows, context, kind) = (sequence.due(), sequence.sent, sequence.kind());
            let phase = Phase::Decode;
            let shape = ChunkShape { phase, rows, selected: rows, context, prompt: 0 };
            if let Ok((route, Readiness::Ready)) = self.route_for(kind, &shape)
                && self.running[at].go_ahead(&route)
            {
                return self.cut(permit, &Selection { rows: vec![(at, rows)], shape }, route);
            }
        }
        NextChunk::Nothing
    }
}
