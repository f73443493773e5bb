//! Drafts: tokens proposed to follow a sequence, and verified by the model in one pass.
//!
//! A decode step computes the row of the latest token and a row per drafted token. Each row's logits give
//! the token that the model itself chooses there. Drafted tokens are accepted as long as they equal the
//! chosen ones, so the output has the same tokens as without a draft, greedy or sampled with the same
//! seed. Rows of rejected tokens are rolled back.
//!
//! A draft may be a tree. Each row then sees the keys of the tokens before it on its own path, and a step follows the
//! branch that has the tokens that the model chooses.
//!
//! How many of the proposed tokens a step verifies follows from the acceptance so far and from the measured
//! times of steps: as many as give the most tokens per second, and none where a draft does not pay.

use std::fmt;

use lapwing_kernels::device::ModelId;

use crate::sample::Sampled;

mod acceptance;
mod best;
mod cost;
mod length;
mod lookup;
mod model;
mod payoff;
mod registry;
mod stats;
mod suffix;
mod tree;
mod trials;
mod union;

pub use acceptance::ASSUMED_ACCEPTANCE;
pub(crate) use acceptance::UsualAcceptance;
pub use best::{BestLength, GAIN_MIN, best_length};
pub(crate) use best::{best_count, chain};
pub use cost::DraftCost;
pub(crate) use length::DraftLength;
pub use lookup::{LOOKUP, PromptLookup};
pub use model::{DRAFT_MAX_OPEN, DraftForm, Schedule, UnknownSchedule};
pub(crate) use model::{ModelDrafts, Wait};
pub(crate) use payoff::{Payoff, Prospect};
pub use registry::{DrafterEntry, MakeDrafter, by_name, known};
pub use stats::DraftStats;
pub(crate) use stats::VerifiedDraft;
pub use suffix::{RecentText, SUFFIX, SuffixDrafter};
pub use tree::DraftTree;
pub(crate) use tree::{Followed, TreeRows};
pub use union::{DrafterUnion, LOOKUP_AND_SUFFIX};

/// Proposes the tokens after a sequence.
pub trait Drafter: Send + Sync + fmt::Debug {
    /// Proposes at most `most` tokens that may follow `ids` (prompt and generated tokens). Called after
    /// each decode step on the scheduler's thread, so it must be fast. An empty proposal means a step
    /// without a draft. A proposal ends before the first id outside the vocabulary.
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32>;

    /// Proposes continuations of at most `most` tokens each. As [`draft`](Drafter::draft), which is the only one
    /// unless a drafter has others.
    fn draft_tree(&mut self, ids: &[u32], most: usize) -> DraftTree {
        DraftTree::from(self.draft(ids, most))
    }
}

/// Most drafted tokens of a step whose number is chosen by what pays.
pub const DRAFT_MAX: usize = 15;

/// Least probability with which a draft model's alternative is verified.
pub const ALTERNATIVE_MIN: f32 = 0.1;

/// The drafts of one request: their source, the control of their length, and the counts.
#[derive(Debug)]
pub struct Drafts {
    pub(crate) source: Source,
    pub(crate) length: DraftLength,
    /// Most tokens of a step if all that are proposed are verified, whether or not they pay.
    pub(crate) always: Option<usize>,
    /// Tokens of a draft model that are proposed at each position; 1 for a chain.
    pub(crate) width: usize,
    pub(crate) stats: DraftStats,
}

/// Where drafted tokens come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A drafter, which answers at once.
    Drafter(Box<dyn Drafter>),
    /// A model of the engine, which runs on the engine's devices.
    Model(ModelDrafts),
}

impl Source {
    /// Whether it drafts while the target verifies.
    pub(crate) fn overlaps(&self) -> bool {
        matches!(self, Source::Model(model) if model.schedule == Schedule::Asynchronous)
    }

    /// Whether the target waits for drafts that are not there.
    pub(crate) fn waits(&self) -> bool {
        !matches!(self, Source::Model(model) if model.pre_verifies())
    }
}

impl Drafts {
    /// Verifies as many of the drafter's tokens as pay, at most [`DRAFT_MAX`] in a step.
    pub fn new(drafter: Box<dyn Drafter>) -> Drafts {
        Drafts::of(Source::Drafter(drafter))
    }

    /// Drafts by another model of the engine with the same vocabulary. Its sequence runs beside that of the
    /// request.
    pub fn of_model(model: ModelId, schedule: Schedule) -> Drafts {
        Drafts::of(Source::Model(ModelDrafts::new(model, schedule)))
    }

    /// As [`of_model`](Drafts::of_model), by a model whose rows are given the hidden states of the target's: a layer of the target's
    /// file that predicts a further token.
    pub fn of_predictor(model: ModelId, schedule: Schedule) -> Drafts {
        let drafts = ModelDrafts::new(model, schedule);
        Drafts::of(Source::Model(ModelDrafts { is_given: true, ..drafts }))
    }

    /// Leaves the drafts of a request out where they are not expected to repay that its prompt goes through the draft model. It is for
    /// those of [`of_predictor`](Drafts::of_predictor).
    #[must_use]
    pub fn if_they_pay(mut self) -> Drafts {
        if let Source::Model(model) = &mut self.source {
            model.must_pay = true;
        }
        self
    }

    /// Verifies every proposed token, at most `most` in a step, whether or not they pay. A draft model drafts
    /// that many, at most [`DRAFT_MAX`].
    #[must_use]
    pub fn always(self, most: usize) -> Drafts {
        Drafts { always: Some(most), ..self }
    }

    /// Drafts by a model, in that form. Other drafters have none.
    #[must_use]
    pub fn form(mut self, form: DraftForm) -> Drafts {
        if let Source::Model(model) = &mut self.source {
            model.form = form;
        }
        self
    }

    /// Also verifies other tokens than those that a draft model chooses: at each position, the likeliest ones after
    /// it, `width` in all with the chosen one. Only those that the model gives a probability of at least
    /// [`ALTERNATIVE_MIN`].
    #[must_use]
    pub fn width(self, width: usize) -> Drafts {
        Drafts { width: width.max(1), ..self }
    }

    /// Most tokens of a step: the given number, or the most of its form.
    pub(crate) fn tokens_max(&self) -> usize {
        let of_form = self.model().map_or(DRAFT_MAX, |model| match model.is_open() {
            true => model.form.tokens_max(),
            false => DRAFT_MAX,
        });
        self.always.unwrap_or(of_form)
    }

    fn of(source: Source) -> Drafts {
        let stats = DraftStats::default();
        let mut length = DraftLength::default();
        length.may_pause = !source.overlaps();
        Drafts { source, length, always: None, width: 1, stats }
    }

    /// The draft model's state, if there is one.
    pub(crate) fn model(&self) -> Option<&ModelDrafts> {
        match &self.source {
            Source::Drafter(_) => None,
            Source::Model(model) => Some(model),
        }
    }

    /// As [`model`](Drafts::model).
    pub(crate) fn model_mut(&mut self) -> Option<&mut ModelDrafts> {
        match &mut self.source {
            Source::Drafter(_) => None,
            Source::Model(model) => Some(model),
        }
    }

    /// Counts a step and learns from its draft, if it had one.
    pub(crate) fn on_step(&mut self, step: &VerifiedDraft) {
        self.stats.count(step);
        if step.drafted > 0 {
            self.length.learn(step.followed);
        }
    }

    /// The most likely tokens that a draft model reports at each position, beside the one that it chooses; 0 for
    /// chains.
    pub(crate) fn alternatives(&self) -> usize {
        if self.width > 1 { self.width } else { 0 }
    }
}

/// The tokens of one decode step: the accepted draft tokens and one more.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTokens {
    /// The first token.
    pub first: Sampled,
    /// The tokens after it; none without a draft.
    pub more: Vec<Sampled>,
}

impl StepTokens {
    /// The tokens in order.
    pub fn iter(&self) -> impl Iterator<Item = &Sampled> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// The last token.
    pub fn last(&self) -> &Sampled {
        self.more.last().unwrap_or(&self.first)
    }
}
