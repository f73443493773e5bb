//! A prompt cut into chunks, each on the route that it takes in an engine which computes nothing else.

use std::sync::Arc;

use super::chunks::{PlannedChunk, Workload};
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::moment::{Candidate, Known, Sent};
use crate::phase::Phase;
use crate::strategy::interface::{PlanInput, Strategy};

/// The chunks into which a strategy cuts a prompt, each with its route. If chunks may take several routes, those are chosen that an engine
/// chooses which computes nothing else.
///
/// # Errors
/// [`PlanError`] if the strategy has no route.
pub fn plan(
    strategy: &dyn Strategy,
    input: &PlanInput<'_>,
    work: Workload,
) -> Result<Vec<PlannedChunk>, PlanError> {
    let mut chunks: Vec<PlannedChunk> = Vec::new();
    let mut known = Known::default();
    let mut sent = Sent::new(input.devices.len(), work.in_flight, Vec::new());
    let (mut remaining, mut context) = (work.prompt, work.context);
    while remaining > 0 {
        let most = remaining.min(input.chunk_rows);
        let rows = strategy
            .chunk_rows(input, PromptRows { all: work.prompt, remaining })
            .clamp(most.min(1), most.max(1));
        remaining -= rows;
        let selected = usize::from(remaining == 0);
        let (phase, prompt) = (Phase::Prefill, work.prompt);
        let shape = ChunkShape { phase, rows, selected, context, prompt };
        let candidates = known.of(input, &shape, |shape| {
            let routes = strategy.routes(input, shape)?;
            Ok(match routes.len() {
                1 => routes.into_iter().map(Candidate::only).collect(),
                _ => Candidate::of_routes(input, shape, routes),
            })
        })?;
        let taken = match candidates.len() {
            0 | 1 => 0,
            _ => sent.next(&candidates, candidates[0].route.rule, remaining.div_ceil(rows)),
        };
        let route = candidates.get(taken).map(|candidate| Arc::clone(&candidate.route));
        let none = PlanError::Coverage { found: 0..0, expected: input.graph.nodes().len() };
        chunks.push(PlannedChunk { shape, route: route.ok_or(none)? });
        context += rows;
    }
    Ok(chunks)
}
