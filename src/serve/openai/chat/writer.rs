//! Chats that are streamed.

use serde::Serialize;

use super::Wanted;
use crate::serve::answer::Answers;
use crate::serve::error::{ApiError, Dialect};
use crate::serve::openai::logprobs::LogprobsJson;
use crate::serve::openai::{Head, TimingsJson, UsageJson};
use crate::serve::streaming::{Writer, event};
use crate::serve::tools::{CallReader, Part, ToolCall};
use crate::stream::{Summary, Token};

/// Writes a streamed answer.
pub(super) struct ChatWriter {
    head: Head,
    wanted: Wanted,
    choices: Vec<ChoiceState>,
}

#[derive(Default)]
struct ChoiceState {
    reader: Option<CallReader>,
    calls: usize,
}

#[derive(Serialize)]
struct Chunk<'a> {
    #[serde(flatten)]
    head: &'a Head,
    choices: &'a [ChunkChoice],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<TimingsJson>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallDelta>,
}

#[derive(Serialize)]
struct CallDelta {
    index: usize,
    #[serde(flatten)]
    call: ToolCall,
}

impl ChatWriter {
    pub(super) fn new(head: Head, wanted: Wanted) -> ChatWriter {
        ChatWriter { head, wanted, choices: Vec::new() }
    }

    fn chunk(&self, choice: ChunkChoice, answers: &Answers, out: &mut String) {
        let usage = self.wanted.stream.continuous_usage.then(|| answers.usage().into());
        event(&Chunk { head: &self.head, choices: &[choice], usage, timings: None }, out);
    }

    /// The choice's state; a chunk with the role precedes its first part.
    fn state(&mut self, index: usize, answers: &Answers, out: &mut String) -> &mut ChoiceState {
        while self.choices.len() <= index {
            let index = self.choices.len();
            let reader = self.wanted.calls.map(CallReader::new);
            self.choices.push(ChoiceState { reader, calls: 0 });
            let delta = Delta {
                role: Some("assistant"),
                content: Some(String::new()),
                tool_calls: Vec::new(),
            };
            let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
            self.chunk(choice, answers, out);
        }
        &mut self.choices[index]
    }

    fn parts(&mut self, index: usize, parts: Vec<Part>, answers: &Answers, out: &mut String) {
        for part in parts {
            let delta = match part {
                Part::Text(text) => Delta { content: Some(text), ..Delta::default() },
                Part::Call(call) => {
                    let at = self.choices[index].calls;
                    self.choices[index].calls += 1;
                    let tool_calls = vec![CallDelta { index: at, call }];
                    Delta { tool_calls, ..Delta::default() }
                }
            };
            let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
            self.chunk(choice, answers, out);
        }
    }
}

impl Writer for ChatWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        self.state(0, answers, out);
    }

    fn token(&mut self, index: usize, token: Token, answers: &Answers, out: &mut String) {
        let state = self.state(index, answers, out);
        if let Some(reader) = &mut state.reader {
            let parts = reader.push(&token.text);
            return self.parts(index, parts, answers, out);
        }
        let tokenizer = answers.lease().engine.tokenizer();
        let has_logprobs = self.wanted.logprobs && !token.is_end;
        if token.text.is_empty() && !has_logprobs {
            return;
        }
        let logprobs = has_logprobs.then(|| LogprobsJson::of([&token], tokenizer));
        let delta = Delta { content: Some(token.text), ..Delta::default() };
        let choice = ChunkChoice { index, delta, logprobs, finish_reason: None };
        self.chunk(choice, answers, out);
    }

    fn end(&mut self, index: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let state = self.state(index, answers, out);
        let parts = state.reader.take().map(CallReader::finish).unwrap_or_default();
        self.parts(index, parts, answers, out);
        let has_calls = self.choices[index].calls > 0;
        let reason = if has_calls { "tool_calls" } else { summary.reason.name() };
        let choice = ChunkChoice {
            index,
            delta: Delta::default(),
            logprobs: None,
            finish_reason: Some(reason),
        };
        self.chunk(choice, answers, out);
    }

    fn finish(&mut self, answers: &Answers, out: &mut String) {
        if self.wanted.stream.include_usage {
            let usage = Some(answers.usage().into());
            let timings = Some(TimingsJson::of(answers));
            event(&Chunk { head: &self.head, choices: &[], usage, timings }, out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        event(&error.json(Dialect::OpenAi), out);
    }

    fn keep_alive(&self) -> &'static str {
        ":\n\n"
    }
}
