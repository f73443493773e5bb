//! The models of an engine. Each has its own planner, KV cache and limits.

use std::cell::OnceCell;
use std::sync::Arc;

use lapwing_kernels::device::ModelId;
use lapwing_kernels::graph::{Graph, Node, RowSet};
use lapwing_plan::moment::Candidate;
use lapwing_plan::needs::Needs;
use lapwing_plan::planner::Planner;
use lapwing_plan::strategy::{ChunkShape, PromptRows};
use lapwing_plan::{Phase, PlanError, Route, Stage, StagePart};
use lapwing_traces::Nanos;

use super::chunk_times::Corrections;
use super::parts::KvPages;
use super::rows::PlannedBy;
use super::step_times::{DecodeChunk, StepTimes};
use crate::chunk::Chunk;
use crate::draft::{Payoff, UsualAcceptance};
use crate::prefix::PrefixCache;

/// A model that an engine runs.
pub struct SchedulerModel {
    /// Chooses routes and chunk sizes.
    pub planner: Planner,
    /// Pages of the KV cache.
    pub kv: KvPages,
    /// Maximum tokens of a sequence, prompt included.
    pub context: usize,
    /// Vocabulary size; ids from here on are refused.
    pub vocab: usize,
}

/// The values that a chunk's route ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Logits, to sample or to score.
    Logits,
    /// Hidden states after the final norm, for embeddings.
    Hidden,
}

/// The sequences whose rows may share a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkKind {
    pub(super) model: ModelId,
    pub(super) output: Output,
}

/// A model, and its decode chunk.
pub(super) struct Model {
    planner: Planner,
    /// Plans chunks that end with hidden states. Made when the first one is due.
    hidden: OnceCell<Planner>,
    pub(super) kv: KvPages,
    /// `None` if its requests share no pages.
    pub(super) prefixes: Option<PrefixCache>,
    pub(super) context: usize,
    pub(super) vocab: usize,
    /// Whether rows see later ones: the model makes embeddings only, each text is computed in one chunk, and no
    /// rows are shared.
    pub(super) is_encoder: bool,
    /// Whether layers keep a state of a sequence: others go on only where it is kept, and it drafts for no other model.
    pub(super) has_state: bool,
    /// Number of devices that compute its chunks.
    pub(super) lanes: usize,
    /// The chunks in flight that hold decode rows. There is at most one per model, so that all sequences that decode
    /// stay in one batch; and as many as devices compute them if sequences get out of step.
    pub(super) decoding: Vec<DecodeChunk>,
    /// Number of requests that generate, if one of them drafts by a model.
    pub(super) staggered: Option<usize>,
    /// Times of decode steps.
    pub(super) steps: StepTimes,
    /// How often the model's tokens are accepted, if it drafts for another one.
    pub(super) usual_acceptance: UsualAcceptance,
    /// Which requests it drafts for, of those that draft only if it pays.
    pub(super) payoff: Payoff,
    /// The first node that computes rows which are passed on to another model.
    first_passed: Option<usize>,
    /// Times of chunks with prompt rows, beside those of the cost model: of the strategy's routes, and of those for chunks
    /// whose graphs are not ready.
    pub(super) corrections: [Corrections; 2],
    /// Numbers of the latest chunks, by output.
    latest: [Latest; 2],
}

/// Numbers of the latest chunks that were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// With prompt rows.
    pub(super) prompts: u64,
    /// With decode rows.
    pub(super) decodes: u64,
}

/// How many devices the routes of some shapes use.
fn lanes(shapes: &[Arc<[Candidate]>]) -> usize {
    let all = || shapes.iter().flat_map(|candidates| candidates.iter());
    let devices = all().map(|candidate| candidate.lanes.len()).max().unwrap_or(0);
    let is_used = |device: &usize| {
        let mut lanes = all().filter_map(|candidate| candidate.lanes.get(*device));
        lanes.any(|lane| !lane.time.is_zero())
    };
    (0..devices).filter(is_used).count().max(1)
}

/// The first node that computes rows which are passed on to another model.
fn first_passed(graph: &Graph) -> Option<usize> {
    let is_passed = |node: &Node| graph.value(node.output).rows == RowSet::Passed;
    graph.nodes().iter().position(is_passed)
}

impl Model {
    /// A model, if its strategy has a route for a whole chunk and for a decode step.
    pub(super) fn new(model: SchedulerModel) -> Result<Model, PlanError> {
        let SchedulerModel { mut planner, kv, context, vocab } = model;
        let rows = planner.chunk_rows(PromptRows::new(context));
        let (phase, prompt) = (Phase::Prefill, context);
        let chunk = ChunkShape { phase, rows, selected: 1, context: 0, prompt };
        let step = ChunkShape { phase: Phase::Decode, rows: 1, context: rows, prompt: 0, ..chunk };
        let lanes = lanes(&[planner.candidates(chunk)?, planner.candidates(step)?]);
        if let Some(meanwhile) = planner.meanwhile_mut() {
            let rows = meanwhile.chunk_rows(PromptRows::new(context));
            meanwhile.route(ChunkShape { rows, ..chunk })?;
            meanwhile.route(step)?;
        }
        let (hidden, steps) = (OnceCell::new(), StepTimes::default());
        let (prefixes, decoding) = (None, Vec::new());
        let is_encoder = planner.graph().is_encoder();
        let has_state = planner.graph().has_state();
        let first_passed = first_passed(planner.graph());
        Ok(Model {
            planner,
            hidden,
            kv,
            prefixes,
            context,
            vocab,
            is_encoder,
            has_state,
            lanes,
            decoding,
            staggered: None,
            steps,
            usual_acceptance: UsualAcceptance::default(),
            payoff: Payoff::default(),
            first_passed,
            corrections: Default::default(),
            latest: Default::default(),
        })
    }

    /// Whether all rows of a chunk with that route go on to where hidden states are passed on. If none `is_wanted`, only where devices
    /// divide them, or have graphs for so many.
    pub(super) fn passes_on(&self, route: &Route, is_wanted: bool) -> bool {
        let Some(first) = self.first_passed else { return false };
        let divides = |stage: &Stage| {
            let by_rows = |of: &StagePart| of.part.rows.is_some() || !of.part.graphs.is_empty();
            stage.nodes.end > first && stage.parts.iter().any(by_rows)
        };
        is_wanted || route.stages.iter().any(divides)
    }

    /// Records the end of a chunk of any model. Its decode step, if it was one, is timed.
    pub(super) fn on_chunk_ended(&mut self, chunk: u64, now: Nanos) {
        let Some(at) = self.decoding.iter().position(|step| step.id == chunk) else { return };
        let step = self.decoding.remove(at);
        let time = now.0.saturating_sub(step.since.0);
        if step.timed && time > 0 {
            self.steps.record(step.rows, time as f64);
        }
    }

    /// Plans the chunks with that output.
    pub(super) fn planner(&self, output: Output) -> &Planner {
        match output {
            Output::Logits => &self.planner,
            Output::Hidden => self.hidden.get_or_init(|| self.planner.hidden()),
        }
    }

    /// Chooses the size of chunks with that output. `None` if there is no strategy for the meantime.
    pub(super) fn planner_by(&self, output: Output, by: PlannedBy) -> Option<&Planner> {
        match by {
            PlannedBy::Strategy => Some(self.planner(output)),
            PlannedBy::Meanwhile => self.planner(output).meanwhile(),
        }
    }

    /// The routes that a chunk may take, first the one for a chunk alone.
    pub(super) fn candidates(
        &mut self,
        output: Output,
        by: PlannedBy,
        shape: ChunkShape,
    ) -> Result<Arc<[Candidate]>, PlanError> {
        self.with_planner(output, |planner| match (by, planner.meanwhile_mut()) {
            (PlannedBy::Meanwhile, Some(meanwhile)) => meanwhile.candidates(shape),
            _ => planner.candidates(shape),
        })
    }

    /// Predicted time of a chunk alone, in ns.
    pub(super) fn time(&mut self, output: Output, by: PlannedBy, shape: ChunkShape) -> Option<f64> {
        self.with_planner(output, |planner| match by {
            PlannedBy::Strategy => planner.time(shape),
            PlannedBy::Meanwhile => planner.meanwhile_mut()?.time(shape),
        })
    }

    /// What a chunk with that route needs of each device; `None` with one device.
    pub(super) fn needs(&mut self, chunk: &Chunk) -> Option<Arc<Needs>> {
        let end = chunk.route.compute_stages().last()?.nodes.end;
        let has_logits = end == self.planner.graph().nodes().len();
        let output = if has_logits { Output::Logits } else { Output::Hidden };
        self.with_planner(output, |planner| planner.needs(chunk.batch()))
    }

    /// Numbers of the latest chunks of that output.
    pub(super) fn latest(&self, output: Output) -> Latest {
        self.latest[output as usize]
    }

    /// The same, to record one that is sent.
    pub(super) fn latest_mut(&mut self, output: Output) -> &mut Latest {
        &mut self.latest[output as usize]
    }

    fn with_planner<T>(&mut self, output: Output, run: impl FnOnce(&mut Planner) -> T) -> T {
        if output == Output::Logits {
            return run(&mut self.planner);
        }
        let mut planner = self.hidden.take().unwrap_or_else(|| self.planner.hidden());
        let result = run(&mut planner);
        self.hidden = OnceCell::from(planner);
        result
    }
}
