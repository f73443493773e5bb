//! Grammars of requests.

use std::sync::Arc;

use lapwing_actors::drive::masks::MaskThreads;
use lapwing_actors::sample::{Constraint, Sampler};
use lapwing_traces::Recorder;

use super::Engine;
use crate::chat::{AnswerStart, ChatTemplate};
use crate::error::Error;
use crate::request::{Prompt, Request, Thoughts};
use crate::structured::{Followed, GrammarError, Grammars, ThoughtTokens, ThoughtsFirst};
use crate::tokenizer::Tokenizer;

/// Threads that compute masks beside the passes.
const MASK_THREADS: usize = 2;

/// What an engine needs for grammars.
#[derive(Debug)]
pub(super) struct Structured {
    grammars: Grammars,
    masks: Arc<MaskThreads>,
    /// The tags of the model's thoughts, if it has any.
    thoughts: Option<Arc<ThoughtTokens>>,
}

impl Structured {
    pub(super) fn new(
        tokenizer: &Tokenizer,
        template: Option<&ChatTemplate>,
        recorder: &Recorder,
    ) -> Structured {
        let masks = Arc::new(MaskThreads::new(MASK_THREADS, recorder));
        let tags = template.and_then(ChatTemplate::thought_tags);
        let thoughts = tags.and_then(|tags| ThoughtTokens::new(tags, tokenizer)).map(Arc::new);
        Structured { grammars: Grammars::new(tokenizer.clone()), masks, thoughts }
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

/// What holds for the answer to a request.
pub(super) struct Held {
    /// The constraint, if it has one.
    pub(super) constraint: Option<Box<dyn Constraint>>,
    /// Keywords of its schemas that have no effect.
    pub(super) ignored: Arc<[String]>,
}

impl Engine {
    /// The constraint of a request for at most `tokens_max` tokens whose answer begins at `start`, if it has a grammar
    /// or its thoughts have an end.
    pub(super) fn constraint(
        &self,
        request: &Request,
        start: AnswerStart,
        tokens_max: usize,
    ) -> Result<Held, Error> {
        let structured = &self.inner.structured;
        let (answer, ignored) = match &request.grammar {
            Some(_) if request.ignore_eos => return Err(GrammarError::IgnoresEnds.into()),
            Some(grammar) => {
                let Followed { constraint, ignored } = structured.grammars.constraint(grammar)?;
                (Some(constraint), ignored)
            }
            None => (None, Arc::default()),
        };
        let (Thoughts::First { tokens_max: asked }, Some(tokens), Prompt::Chat(_)) =
            (request.thoughts, &structured.thoughts, &request.prompt)
        else {
            return Ok(Held { constraint: answer, ignored });
        };
        let most = match &answer {
            Some(_) => {
                let half = (tokens_max / 2).saturating_sub(tokens.close_tokens());
                Some(asked.map_or(half, |asked| asked.min(half)))
            }
            None => asked,
        };
        if answer.is_none() && most.is_none() {
            return Ok(Held { constraint: None, ignored });
        }
        let first = ThoughtsFirst::new(Arc::clone(tokens), answer, start, most);
        Ok(Held { constraint: Some(Box::new(first)), ignored })
    }
}
