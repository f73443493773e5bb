//! Drafts by another model of the engine.

use std::str::FromStr;

use lapwing_kernels::device::ModelId;

use super::DRAFT_MAX;

/// When a draft model drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// It drafts while the target waits, and waits while the target verifies. Suited to models that share a
    /// processor.
    #[default]
    Synchronous,
    /// It also drafts while the target verifies: beyond the draft in flight, on the assumption that all of it is
    /// accepted. A rejection makes what it computes stale. If tokens are there when the target has a result, the
    /// target verifies them at once. Suited to models on different processors (AMUSD, McDanel, 2024; post-verify
    /// of PEARL, Liu et al., 2024).
    Asynchronous,
}

impl Schedule {
    /// Both schedules.
    pub const ALL: [Schedule; 2] = [Schedule::Synchronous, Schedule::Asynchronous];

    /// `sync` or `async`.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Synchronous => "sync",
            Schedule::Asynchronous => "async",
        }
    }
}

/// There is no schedule of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown schedule '{name}' of a draft model (expected sync or async)")]
pub struct UnknownSchedule {
    /// The name.
    pub name: String,
}

impl FromStr for Schedule {
    type Err = UnknownSchedule;

    fn from_str(name: &str) -> Result<Schedule, UnknownSchedule> {
        let known = Schedule::ALL.into_iter().find(|schedule| schedule.name() == name);
        known.ok_or_else(|| UnknownSchedule { name: name.to_owned() })
    }
}

/// How drafts by a model depart from their usual form; by default, not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DraftForm {
    /// With [`Schedule::Synchronous`], the last token of a draft that was accepted completely has a pass of the draft model of
    /// its own, as in published decoders. Otherwise it is a row of the pass that drafts next. It only costs time.
    pub bonus_pass: bool,
    /// With [`Schedule::Asynchronous`], the target waits for no draft: where none is there, as after a rejection, it computes a
    /// pass without one, which checks the first token of the draft that is made meanwhile (pre-verify of PEARL, Liu et al.,
    /// 2024). For models that do not share a memory's bandwidth.
    pub pre_verify: bool,
    /// With [`Schedule::Asynchronous`], no length is chosen: as many tokens as are there are verified, at most
    /// [`DRAFT_MAX_OPEN`], whether or not they pay, and where none is there the target waits for one (post-verify of PEARL).
    pub post_verify: bool,
}

/// Most drafted tokens of a step of which no length is chosen.
pub const DRAFT_MAX_OPEN: usize = 63;

impl DraftForm {
    /// Most drafted tokens of a step.
    pub fn tokens_max(self) -> usize {
        if self.post_verify { DRAFT_MAX_OPEN } else { DRAFT_MAX }
    }
}

/// The state of a target's drafts by a model.
#[derive(Clone, Debug)]
pub(crate) struct ModelDrafts {
    pub(crate) model: ModelId,
    pub(crate) schedule: Schedule,
    pub(crate) form: DraftForm,
    /// Whether its rows are given the hidden states of the target's.
    pub(crate) is_given: bool,
    /// Whether it is still to be decided that the request drafts: only if that pays.
    pub(crate) must_pay: bool,
    /// Sequences of the draft model so far.
    pub(crate) sequences: u64,
    /// What the target waits for.
    pub(crate) wait: Wait,
    /// The number of tokens that were wanted last.
    pub(crate) length: usize,
    /// Most tokens that a step may verify so that streams have theirs in time.
    pub(crate) fitting: usize,
    /// Whether the target has just got a result, so that tokens that are there are verified at once.
    pub(crate) fresh: bool,
    /// The position of a token that the target computes while it is drafted as the first one of a draft.
    pub(crate) checks_first: Option<usize>,
    /// Why no more drafts are made, if that is so.
    pub(crate) stopped: Option<String>,
}

/// What a target that has a token to decode waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: the next step has no draft, or has it already.
    Nothing,
    /// Up to this many drafted tokens.
    Tokens(usize),
    /// This many drafted tokens were wanted, but the draft model was too far behind, so that the step has none.
    Missed(usize),
}

impl ModelDrafts {
    pub(super) fn new(model: ModelId, schedule: Schedule) -> ModelDrafts {
        ModelDrafts {
            model,
            schedule,
            form: DraftForm::default(),
            is_given: false,
            must_pay: false,
            sequences: 0,
            wait: Wait::Nothing,
            fitting: usize::MAX,
            length: 0,
            fresh: false,
            checks_first: None,
            stopped: None,
        }
    }

    /// Whether the target computes a pass without a draft where none is there.
    pub(crate) fn pre_verifies(&self) -> bool {
        self.form.pre_verify && self.schedule == Schedule::Asynchronous
    }

    /// Whether a draft has as many tokens as are there.
    pub(crate) fn is_open(&self) -> bool {
        self.form.post_verify && self.schedule == Schedule::Asynchronous
    }

    /// Whether the draft model computes one row at a time.
    pub(crate) fn has_bonus_passes(&self) -> bool {
        self.form.bonus_pass && self.schedule == Schedule::Synchronous
    }

    /// The number of tokens that are wanted; 0 if none pays.
    pub(crate) fn wanted(&self) -> usize {
        match self.wait {
            Wait::Nothing => 0,
            Wait::Tokens(count) | Wait::Missed(count) => count,
        }
    }
}
