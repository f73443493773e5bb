//! What only a sequence in speculative decoding has: a request that drafts, or the sequence of a draft model.

use std::sync::Arc;

use super::Sequence;
use super::branches::Branches;
use super::given::Given;
use super::passes::{Pass, PassRows};
use crate::draft::{DraftStats, Drafts};
use crate::handover::Handover;
use crate::message::HiddenRows;
use crate::sample::TokenLogprob;

/// The state of speculative decoding.
#[derive(Default)]
pub(super) struct Speculation {
    /// Proposed tokens after those of the sequence, which the next decode step verifies.
    pub(super) draft: Vec<u32>,
    /// The branches of the draft, if it is a tree; `draft` is then its longest path.
    pub(super) branches: Option<Box<Branches>>,
    /// What a draft model's sequence reports beside the tokens that it chose: the position of each, and the most
    /// likely tokens there.
    pub(super) alternatives: Vec<(usize, Vec<TokenLogprob>)>,
    /// The sequence of a draft model drafts until it has this many tokens; `None` for a request.
    pub(super) drafts_to: Option<usize>,
    /// Whether a draft model's sequence computes one row at a time, once it has the target's first tokens.
    pub(super) single_rows: bool,
    /// First tokens of a draft model's sequence that are known to be those of its target.
    pub(super) agreed: usize,
    /// Whether a draft model's sampling state is not yet that of its target.
    pub(super) stale_sampler: bool,
    /// Passes in flight, and of a draft model also those whose tokens are not verified yet.
    pub(super) passes: Vec<Pass>,
    pub(super) pass_rows: PassRows,
    /// The link through which the next chunk gets the sampling state from the one in flight.
    pub(super) before: Option<Arc<Handover>>,
    /// The link from the chunk that is being cut to the next one.
    pub(super) next_pass: Option<Arc<Handover>>,
    /// Hidden states of a request that its predictor has not taken yet, in the order of their rows.
    pub(super) hidden: Vec<HiddenRows>,
    /// What the rows of a predictor are given.
    pub(super) given: Option<Given>,
    /// Makes the drafts of a request.
    pub(super) drafts: Option<Box<Drafts>>,
}

impl Speculation {
    /// That of a request.
    pub(super) fn of_request(drafts: Box<Drafts>) -> Box<Speculation> {
        Box::new(Speculation { drafts: Some(drafts), ..Speculation::default() })
    }

    /// That of a draft model's sequence, which has the target's first tokens.
    pub(super) fn of_companion(
        tokens: usize,
        single_rows: bool,
        given: Option<Given>,
    ) -> Box<Speculation> {
        let (drafts_to, agreed) = (Some(tokens), tokens);
        Box::new(Speculation { drafts_to, single_rows, agreed, given, ..Speculation::default() })
    }

    /// For a chunk that chooses tokens: its link with the chunk in flight, and the one with the next chunk.
    pub(super) fn link_passes(&mut self) -> (Option<Arc<Handover>>, Option<Arc<Handover>>) {
        let overlaps = self.drafts.as_ref().is_some_and(|drafts| drafts.source.overlaps());
        let next = overlaps.then(Arc::default);
        self.next_pass.clone_from(&next);
        (self.before.take(), next)
    }
}

impl Sequence {
    /// The draft; empty without one.
    pub(super) fn draft(&self) -> &[u32] {
        self.speculation.as_ref().map_or(&[], |speculation| &speculation.draft)
    }

    /// What makes its drafts, if it is a request that drafts.
    pub(in super::super) fn drafts(&self) -> Option<&Drafts> {
        self.speculation.as_ref()?.drafts.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn drafts_mut(&mut self) -> Option<&mut Drafts> {
        self.speculation.as_mut()?.drafts.as_deref_mut()
    }

    /// The number of tokens until which the sequence of a draft model drafts; `None` for a request.
    pub(super) fn drafts_to(&self) -> Option<usize> {
        self.speculation.as_ref()?.drafts_to
    }

    /// First tokens of a draft model's sequence that are known to be those of its target.
    pub(super) fn agreed(&self) -> usize {
        self.speculation.as_ref().map_or(0, |speculation| speculation.agreed)
    }

    /// Its passes that are on record.
    pub(super) fn passes(&self) -> &[Pass] {
        self.speculation.as_ref().map_or(&[], |speculation| &speculation.passes)
    }

    /// What its drafts did; `None` without speculative decoding.
    pub(in super::super) fn draft_stats(&mut self) -> Option<DraftStats> {
        let speculation = self.speculation.as_mut()?;
        let mut drafts = speculation.drafts.take()?;
        let stopped = drafts.model_mut().and_then(|model| model.stopped.take());
        let wasted = speculation.pass_rows.wasted;
        Some(DraftStats { stopped, wasted, ..drafts.stats })
    }
}
