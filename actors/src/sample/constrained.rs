//! The constraint of a sampler, and the mask of its next token.

use std::sync::Arc;

use lapwing_kernels::sync::{Mutex, lock};

use super::constraint::{
    Accepted, Constraint, ConstraintError, MaskWorker, PendingMask, TokenMask,
};

/// A constraint, which may be away while its mask is computed.
#[derive(Debug)]
pub(super) struct Constrained {
    state: Mutex<State>,
    worker: Option<Arc<dyn MaskWorker>>,
    /// It constrains drafts, which need not follow it.
    of_drafts: bool,
}

#[derive(Debug)]
enum State {
    Here {
        constraint: Box<dyn Constraint>,
        /// The mask of the next token, if it is computed.
        mask: Option<TokenMask>,
    },
    /// The mask of the next token is being computed.
    Away(Box<dyn PendingMask>),
    /// It cannot go on.
    Failed(ConstraintError),
}

impl State {
    /// Waits for the mask if it is being computed.
    fn settle(&mut self) {
        if let State::Away(_) = self
            && let State::Away(pending) = self.take()
        {
            *self = match pending.wait() {
                Ok((constraint, mask)) => State::Here { constraint, mask: Some(mask) },
                Err(error) => State::Failed(error),
            };
        }
    }

    fn take(&mut self) -> State {
        let reason = "its state was lost".to_owned();
        std::mem::replace(self, State::Failed(ConstraintError { reason }))
    }
}

impl Constrained {
    pub(super) fn new(
        constraint: Box<dyn Constraint>,
        worker: Option<Arc<dyn MaskWorker>>,
    ) -> Constrained {
        let state = Mutex::new(State::Here { constraint, mask: None });
        Constrained { state, worker, of_drafts: false }
    }

    /// A constraint of drafts, in the same state. `None` if it cannot go on.
    pub(super) fn fork(&self) -> Option<Constrained> {
        let mut state = lock(&self.state);
        state.settle();
        let State::Here { constraint, mask } = &*state else { return None };
        let state = State::Here { constraint: constraint.fork(), mask: mask.clone() };
        Some(Constrained { state: Mutex::new(state), worker: None, of_drafts: true })
    }

    /// Whether it constrains drafts, which need not follow it.
    pub(super) fn is_of_drafts(&self) -> bool {
        self.of_drafts
    }

    /// Starts computing the mask of the next token, if there is someone to do so.
    pub(super) fn prepare(&mut self) {
        let Some(worker) = &self.worker else { return };
        let mut state = lock(&self.state);
        if matches!(*state, State::Here { mask: None, .. })
            && let State::Here { constraint, .. } = state.take()
        {
            *state = State::Away(worker.start(constraint));
        }
    }

    /// The mask of the next token: waits for it if it is being computed, and computes it if it is not.
    pub(super) fn mask(&mut self) -> Result<TokenMask, ConstraintError> {
        let mut state = lock(&self.state);
        state.settle();
        let result = match &mut *state {
            State::Here { constraint, mask } => match mask.take() {
                Some(mask) => Ok(mask),
                None => constraint.allowed(),
            },
            State::Away(_) => return Err(ConstraintError { reason: "its mask is missing".into() }),
            State::Failed(error) => Err(error.clone()),
        };
        if let Err(error) = &result {
            *state = State::Failed(error.clone());
        }
        result
    }

    /// Appends a token that its mask allows.
    pub(super) fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError> {
        let mut state = lock(&self.state);
        state.settle();
        let result = match &mut *state {
            State::Here { constraint, mask } => {
                *mask = None;
                constraint.accept(id)
            }
            State::Away(_) => return Err(ConstraintError { reason: "its mask is missing".into() }),
            State::Failed(error) => Err(error.clone()),
        };
        if let Err(error) = &result {
            *state = State::Failed(error.clone());
        }
        result
    }
}
