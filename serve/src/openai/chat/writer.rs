//! The answers to chats.

use serde::Serialize;

use crate::answer::{Answers, Complete};
use crate::error::ApiError;
use crate::openai::chunks::{Chunks, failed};
use crate::openai::logprobs::LogprobsJson;
use crate::openai::{Head, StreamOptions};
use crate::streaming::Writer;
use crate::tools::CallJson;
use lapwing_engine::parts::{Answer, Part};
use lapwing_engine::{PromptProgress, Summary, Token};

/// Writes an answer.
pub(crate) struct ChatWriter {
    chunks: Chunks,
    has_logprobs: bool,
    /// Those of a token whose parts are still to come.
    logprobs: Option<LogprobsJson>,
    /// The calls of each choice that have begun.
    calls: Vec<usize>,
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

/// A choice of a whole answer.
#[derive(Serialize)]
struct WholeChoice {
    index: usize,
    message: WholeMessage,
    logprobs: Option<LogprobsJson>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct WholeMessage {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    refusal: Option<()>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallJson>,
}

impl ChatWriter {
    pub(super) fn new(stream: StreamOptions, has_logprobs: bool, answers: &Answers) -> ChatWriter {
        let object = if stream.stream { "chat.completion.chunk" } else { "chat.completion" };
        let chunks = Chunks::new(Head::new("chatcmpl-", object, answers), stream);
        ChatWriter { chunks, has_logprobs, logprobs: None, calls: Vec::new() }
    }

    /// Begins all choices up to `index` that have not begun: with a chunk that has the role.
    fn begun(&mut self, index: usize, answers: &Answers, out: &mut String) {
        while self.calls.len() <= index {
            let index = self.calls.len();
            let content = Some(String::new());
            let delta = Delta { role: Some("assistant"), content, ..Delta::default() };
            self.chunks.choice(ChunkChoice::new(index, delta), answers, out);
            self.calls.push(0);
        }
    }
}

impl ChunkChoice {
    fn new(index: usize, delta: Delta) -> ChunkChoice {
        ChunkChoice { index, delta, logprobs: None, finish_reason: None }
    }
}

impl Delta {
    /// What a chunk has of a part; `calls` counts the calls of its choice.
    fn of(part: Part, calls: &mut usize) -> Option<Delta> {
        let call = match part {
            Part::Text(text) => return Some(Delta { content: Some(text), ..Delta::default() }),
            Part::Thought(text) => {
                return Some(Delta { reasoning_content: Some(text), ..Delta::default() });
            }
            Part::Call { id, name } => {
                *calls += 1;
                let function = FunctionDelta { name: Some(name), ..FunctionDelta::default() };
                CallDelta { id: Some(id), kind: Some("function"), function, ..CallDelta::default() }
            }
            Part::Arguments(arguments) => {
                let function = FunctionDelta { arguments, ..FunctionDelta::default() };
                CallDelta { function, ..CallDelta::default() }
            }
            Part::CallEnd(_) => return None,
        };
        let call = CallDelta { index: calls.saturating_sub(1), ..call };
        Some(Delta { tool_calls: Some([call]), ..Delta::default() })
    }
}

impl Writer for ChatWriter {
    fn whole(&mut self, choices: Vec<Complete>, answers: &Answers) -> impl Serialize {
        let tokenizer = answers.lease().engine.tokenizer();
        let choice = |(index, choice): (usize, Complete)| {
            let finish = choice.reason();
            let logprobs = self.has_logprobs.then(|| LogprobsJson::of(&choice.tokens, tokenizer));
            let Answer { thoughts, text, calls, .. } = Answer::of(choice.parts);
            let finish_reason = finish_reason(finish, !calls.is_empty());
            let message = WholeMessage {
                role: "assistant",
                content: (!text.is_empty() || calls.is_empty()).then_some(text),
                reasoning_content: thoughts,
                refusal: None,
                tool_calls: calls.into_iter().map(CallJson::from).collect(),
            };
            WholeChoice { index, message, logprobs, finish_reason }
        };
        let choices = choices.into_iter().enumerate().map(choice).collect();
        self.chunks.whole(choices, answers.usage(), answers)
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        self.begun(0, answers, out);
    }

    fn prompt(
        &mut self,
        index: usize,
        progress: PromptProgress,
        answers: &Answers,
        out: &mut String,
    ) {
        self.begun(index, answers, out);
        self.chunks.prompt(ChunkChoice::new(index, Delta::default()), progress, out);
    }

    fn token(&mut self, _: usize, token: &Token, answers: &Answers, _: &mut String) {
        let has_logprobs = self.has_logprobs && !token.is_end;
        let tokenizer = answers.lease().engine.tokenizer();
        self.logprobs = has_logprobs.then(|| LogprobsJson::of([token], tokenizer));
    }

    fn parts(&mut self, index: usize, parts: Vec<Part>, answers: &Answers, out: &mut String) {
        self.begun(index, answers, out);
        let delta = |part| Delta::of(part, &mut self.calls[index]);
        let mut deltas: Vec<Delta> = parts.into_iter().filter_map(delta).collect();
        if deltas.is_empty() && self.logprobs.is_some() {
            deltas.push(Delta { content: Some(String::new()), ..Delta::default() });
        }
        // The first has the log-probabilities of the token that completed it.
        for delta in deltas {
            let logprobs = self.logprobs.take();
            let choice = ChunkChoice { logprobs, ..ChunkChoice::new(index, delta) };
            self.chunks.choice(choice, answers, out);
        }
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let reason = finish_reason(summary.reason.name(), self.calls[index] > 0);
        let last = ChunkChoice::new(index, Delta::default());
        self.chunks.choice(ChunkChoice { finish_reason: Some(reason), ..last }, answers, out);
    }

    fn finish(&mut self, answers: &Answers, out: &mut String) {
        self.chunks.finish(answers, out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        failed(error, out);
    }
}

/// Why an answer ended. One that was cut off is not known to have all its calls.
fn finish_reason(reason: &'static str, has_calls: bool) -> &'static str {
    if has_calls && reason != "length" { "tool_calls" } else { reason }
}
