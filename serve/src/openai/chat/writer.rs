//! The answers to chats.

use serde::Serialize;

use crate::answer::{Answers, Complete};
use crate::error::ApiError;
use crate::openai::chunks::{Chunks, failed};
use crate::openai::logprobs::LogprobsJson;
use crate::openai::token_ids::IdOptions;
use crate::openai::{Head, StreamOptions};
use crate::streaming::Writer;
use crate::tools::CallJson;
use lapwing_engine::parts::{Answer, Part};
use lapwing_engine::{PromptProgress, Summary, Token};

/// Writes an answer.
pub(crate) struct ChatWriter {
    chunks: Chunks,
    wanted: Wanted,
    /// What is told of a token whose parts are still to come.
    token: Option<TokenFacts>,
    /// The calls of each choice that have begun.
    calls: Vec<usize>,
}

/// What the answer is to contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) stream: StreamOptions,
    /// Log-probabilities of the tokens.
    pub(super) logprobs: bool,
    /// Token ids.
    pub(super) ids: IdOptions,
}

/// What is told of a token beside its text.
struct TokenFacts {
    logprobs: Option<LogprobsJson>,
    ids: Option<Vec<u32>>,
}

#[derive(Serialize)]
struct ChunkChoice {
    index: usize,
    delta: Delta,
    logprobs: Option<LogprobsJson>,
    finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<Vec<u32>>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<Vec<u32>>,
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
    pub(super) fn new(wanted: Wanted, answers: &Answers) -> ChatWriter {
        let is_streamed = wanted.stream.stream;
        let object = if is_streamed { "chat.completion.chunk" } else { "chat.completion" };
        let chunks = Chunks::new(Head::new("chatcmpl-", object, answers), wanted.stream);
        ChatWriter { chunks, wanted, token: None, calls: Vec::new() }
    }

    /// Begins all choices up to `index` that have not begun: with a chunk that has the role.
    fn begun(&mut self, index: usize, answers: &Answers, out: &mut String) {
        while self.calls.len() <= index {
            let index = self.calls.len();
            let content = Some(String::new());
            let delta = Delta { role: Some("assistant"), content, ..Delta::default() };
            let prompt = self.wanted.ids.returned(answers.prompt_ids(index));
            self.chunks.begin(self.part(index, delta), prompt, answers, out);
            self.calls.push(0);
        }
    }

    /// A part of a choice that has no token.
    fn part(&self, index: usize, delta: Delta) -> ChunkChoice {
        let token_ids = self.wanted.ids.returned(&[]);
        ChunkChoice { index, delta, logprobs: None, finish_reason: None, token_ids }
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
        let wanted = self.wanted;
        let names = wanted.ids.names(answers.lease().engine.tokenizer());
        let choice = |(index, choice): (usize, Complete)| {
            let finish = choice.reason();
            let logprobs = wanted.logprobs.then(|| LogprobsJson::of(&choice.tokens, names));
            let token_ids = wanted.ids.returned(&choice.ids);
            let Answer { thoughts, text, calls, .. } = Answer::of(choice.parts);
            let finish_reason = finish_reason(finish, !calls.is_empty());
            let message = WholeMessage {
                role: "assistant",
                content: (!text.is_empty() || calls.is_empty()).then_some(text),
                reasoning_content: thoughts,
                refusal: None,
                tool_calls: calls.into_iter().map(CallJson::from).collect(),
            };
            WholeChoice { index, message, logprobs, finish_reason, token_ids }
        };
        let choices = choices.into_iter().enumerate().map(choice).collect();
        let prompt = wanted.ids.returned(answers.prompt_ids(0));
        self.chunks.whole(choices, answers.usage(), answers).with_prompt(prompt)
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
        self.chunks.prompt(self.part(index, Delta::default()), progress, out);
    }

    fn token(&mut self, _: usize, token: &Token, answers: &Answers, _: &mut String) {
        let has_logprobs = self.wanted.logprobs && !token.is_end;
        let names = self.wanted.ids.names(answers.lease().engine.tokenizer());
        let logprobs = has_logprobs.then(|| LogprobsJson::of([token], names));
        let ids = self.wanted.ids.returned(&[token.id]);
        let is_told = logprobs.is_some() || ids.is_some();
        self.token = is_told.then_some(TokenFacts { logprobs, ids });
    }

    fn parts(&mut self, index: usize, parts: Vec<Part>, answers: &Answers, out: &mut String) {
        self.begun(index, answers, out);
        let delta = |part| Delta::of(part, &mut self.calls[index]);
        let mut deltas: Vec<Delta> = parts.into_iter().filter_map(delta).collect();
        if deltas.is_empty() && self.token.is_some() {
            deltas.push(Delta { content: Some(String::new()), ..Delta::default() });
        }
        // The first has what is told of the token that completed it.
        for delta in deltas {
            let mut choice = self.part(index, delta);
            if let Some(TokenFacts { logprobs, ids }) = self.token.take() {
                choice = ChunkChoice { logprobs, token_ids: ids, ..choice };
            }
            self.chunks.choice(choice, answers, out);
        }
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let reason = finish_reason(summary.reason.name(), self.calls[index] > 0);
        let last = self.part(index, Delta::default());
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
