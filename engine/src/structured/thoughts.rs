//! Thoughts before an answer that follows a grammar.
//!
//! Inside of thoughts every token may come next. Once the tag is there that closes them, the grammar applies to what
//! follows. Thoughts that have had their number of tokens are closed by force: then only the tokens of the tag are
//! allowed.

use std::sync::{Arc, OnceLock};

use lapwing_actors::sample::{Accepted, Constraint, ConstraintError, TokenMask};

use crate::chat::{AnswerStart, ThoughtTags};
use crate::tokenizer::{Special, Tokenizer};

/// The tags of a model's thoughts as its tokens.
#[derive(Debug)]
pub(crate) struct ThoughtTokens {
    tokenizer: Tokenizer,
    /// Tokens of the tag that opens thoughts.
    open: Vec<u32>,
    /// Tokens of the tag that closes them.
    close: Vec<u32>,
    close_text: &'static [u8],
    every: TokenMask,
    /// Tokens that may end the tag and begin the answer at once.
    joining: OnceLock<Vec<Joining>>,
}

#[derive(Debug)]
struct Joining {
    id: u32,
    bytes: Vec<u8>,
}

impl ThoughtTokens {
    /// The tags in the vocabulary of a model; `None` if that cannot express them.
    pub(crate) fn new(tags: ThoughtTags, tokenizer: &Tokenizer) -> Option<ThoughtTokens> {
        let bytes = |ids: &[u32]| -> Vec<u8> {
            let bytes = ids.iter().filter_map(|id| tokenizer.token_bytes(*id));
            bytes.flat_map(|bytes| bytes.into_owned()).collect()
        };
        let ids = |text: &str| {
            let mut ids = tokenizer.encode(text, Special::Parse, false);
            // Encoding may add a space that is not in the tag.
            if ids.first().is_some_and(|id| bytes(&[*id]) == b" ") {
                ids.remove(0);
            }
            bytes(&ids).ends_with(text.as_bytes()).then_some(ids)
        };
        Some(ThoughtTokens {
            open: ids(tags.open.trim_end())?,
            close: ids(tags.close)?,
            close_text: tags.close.as_bytes(),
            every: (0..tokenizer.vocab_size() as u32).collect(),
            joining: OnceLock::new(),
            tokenizer: tokenizer.clone(),
        })
    }

    /// Number of tokens of the tag that closes thoughts.
    pub(crate) fn close_tokens(&self) -> usize {
        self.close.len()
    }

    /// Tokens that close the thoughts and go on with something else than white space.
    fn joining(&self) -> &[Joining] {
        self.joining.get_or_init(|| {
            let last = self.close_text.last();
            let joins = |bytes: &[u8]| {
                let at = bytes.iter().position(|byte| Some(byte) == last);
                at.is_some_and(|at| !bytes[at + 1..].trim_ascii().is_empty())
            };
            let ids = 0..self.tokenizer.vocab_size() as u32;
            let all = ids.filter_map(|id| {
                let bytes = self.tokenizer.token_bytes(id)?;
                joins(&bytes).then(|| Joining { id, bytes: bytes.into_owned() })
            });
            all.collect()
        })
    }

    /// What follows the tag in a text.
    fn after_close<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.close_text.len();
        let at = text.windows(length).position(|part| part == self.close_text)?;
        Some(&text[at + length..])
    }
}

/// Lets a model think, and then follows a constraint.
#[derive(Debug)]
pub(crate) struct ThoughtsFirst {
    tokens: Arc<ThoughtTokens>,
    /// What holds for the answer; `None` if nothing does.
    answer: Option<Box<dyn Constraint>>,
    phase: Phase,
    /// Tokens that the thoughts may still have.
    left: Option<usize>,
    /// The end of the thoughts so far, too short for the tag.
    tail: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// So many tokens of the tag that opens thoughts are there; they may be a part of the answer as well.
    Before {
        at: usize,
        may_be_answer: bool,
    },
    Inside,
    /// So many tokens of the tag that closes thoughts are there, by force.
    Closing {
        at: usize,
    },
    Answer,
}

impl ThoughtsFirst {
    /// The state at the start of an answer; `most` is the number of tokens that its thoughts may have.
    pub(crate) fn new(
        tokens: Arc<ThoughtTokens>,
        answer: Option<Box<dyn Constraint>>,
        start: AnswerStart,
        most: Option<usize>,
    ) -> ThoughtsFirst {
        let phase = match start {
            AnswerStart::Fresh => Phase::Before { at: 0, may_be_answer: true },
            AnswerStart::Thinking if most == Some(0) => Phase::Closing { at: 0 },
            AnswerStart::Thinking => Phase::Inside,
            AnswerStart::Thought | AnswerStart::Within => Phase::Answer,
        };
        ThoughtsFirst { tokens, answer, phase, left: most, tail: Vec::new() }
    }

    fn of_answer(&mut self) -> Result<TokenMask, ConstraintError> {
        match &mut self.answer {
            Some(answer) => answer.allowed(),
            None => Ok(self.tokens.every.clone()),
        }
    }

    /// The tokens that thoughts may have next.
    fn of_thoughts(&self) -> TokenMask {
        let mut mask = self.tokens.every.clone();
        if self.answer.is_none() {
            return mask;
        }
        // A grammar decides where the answer ends, and it begins with a token of its own.
        self.tokens.tokenizer.eos_ids().for_each(|id| mask.remove(id));
        for Joining { id, bytes } in self.tokens.joining() {
            let text = [&self.tail[..], bytes].concat();
            if self.tokens.after_close(&text).is_some_and(|rest| !rest.trim_ascii().is_empty()) {
                mask.remove(*id);
            }
        }
        mask
    }

    fn accept_before(
        &mut self,
        id: u32,
        at: usize,
        may_be_answer: bool,
    ) -> Result<Accepted, ConstraintError> {
        let mut accepted = Accepted::Open;
        let mut fits = may_be_answer;
        if let Some(answer) = &mut self.answer
            && may_be_answer
        {
            fits = answer.allowed()?.contains(id);
            if fits {
                accepted = answer.accept(id)?;
            }
        }
        let is_of_tag = self.tokens.open.get(at) == Some(&id);
        let is_whole = at + 1 == self.tokens.open.len();
        let bytes = self.tokens.tokenizer.token_bytes(id).unwrap_or_default();
        let is_blank = self.answer.is_none() && at == 0 && bytes.trim_ascii().is_empty();
        self.phase = match (is_of_tag, fits) {
            // A grammar that has the tag itself holds for the thoughts, too.
            (true, true) if is_whole && self.answer.is_some() => Phase::Answer,
            (true, _) if is_whole && self.left == Some(0) => Phase::Closing { at: 0 },
            (true, _) if is_whole => Phase::Inside,
            (true, _) => Phase::Before { at: at + 1, may_be_answer: fits },
            (false, _) if is_blank => Phase::Before { at, may_be_answer },
            (false, true) => Phase::Answer,
            (false, false) => {
                let reason = format!("token {id} neither opens thoughts nor begins the answer");
                return Err(ConstraintError { reason });
            }
        };
        Ok(accepted)
    }

    fn accept_inside(&mut self, id: u32) {
        let bytes = self.tokens.tokenizer.token_bytes(id).unwrap_or_default();
        self.tail.extend_from_slice(&bytes);
        if self.tokens.after_close(&self.tail).is_some() {
            self.phase = Phase::Answer;
            return;
        }
        let kept = self.tokens.close_text.len() - 1;
        self.tail.drain(..self.tail.len().saturating_sub(kept));
        self.left = self.left.map(|left| left.saturating_sub(1));
        if self.left == Some(0) {
            self.phase = Phase::Closing { at: 0 };
        }
    }
}

impl Constraint for ThoughtsFirst {
    fn allowed(&mut self) -> Result<TokenMask, ConstraintError> {
        match self.phase {
            Phase::Before { at, may_be_answer } => {
                let mut mask = match may_be_answer {
                    true => self.of_answer()?,
                    false => TokenMask::default(),
                };
                self.tokens.open.get(at).into_iter().for_each(|id| mask.insert(*id));
                Ok(mask)
            }
            Phase::Inside => Ok(self.of_thoughts()),
            Phase::Closing { at } => Ok(self.tokens.close.get(at).copied().into_iter().collect()),
            Phase::Answer => self.of_answer(),
        }
    }

    fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError> {
        match self.phase {
            Phase::Before { at, may_be_answer } => {
                return self.accept_before(id, at, may_be_answer);
            }
            Phase::Inside => self.accept_inside(id),
            Phase::Closing { at } if at + 1 < self.tokens.close.len() => {
                self.phase = Phase::Closing { at: at + 1 };
            }
            Phase::Closing { .. } => self.phase = Phase::Answer,
            Phase::Answer => {
                if let Some(answer) = &mut self.answer {
                    return answer.accept(id);
                }
            }
        }
        Ok(Accepted::Open)
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(ThoughtsFirst {
            tokens: Arc::clone(&self.tokens),
            answer: self.answer.as_ref().map(|answer| answer.fork()),
            phase: self.phase,
            left: self.left,
            tail: self.tail.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
