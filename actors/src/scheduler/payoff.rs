//! Requests that draft only if that pays: what is predicted of them when they are admitted.

use lapwing_kernels::device::ModelId;
use lapwing_plan::Phase;
use lapwing_plan::strategy::ChunkShape;

use super::chunk_times::ModelTime;
use super::models::{Model, Output};
use super::rows::PlannedBy;
use super::running::Sequence;
use super::state::Scheduler;
use crate::draft::{DraftCost, Prospect};
use crate::message::FinishReason;

/// A time in ns.
#[derive(Clone, Copy, Debug)]
struct Time {
    nanos: f64,
    /// Whether chunks were measured; otherwise the cost model predicts it.
    is_measured: bool,
}

impl Time {
    /// As it is measured, or else the predicted one times `scale`.
    fn scaled(self, scale: f64) -> f64 {
        if self.is_measured { self.nanos } else { self.nanos * scale }
    }
}

impl Model {
    /// Predicted time of a step of one row behind `context` others.
    fn step_predicted(&mut self, context: usize) -> Option<f64> {
        let (phase, context) = (Phase::Decode, context.next_power_of_two());
        let shape = ChunkShape { phase, rows: 1, selected: 1, context, prompt: 0 };
        self.time(Output::Logits, PlannedBy::Strategy, shape)
    }

    /// Time of so many rows of a prompt, in whole chunks.
    fn prompt_time(&mut self, rows: usize) -> Option<Time> {
        let whole = self.planner(Output::Logits).chunk_rows_max().max(1);
        let (phase, prompt) = (Phase::Prefill, rows.next_power_of_two());
        let chunk = prompt.min(whole);
        let shape = ChunkShape { phase, rows: chunk, selected: 1, context: 0, prompt };
        let (output, by) = (Output::Logits, PlannedBy::Strategy);
        let alone = self.time(output, by, shape)?;
        let behind_half = self.time(output, by, ChunkShape { context: prompt / 2, ..shape })?;
        let time = ModelTime { alone, context: (behind_half - alone).max(0.0) };
        let corrections = &self.corrections[by as usize];
        let nanos = corrections.on_average(chunk, time) * rows as f64 / chunk as f64;
        Some(Time { nanos, is_measured: corrections.are_known() })
    }

    /// Number of its layers.
    fn layers(&self) -> usize {
        let nodes = self.planner(Output::Logits).graph().nodes().iter();
        nodes.filter_map(|node| node.layer).max().map_or(1, |last| last + 1)
    }
}

impl Scheduler {
    /// Decides whether a request that is admitted drafts, if it does so only where that pays.
    pub(super) fn decide_drafts(&mut self, sequence: &mut Sequence) {
        let Some((draft, cost)) = sequence.undecided_drafts() else { return };
        let Some(prospect) = self.prospect(sequence, draft, cost) else { return };
        let Model { payoff, usual_acceptance, .. } = &mut self.models[draft.0];
        if let Err(reason) = payoff.decide(usual_acceptance, &prospect) {
            sequence.stop_drafts(&reason.to_string());
        }
    }

    /// Learns from a request that has ended how long answers are.
    pub(super) fn learn_answer(&mut self, at: usize, reason: FinishReason) {
        let sequence = &self.running[at];
        let Some(draft) = sequence.model_drafts().map(|drafts| drafts.model) else { return };
        let tokens = sequence.ids.len() - sequence.times.prompt_tokens;
        self.models[draft.0].payoff.learn(tokens, reason == FinishReason::Length);
    }

    /// What is predicted of a request that drafts by a model; `None` without any prediction.
    fn prospect(
        &mut self,
        sequence: &Sequence,
        draft: ModelId,
        cost: DraftCost,
    ) -> Option<Prospect<impl Fn(usize) -> Option<f64> + use<>>> {
        let (target, rows, context) = (sequence.model, sequence.due(), sequence.ids.len());
        let is_other = |other: &&Sequence| other.model == target && !other.is_companion();
        let others = self.running.iter().filter(is_other);
        let is_shown = others.clone().any(Sequence::passes_on);
        let others = others.filter(|other| other.has_generated()).count();
        let model = &mut self.models[target.0];
        let predicted = model.step_predicted(context)?;
        let mut steps = model.steps.clone();
        if steps.estimate(1).is_none() {
            steps.record(1, predicted);
        }
        // Predicted times may all be wrong by the same factor.
        let scale = steps.estimate(1)? / predicted;
        // Behind the last attention, all rows of the last layer are computed, which is less than the layer.
        let last_layer = model.prompt_time(rows)?.scaled(scale) / model.layers() as f64;
        let model = &mut self.models[draft.0];
        let prompt = model.prompt_time(rows)?.scaled(scale) + last_layer;
        let per_token = match model.steps.estimate(1) {
            Some(measured) => measured,
            None => model.step_predicted(context)? * scale,
        };
        let (cost, tokens_max) = (DraftCost { per_token, ..cost }, sequence.entry.tokens_max());
        let verify = move |rows: usize| steps.estimate(rows);
        Some(Prospect { tokens_max, prompt, others, cost, verify, is_shown })
    }
}
