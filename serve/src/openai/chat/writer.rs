//! The answers to chats.

use serde::Serialize;

use crate::answer::{Answers, Complete};
use crate::error::ApiError;
use crate::openai::chunks::{Chunks, failed};
use crate::openai::logprobs::LogprobsJson;
use crate::openai::{Head, StreamOptions};
use crate::parts::{AnswerForm, AnswerReader, Part};
use crate::streaming::Writer;
use crate::tools::ToolCall;
use lapwing_engine::{PromptProgress, Summary, Token};

/// What the answer is to contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) stream: StreamOptions,
    pub(super) logprobs: bool,
    pub(super) form: AnswerForm,
}

/// Writes an answer.
pub(crate) struct ChatWriter {
    chunks: Chunks,
    wanted: Wanted,
    /// Those that are streamed and have begun.
    choices: Vec<ChoiceState>,
}

/// The state of a choice that is streamed.
struct ChoiceState {
    index: usize,
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
    tool_calls: Vec<ToolCall>,
}

impl ChatWriter {
    pub(super) fn new(wanted: Wanted, answers: &Answers) -> ChatWriter {
        let object = match wanted.stream.stream {
            true => "chat.completion.chunk",
            false => "chat.completion",
        };
        let chunks = Chunks::new(Head::new("chatcmpl-", object, answers), wanted.stream);
        ChatWriter { chunks, wanted, choices: Vec::new() }
    }

    /// The choice's state; a chunk with the role precedes its first part.
    fn state(&mut self, index: usize, answers: &Answers, out: &mut String) -> &mut ChoiceState {
        while self.choices.len() <= index {
            let index = self.choices.len();
            let reader = AnswerReader::new(self.wanted.form, answers);
            self.choices.push(ChoiceState { index, reader, calls: 0 });
            let content = Some(String::new());
            let delta = Delta { role: Some("assistant"), content, ..Delta::default() };
            let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
            self.chunks.choice(choice, answers, out);
        }
        &mut self.choices[index]
    }

    /// Writes parts of choices, each as a chunk.
    fn write(&self, parts: Vec<ChunkChoice>, answers: &Answers, out: &mut String) {
        for part in parts {
            self.chunks.choice(part, answers, out);
        }
    }
}

impl ChoiceState {
    /// What chunks have of these parts. The first has the log-probabilities of the token that completed it.
    fn parts(&mut self, parts: Vec<Part>, mut logprobs: Option<LogprobsJson>) -> Vec<ChunkChoice> {
        let mut deltas: Vec<Delta> =
            parts.into_iter().filter_map(|part| self.delta(part)).collect();
        if deltas.is_empty() && logprobs.is_some() {
            deltas.push(Delta { content: Some(String::new()), ..Delta::default() });
        }
        let index = self.index;
        let choice =
            |delta| ChunkChoice { index, delta, logprobs: logprobs.take(), finish_reason: None };
        deltas.into_iter().map(choice).collect()
    }

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
    fn whole(&mut self, choices: Vec<Complete>, answers: &Answers) -> impl Serialize {
        let Wanted { logprobs, form, .. } = self.wanted;
        let tokenizer = answers.lease().engine.tokenizer();
        let choice = |(index, choice): (usize, Complete)| {
            let finish = choice.reason();
            let logprobs = logprobs.then(|| LogprobsJson::of(&choice.tokens, tokenizer));
            let divided = AnswerReader::new(form, answers).divide(choice.text);
            let (content, tool_calls) = (divided.text, divided.calls);
            let finish_reason = finish_reason(finish, !tool_calls.is_empty());
            let content = (!content.is_empty() || tool_calls.is_empty()).then_some(content);
            let message = WholeMessage {
                role: "assistant",
                content,
                reasoning_content: divided.thoughts,
                refusal: None,
                tool_calls,
            };
            WholeChoice { index, message, logprobs, finish_reason }
        };
        let choices = choices.into_iter().enumerate().map(choice).collect();
        self.chunks.whole(choices, answers.usage(), answers)
    }

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
        let state = self.state(index, answers, out);
        let parts = state.reader.push(token.text);
        let parts = state.parts(parts, logprobs);
        self.write(parts, answers, out);
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let state = self.state(index, answers, out);
        let parts = state.reader.finish();
        let mut parts = state.parts(parts, None);
        let reason = finish_reason(summary.reason.name(), state.calls > 0);
        parts.push(ChunkChoice {
            index,
            delta: Delta::default(),
            logprobs: None,
            finish_reason: Some(reason),
        });
        self.write(parts, answers, out);
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
