//! Grammars of requests.

use std::sync::Arc;

use lapwing_actors::drive::masks::MaskThreads;
use lapwing_actors::sample::{Constraint, Sampler};
use lapwing_traces::Recorder;

use super::Engine;
use crate::error::Error;
use crate::request::Request;
use crate::structured::{GrammarError, Grammars};
use crate::tokenizer::Tokenizer;

/// Threads that compute masks beside the passes.
const MASK_THREADS: usize = 2;

/// What an engine needs for grammars.
#[derive(Debug)]
pub(super) struct Structured {
    grammars: Grammars,
    masks: Arc<MaskThreads>,
}

impl Structured {
    pub(super) fn new(tokenizer: &Tokenizer, recorder: &Recorder) -> Structured {
        let masks = Arc::new(MaskThreads::new(MASK_THREADS, recorder));
        Structured { grammars: Grammars::new(tokenizer.clone()), masks }
    }

    /// A sampler that follows a constraint, if there is one.
    pub(super) fn constrained(
        &self,
        sampler: Sampler,
        constraint: Option<Box<dyn Constraint>>,
    ) -> Sampler {
        let Some(constraint) = constraint else { return sampler };
        let mut sampler = sampler.with_constraint(constraint, Some(self.masks.clone()));
        // The mask of the first token is computed while the prompt is.
        sampler.prepare();
        sampler
    }
}

impl Engine {
    /// The constraint of a request, if it has a grammar.
    pub(super) fn constraint(
        &self,
        request: &Request,
    ) -> Result<Option<Box<dyn Constraint>>, Error> {
        let Some(grammar) = &request.grammar else { return Ok(None) };
        if request.ignore_eos {
            return Err(GrammarError::IgnoresEnds.into());
        }
        Ok(Some(self.inner.structured.grammars.constraint(grammar)?))
    }
}
