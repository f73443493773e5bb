//! Chats that are streamed.

use serde::Serialize;

use super::{Wanted, finish_reason};
use crate::answer::Answers;
use crate::error::ApiError;
use crate::openai::Head;
use crate::openai::chunks::{Chunks, failed};
use crate::openai::logprobs::LogprobsJson;
use crate::parts::{AnswerReader, Part};
use crate::streaming::Writer;
use lapwing_engine::{PromptProgress, Summary, Token};

/// Writes a streamed answer.
pub(super) struct ChatWriter {
    chunks: Chunks,
    wanted: Wanted,
    choices: Vec<ChoiceState>,
}

struct ChoiceState {
    reader: AnswerReader,
    /// Calls that have begun.
    calls: usize,
}

#[derive(Serialize)]
struct ChunkChoice {
    index: usize,
    delta: Delta,
    logprobs: Option<LogprobsJson>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[CallDelta; 1]>,
}

/// A part of a call; its beginning has an id, a type and a name.
#[derive(Default, Serialize)]
struct CallDelta {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: FunctionDelta,
}

#[derive(Default, Serialize)]
struct FunctionDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    arguments: String,
}

impl ChatWriter {
    pub(super) fn new(head: Head, wanted: Wanted) -> ChatWriter {
        ChatWriter { chunks: Chunks::new(head, wanted.stream), wanted, choices: Vec::new() }
    }

    /// The choice's state; a chunk with the role precedes its first part.
    fn state(&mut self, index: usize, answers: &Answers, out: &mut String) -> &mut ChoiceState {
        while self.choices.len() <= index {
            let index = self.choices.len();
            let reader = AnswerReader::new(self.wanted.form, answers);
            self.choices.push(ChoiceState { reader, calls: 0 });
            let content = Some(String::new());
            let delta = Delta { role: Some("assistant"), content, ..Delta::default() };
            let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
            self.chunks.choice(choice, answers, out);
        }
        &mut self.choices[index]
    }

    /// Writes parts of a choice. The first has the log-probabilities of the token that completed it.
    fn parts(
        &mut self,
        (index, parts): (usize, Vec<Part>),
        mut logprobs: Option<LogprobsJson>,
        answers: &Answers,
        out: &mut String,
    ) {
        let mut deltas: Vec<Delta> =
            parts.into_iter().filter_map(|part| self.choices[index].delta(part)).collect();
        if deltas.is_empty() && logprobs.is_some() {
            deltas.push(Delta { content: Some(String::new()), ..Delta::default() });
        }
        for delta in deltas {
            let logprobs = logprobs.take();
            self.chunks.choice(
                ChunkChoice { index, delta, logprobs, finish_reason: None },
                answers,
                out,
            );
        }
    }
}

impl ChoiceState {
    fn delta(&mut self, part: Part) -> Option<Delta> {
        let call = match part {
            Part::Text(text) => return Some(Delta { content: Some(text), ..Delta::default() }),
            Part::Thought(text) => {
                return Some(Delta { reasoning_content: Some(text), ..Delta::default() });
            }
            Part::Call { id, name } => {
                self.calls += 1;
                let function = FunctionDelta { name: Some(name), ..FunctionDelta::default() };
                CallDelta { id: Some(id), kind: Some("function"), function, ..CallDelta::default() }
            }
            Part::Arguments(arguments) => {
                let function = FunctionDelta { arguments, ..FunctionDelta::default() };
                CallDelta { function, ..CallDelta::default() }
            }
            Part::CallEnd => return None,
        };
        let call = CallDelta { index: self.calls.saturating_sub(1), ..call };
        Some(Delta { tool_calls: Some([call]), ..Delta::default() })
    }
}

impl Writer for ChatWriter {
    fn begin(&mut self, answers: &Answers, out: &mut String) {
        self.state(0, answers, out);
    }

    fn prompt(
        &mut self,
        index: usize,
        progress: PromptProgress,
        answers: &Answers,
        out: &mut String,
    ) {
        self.state(index, answers, out);
        let choice =
            ChunkChoice { index, delta: Delta::default(), logprobs: None, finish_reason: None };
        self.chunks.prompt(choice, progress, out);
    }

    fn token(&mut self, index: usize, token: Token, answers: &Answers, out: &mut String) {
        let has_logprobs = self.wanted.logprobs && !token.is_end;
        let tokenizer = answers.lease().engine.tokenizer();
        let logprobs = has_logprobs.then(|| LogprobsJson::of([&token], tokenizer));
        let parts = self.state(index, answers, out).reader.push(token.text);
        self.parts((index, parts), logprobs, answers, out);
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let parts = self.state(index, answers, out).reader.finish();
        self.parts((index, parts), None, answers, out);
        let reason = finish_reason(summary.reason.name(), self.choices[index].calls > 0);
        let choice = ChunkChoice {
            index,
            delta: Delta::default(),
            logprobs: None,
            finish_reason: Some(reason),
        };
        self.chunks.choice(choice, answers, out);
    }

    fn finish(&mut self, answers: &Answers, out: &mut String) {
        self.chunks.finish(answers, out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        failed(error, out);
    }
}
