//! Messages that are streamed.

use serde_json::{Value, json};

use super::{reason, usage};
use crate::serve::answer::{Answers, Usage};
use crate::serve::error::{ApiError, Dialect};
use crate::serve::gate::new_id;
use crate::serve::streaming::{Writer, named_event};
use crate::serve::tools::{CallReader, Part, Style, parts_of};
use crate::stream::{Summary, Token};

/// Writes a streamed answer.
pub(super) struct MessageWriter {
    model: String,
    reader: Option<CallReader>,
    /// Number of the present block, and whether it is open.
    block: usize,
    is_open: bool,
    has_calls: bool,
}

impl MessageWriter {
    pub(super) fn new(model: String, style: Option<Style>) -> MessageWriter {
        let reader = style.map(CallReader::new);
        MessageWriter { model, reader, block: 0, is_open: false, has_calls: false }
    }

    fn parts(&mut self, parts: Vec<Part>, out: &mut String) {
        for part in parts {
            match part {
                Part::Text(text) => {
                    if !self.is_open {
                        self.start(&json!({ "type": "text", "text": "" }), out);
                    }
                    self.delta(&json!({ "type": "text_delta", "text": text }), out);
                }
                Part::Call(call) => {
                    self.close(out);
                    self.has_calls = true;
                    let function = &call.function;
                    let block = json!({
                        "type": "tool_use", "id": call.id, "name": function.name, "input": {},
                    });
                    self.start(&block, out);
                    let json = &function.arguments;
                    let delta = json!({ "type": "input_json_delta", "partial_json": json });
                    self.delta(&delta, out);
                    self.close(out);
                }
            }
        }
    }

    fn start(&mut self, block: &Value, out: &mut String) {
        self.is_open = true;
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
        if self.is_open {
            let data = json!({ "type": "content_block_stop", "index": self.block });
            named_event("content_block_stop", &data, out);
            self.block += 1;
            self.is_open = false;
        }
    }
}

impl Writer for MessageWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
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

    fn token(&mut self, _: usize, token: Token, _: &Answers, out: &mut String) {
        let parts = parts_of(&mut self.reader, token.text);
        self.parts(parts, out);
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let parts = self.reader.take().map(CallReader::finish).unwrap_or_default();
        self.parts(parts, out);
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

    fn finish(&mut self, _: &Answers, _: &mut String) {}

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        named_event("error", &error.json(Dialect::Anthropic), out);
    }

    fn keep_alive(&self) -> &'static str {
        "event: ping\ndata: {\"type\":\"ping\"}\n\n"
    }
}
