//! Names and tags of stages.

use std::borrow::Cow;
use std::ops::Range;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::graph::Graph;
use lapwing_plan::shape::transfer_bytes;
use lapwing_plan::{Phase, StageWork};
use lapwing_traces::event::{Activity, ChunkPhase, Tags};

use super::names::{layer_of, roles_of};
use crate::message::{Chunk, Delivery};

/// The latest epoch of a chunk's sequences.
pub(super) fn epoch_of(chunk: &Chunk) -> u32 {
    let epochs = chunk.sequences.iter().map(|rows| rows.epoch);
    u32::try_from(epochs.max().unwrap_or(0)).unwrap_or(u32::MAX)
}

/// What a stage, or a device's part of one, computes or copies. `costs` gets that of each node.
pub(super) fn stage_cost(delivery: &Delivery, graph: &Graph, costs: &mut Vec<Cost>) -> Cost {
    let (chunk, part) = (delivery.chunk(), &delivery.part().part);
    costs.clear();
    let nodes = chunk.stage().nodes.clone();
    costs.extend(nodes.map(|node| graph.part_cost(node, part, chunk.batch())));
    let mut cost = Cost::default();
    costs.iter().for_each(|of_node| cost += *of_node);
    if let StageWork::Transfer { values, .. } = &chunk.stage().work {
        cost.bytes = transfer_bytes(graph, values, chunk.batch());
    }
    cost
}

/// Tags of a stage, or of a device's part of one.
pub(in crate::drive) fn stage_tags(
    delivery: &Delivery,
    graph: &Graph,
    costs: &mut Vec<Cost>,
) -> Tags {
    let (chunk, part) = (delivery.chunk(), &delivery.part().part);
    let cost = stage_cost(delivery, graph, costs);
    Tags {
        chunk: Some(chunk.id),
        request: match &chunk.sequences[..] {
            [one] => Some(one.sequence.request().0),
            _ => None,
        },
        stage: u16::try_from(chunk.cursor).ok(),
        layer: layer_of(&graph.nodes()[chunk.stage().nodes.clone()]),
        role: chunk.role(),
        phase: Some(phase_of(chunk)),
        rows: u32::try_from(part.row_count(chunk.batch())).unwrap_or(u32::MAX),
        epoch: epoch_of(chunk),
        bytes: cost.bytes,
        flops: cost.flops,
    }
}

/// Which rows a chunk has, as recordings say it.
pub(in crate::drive) fn phase_of(chunk: &Chunk) -> ChunkPhase {
    match chunk.phase {
        Phase::Prefill => ChunkPhase::Prefill,
        Phase::Decode => ChunkPhase::Decode,
        Phase::Mixed => ChunkPhase::Mixed,
    }
}

/// What a stage does.
pub(in crate::drive) fn stage_activity(chunk: &Chunk) -> Activity {
    if chunk.stage().computes() { Activity::Compute } else { Activity::Copy }
}

/// The name of a stage: the phase if the stage is the whole graph, otherwise the roles of its ops.
pub(in crate::drive) fn stage_name(chunk: &Chunk, graph: &Graph) -> Cow<'static, str> {
    let Range { start, end } = chunk.stage().nodes.clone();
    match end - start {
        _ if !chunk.stage().computes() => TRANSFER.into(),
        all if all == graph.nodes().len() => chunk.phase.name().into(),
        1 => graph.nodes()[start].role.into(),
        _ => roles_of(graph, &(start..end)).into(),
    }
}

/// The name of a stage that copies values.
pub(super) const TRANSFER: &str = "transfer";
