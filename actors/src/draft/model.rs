//! Drafts by another model of the engine.

use std::str::FromStr;

use lapwing_kernels::device::ModelId;

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

/// The state of a target's drafts by a model.
#[derive(Clone, Debug)]
pub(crate) struct ModelDrafts {
    pub(crate) model: ModelId,
    pub(crate) schedule: Schedule,
    /// Whether its rows are given the hidden states of the target's.
    pub(crate) is_given: bool,
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
            is_given: false,
            sequences: 0,
            wait: Wait::Nothing,
            fitting: usize::MAX,
            length: 0,
            fresh: false,
            stopped: None,
        }
    }

    /// The number of tokens that are wanted; 0 if none pays.
    pub(crate) fn wanted(&self) -> usize {
        match self.wait {
            Wait::Nothing => 0,
            Wait::Tokens(count) | Wait::Missed(count) => count,
        }
    }
}
