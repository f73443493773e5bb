//! Requests to an engine in virtual time, and what becomes of them.

use std::sync::Arc;

use lapwing_kernels::device::ModelId;
use lapwing_traces::{Nanos, RequestTimes};

use super::virtual_engine::Moment;
use crate::draft::{DRAFT_MAX, DraftForm, DraftStats, Drafter, Drafts, Schedule};
use crate::error::RunError;
use crate::message::{Generate, Sink, Submit, Task};
use crate::policy::{ClientId, Urgency};
use crate::prefix::PrefixUse;
use crate::sample::{Sampler, SamplingParams};
use crate::sequence::AdmissionPermit;

/// A request to an engine in virtual time.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Virtual time of its arrival, at the earliest.
    pub at: Nanos,
    /// Numbers of the requests, all of which have ended when it arrives.
    pub after: Vec<usize>,
    /// The model that it is for.
    pub model: ModelId,
    /// Client that sends it.
    pub client: ClientId,
    /// How urgent it is.
    pub urgency: Urgency,
    /// Token ids of the prompt; equal ids are equal rows.
    pub ids: Vec<u32>,
    /// Tokens to generate.
    pub tokens: usize,
    /// Who drafts for it; `None` without drafts.
    pub drafting: Option<Drafting>,
    /// Virtual time at which its caller cancels it.
    pub cancel: Option<Nanos>,
}

impl Arrival {
    /// A request to the first model, without drafts, that waits for no other one and whose caller does not cancel it.
    pub fn new(at: Nanos, ids: Vec<u32>, tokens: usize) -> Arrival {
        let (client, urgency) = (ClientId::anonymous(), Urgency::default());
        let (after, model) = (Vec::new(), ModelId::default());
        Arrival { at, after, model, client, urgency, ids, tokens, drafting: None, cancel: None }
    }

    /// The message to the scheduler.
    pub(super) fn submit(self, sink: Arc<dyn Sink>, admission: AdmissionPermit) -> Submit {
        let generate = Generate {
            sampler: Sampler::new(SamplingParams::greedy(), &[]),
            stop_ids: [].into(),
            tokens_max: self.tokens,
            drafts: self.drafting.map(|drafting| Box::new(drafting.drafts())),
        };
        Submit {
            model: self.model,
            ids: self.ids,
            task: Task::Generate(Box::new(generate)),
            client: self.client,
            urgency: self.urgency,
            prefix: PrefixUse::default(),
            sink,
            admission,
            trace: tracing::Span::none(),
        }
    }
}

/// Who drafts for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drafting {
    /// So many tokens 0 in each step. Models that always yield token 0 accept them all.
    Zeros(usize),
    /// The engine's second model.
    Model {
        /// When it drafts.
        schedule: Schedule,
        /// Drafted tokens of a step; `None`: as many as pay.
        length: Option<usize>,
        /// How its drafts depart from their usual form.
        form: DraftForm,
    },
}

impl Drafting {
    /// Most drafted tokens of a step that are not those of a request's text.
    pub(super) fn tokens_max(self) -> usize {
        match self {
            Drafting::Zeros(_) => DRAFT_MAX,
            Drafting::Model { form, .. } => form.tokens_max(),
        }
    }

    fn drafts(self) -> Drafts {
        match self {
            Drafting::Zeros(count) => Drafts::new(Box::new(Zeros(count))).always(count),
            Drafting::Model { schedule, length, form } => {
                let drafts = Drafts::of_model(ModelId(1), schedule).form(form);
                match length {
                    None => drafts,
                    Some(length) => drafts.always(length),
                }
            }
        }
    }
}

/// Proposes that many tokens 0.
#[derive(Clone, Copy, Debug)]
struct Zeros(usize);

impl Drafter for Zeros {
    fn draft(&mut self, _ids: &[u32], most: usize) -> Vec<u32> {
        vec![0; self.0.min(most)]
    }
}

/// What became of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// When it arrived.
    pub arrived: Nanos,
    /// Times of its tokens.
    pub tokens: Vec<Nanos>,
    /// Ids of its tokens.
    pub ids: Vec<u32>,
    /// Moment of the first token.
    pub first: Option<Moment>,
    /// Moment of the latest token.
    pub last: Option<Moment>,
    /// Times of its milestones, once it has all tokens.
    pub times: Option<RequestTimes>,
    /// What its drafts did.
    pub drafts: Option<DraftStats>,
    /// Why it has no more tokens, if it failed.
    pub failed: Option<Failed>,
}

/// The failure of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// Virtual time.
    pub at: Nanos,
    /// Why.
    pub error: RunError,
}
