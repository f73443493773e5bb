//! Messages, whole and streamed.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::answer::{Answers, Complete, Usage};
use crate::error::{ApiError, Dialect};
use crate::ids::new_id;
use crate::streaming::{Writer, named_event};
use lapwing_engine::parts::{Answer, Part};
use lapwing_engine::tools::ToolCall;
use lapwing_engine::{EndReason, Summary};

/// Writes an answer.
pub(crate) struct MessageWriter {
    model: String,
    /// Number of the present block, and its type if it is open.
    block: usize,
    open: Option<&'static str>,
    has_calls: bool,
}

impl MessageWriter {
    pub(super) fn new(model: String) -> MessageWriter {
        MessageWriter { model, block: 0, open: None, has_calls: false }
    }

    /// Begins a block, unless one of this type is open.
    fn start(&mut self, kind: &'static str, block: &Value, out: &mut String) {
        if self.open == Some(kind) {
            return;
        }
        self.close(out);
        self.open = Some(kind);
        let data = json!({
            "type": "content_block_start", "index": self.block, "content_block": block,
        });
        named_event("content_block_start", &data, out);
    }

    fn delta(&self, delta: &Value, out: &mut String) {
        let data = json!({ "type": "content_block_delta", "index": self.block, "delta": delta });
        named_event("content_block_delta", &data, out);
    }

    fn close(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            let data = json!({ "type": "content_block_stop", "index": self.block });
            named_event("content_block_stop", &data, out);
            self.block += 1;
        }
    }
}

impl Writer for MessageWriter {
    fn whole(&mut self, mut choices: Vec<Complete>, answers: &Answers) -> impl Serialize {
        let choice = choices.pop().unwrap_or_default();
        let Answer { thoughts, text, calls, .. } = Answer::of(choice.parts);
        let (stop_reason, stop_sequence) = reason(choice.summary.as_deref(), !calls.is_empty());
        let mut content = Vec::new();
        if !thoughts.is_empty() {
            content.push(Block::Thinking { thinking: thoughts, signature: "" });
        }
        if !text.is_empty() || calls.is_empty() {
            content.push(Block::Text { text });
        }
        content.extend(calls.into_iter().map(Block::from));
        Whole {
            id: new_id("msg_"),
            kind: "message",
            role: "assistant",
            model: &self.model,
            content,
            stop_reason,
            stop_sequence,
            usage: usage(answers.usage()),
        }
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        let message = json!({
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage(Usage { generated: 0, ..answers.usage() }),
        });
        named_event("message_start", &json!({ "type": "message_start", "message": message }), out);
    }

    fn parts(&mut self, _: usize, parts: Vec<Part>, _: &Answers, out: &mut String) {
        for part in parts {
            match part {
                Part::Thought(text) => {
                    let block = json!({ "type": "thinking", "thinking": "", "signature": "" });
                    self.start("thinking", &block, out);
                    self.delta(&json!({ "type": "thinking_delta", "thinking": text }), out);
                }
                Part::Text(text) => {
                    self.start("text", &json!({ "type": "text", "text": "" }), out);
                    self.delta(&json!({ "type": "text_delta", "text": text }), out);
                }
                Part::Call { id, name } => {
                    self.has_calls = true;
                    let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                    self.start("tool_use", &block, out);
                }
                Part::Arguments(text) => {
                    self.delta(&json!({ "type": "input_json_delta", "partial_json": text }), out);
                }
                Part::CallEnd(_) => self.close(out),
            }
        }
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        self.close(out);
        let (stop_reason, stop_sequence) = reason(Some(summary), self.has_calls);
        let data = json!({
            "type": "message_delta",
            "delta": { "stop_reason": stop_reason, "stop_sequence": stop_sequence },
            "usage": usage(answers.usage()),
        });
        named_event("message_delta", &data, out);
        named_event("message_stop", &json!({ "type": "message_stop" }), out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        named_event("error", &error.json(Dialect::Anthropic), out);
    }

    fn keep_alive(&self) -> &'static str {
        "event: ping\ndata: {\"type\":\"ping\"}\n\n"
    }
}

/// A part of an answer.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    /// Nothing here checks thoughts that come back, so they need no signature.
    Thinking {
        thinking: String,
        signature: &'static str,
    },
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Box<RawValue>,
    },
}

/// A whole answer.
#[derive(Clone, Debug, Serialize)]
struct Whole<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block>,
    stop_reason: &'static str,
    stop_sequence: Option<String>,
    usage: Value,
}

impl From<ToolCall> for Block {
    fn from(call: ToolCall) -> Block {
        match call.compact_arguments() {
            Some(input) => Block::ToolUse { id: call.id, name: call.name, input },
            // The answer was cut off inside of them.
            None => Block::Text { text: format!("{}({}", call.name, call.arguments) },
        }
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt - usage.cached.min(usage.prompt),
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.generated,
    })
}

/// Why an answer ended, and the stop text that ended it.
fn reason(summary: Option<&Summary>, has_calls: bool) -> (&'static str, Option<String>) {
    match summary.map(|summary| &summary.reason) {
        Some(EndReason::Length) => ("max_tokens", None),
        _ if has_calls => ("tool_use", None),
        Some(EndReason::StopText(text)) => ("stop_sequence", Some(text.clone())),
        _ => ("end_turn", None),
    }
}
