//! Which requests are refused when they arrive.

use super::models::Model;
use super::state::Scheduler;
use crate::error::RunError;
use crate::message::{Submit, Task};

impl Scheduler {
    /// Checks that the engine takes a request, and that its model can compute it.
    pub(super) fn check(&self, submit: &Submit) -> Result<(), RunError> {
        if let Some(error) = &self.dead {
            return Err(error.clone());
        }
        if self.ending.is_some() {
            return Err(RunError::ShuttingDown);
        }
        let Some(model) = self.models.get(submit.model.0) else {
            let (model, models) = (submit.model.0, self.models.len());
            return Err(RunError::UnknownModel { model, models });
        };
        self.check_task(model, &submit.task)?;
        let (tokens, context) = (submit.ids.len(), model.context);
        let room = match submit.task {
            Task::Generate(_) => tokens < context,
            Task::Score { .. } | Task::Embed { .. } => tokens <= context,
        };
        if tokens == 0 {
            return Err(RunError::EmptyPrompt);
        }
        if !room {
            return Err(RunError::PromptTooLong { tokens, context });
        }
        let vocab = model.vocab;
        match submit.ids.iter().find(|id| **id as usize >= vocab) {
            Some(id) => Err(RunError::TokenId { id: *id, vocab }),
            None => Ok(()),
        }
    }

    /// Checks that a model does a task, and that no model drafts whose layers have a state.
    fn check_task(&self, model: &Model, task: &Task) -> Result<(), RunError> {
        if model.is_encoder && !matches!(task, Task::Embed { .. }) {
            return Err(RunError::Encoder);
        }
        let Task::Generate(generate) = task else { return Ok(()) };
        let Some(drafts) = &generate.drafts else { return Ok(()) };
        let drafter = drafts.model().and_then(|it| self.models.get(it.model.0));
        match drafter.is_some_and(|drafter| drafter.has_state) {
            true => Err(RunError::Drafts),
            false => Ok(()),
        }
    }
}
