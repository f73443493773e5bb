//! Spans for subscribers of `tracing` of what a worker does with a chunk. What is done for a chunk without a span has none.

use std::time::Duration;

use lapwing_kernels::device::DeviceError;
use lapwing_kernels::graph::Graph;
use lapwing_traces::event::{Activity, ChunkPhase, DraftRole, Milestone};
use tracing::Span;
use tracing::field::Empty;
use tracing::span::EnteredSpan;

use crate::decide::{DecideError, Decision};
use crate::drive::record::{phase_of, stage_activity, stage_name, stage_tags};
use crate::message::{Chunk, Delivery};

/// The span of a stage on a device, or of the device's part of one.
pub(super) fn stage(delivery: &Delivery, device: &str, graph: &Graph) -> Span {
    let chunk = delivery.chunk();
    if chunk.trace.is_disabled() {
        return Span::none();
    }
    let (name, tags) = (stage_name(chunk, graph), stage_tags(delivery, graph, &mut Vec::new()));
    tracing::debug_span!(
        parent: &chunk.trace,
        "stage",
        timeline.name = &*name,
        device,
        activity = stage_activity(chunk).name(),
        chunk = chunk.id,
        stage = chunk.cursor,
        request = tags.request,
        layer = tags.layer,
        role = tags.role.map(DraftRole::name),
        phase = tags.phase.map(ChunkPhase::name),
        rows = tags.rows,
        epoch = tags.epoch,
        bytes = tags.bytes,
        flops = tags.flops,
        predicted_us = Empty,
        error = Empty,
    )
}

/// Ends the span of a stage. `modelled` is the time that the device's model predicts for it.
pub(super) fn end_stage(span: &Span, modelled: Option<Duration>, error: Option<&DeviceError>) {
    if let Some(time) = modelled {
        span.record("predicted_us", time.as_secs_f64() * 1e6);
    }
    if let Some(error) = error {
        span.record("error", tracing::field::display(error));
    }
}

/// The span of the sampling of a chunk's tokens, which is entered.
pub(super) fn sample(chunk: &Chunk, device: &str) -> EnteredSpan {
    if chunk.trace.is_disabled() {
        return Span::none().entered();
    }
    let span = tracing::trace_span!(
        parent: &chunk.trace,
        "sample",
        device,
        activity = Activity::Sample.name(),
        chunk = chunk.id,
        stage = chunk.cursor,
        role = chunk.role().map(DraftRole::name),
        phase = phase_of(chunk).name(),
        rows = chunk.batch().rows(),
    );
    span.entered()
}

/// The span of the merge of the parts of a chunk's stage, which is entered.
pub(super) fn merge(chunk: &Chunk, device: &str) -> EnteredSpan {
    if chunk.trace.is_disabled() {
        return Span::none().entered();
    }
    let span = tracing::trace_span!(
        parent: &chunk.trace,
        "merge",
        device,
        activity = Activity::Copy.name(),
        chunk = chunk.id,
        stage = chunk.cursor,
        role = chunk.role().map(DraftRole::name),
        phase = phase_of(chunk).name(),
        rows = chunk.batch().rows(),
    );
    span.entered()
}

/// Tells subscribers how many tokens or scores each request of a chunk has got.
pub(super) fn decided(chunk: &Chunk, decided: &Result<Vec<Decision>, DecideError>) {
    if chunk.trace.is_disabled() {
        return;
    }
    let decisions = decided.iter().flatten();
    for (rows, decision) in chunk.sequences.iter().zip(decisions) {
        let tokens = match decision {
            Decision::Tokens(tokens, _) if !rows.sequence.is_draft() => tokens.iter().count(),
            Decision::Scores(scores) => scores.len(),
            _ => continue,
        };
        tracing::trace!(
            request = rows.sequence.0,
            milestone = Milestone::Token.name(),
            value = tokens,
            "tokens"
        );
    }
}
