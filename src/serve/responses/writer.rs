//! Responses, whole and streamed.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::serve::answer::Answers;
use crate::serve::app::unix_seconds;
use crate::serve::error::{ApiError, Dialect};
use crate::serve::gate::new_id;
use crate::serve::streaming::{Writer, named_event};
use crate::serve::tools::{Style, ToolCall, separate};
use crate::stream::{Summary, Token};

/// Writes an answer.
pub(super) struct ResponseWriter {
    id: String,
    item: String,
    created: u64,
    model: String,
    style: Option<Style>,
    text: String,
    /// Number of the next event.
    sequence: u64,
}

impl ResponseWriter {
    pub(super) fn new(answers: &Answers, style: Option<Style>) -> ResponseWriter {
        ResponseWriter {
            id: new_id("resp_"),
            item: new_id("msg_"),
            created: unix_seconds(SystemTime::now()),
            model: answers.lease().name().to_owned(),
            style,
            text: String::new(),
            sequence: 0,
        }
    }

    /// The items of a complete answer.
    pub(super) fn output(&self, text: &str) -> Vec<Value> {
        let (text, calls) = separate(self.style, text.to_owned());
        let mut output = Vec::new();
        if !text.is_empty() || calls.is_empty() {
            output.push(json!({
                "type": "message",
                "id": self.item,
                "role": "assistant",
                "status": "completed",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            }));
        }
        let call = |call: ToolCall| {
            json!({
                "type": "function_call",
                "id": new_id("fc_"),
                "call_id": call.id,
                "name": call.function.name,
                "arguments": call.function.arguments,
                "status": "completed",
            })
        };
        output.extend(calls.into_iter().map(call));
        output
    }

    pub(super) fn response(&self, reason: &str, output: &[Value], answers: &Answers) -> Value {
        let usage = answers.usage();
        let (status, incomplete) = match reason {
            "" => ("in_progress", Value::Null),
            "length" => ("incomplete", json!({ "reason": "max_output_tokens" })),
            _ => ("completed", Value::Null),
        };
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": null,
            "incomplete_details": incomplete,
            "instructions": null,
            "metadata": {},
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "store": false,
            "usage": {
                "input_tokens": usage.prompt,
                "input_tokens_details": { "cached_tokens": usage.cached },
                "output_tokens": usage.generated,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": usage.prompt + usage.generated,
            },
        })
    }

    /// Appends an event of `kind` with further fields.
    fn send(&mut self, kind: &str, mut data: Value, out: &mut String) {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        named_event(kind, &data, out);
    }

    /// Begins the message, unless its text may become calls.
    fn open(&mut self, out: &mut String) {
        let item = json!({
            "type": "message", "id": self.item, "role": "assistant", "status": "in_progress", "content": [],
        });
        let data = json!({ "output_index": 0, "item": item });
        self.send("response.output_item.added", data, out);
        let part = json!({ "type": "output_text", "text": "", "annotations": [] });
        let data =
            json!({ "item_id": self.item, "output_index": 0, "content_index": 0, "part": part });
        self.send("response.content_part.added", data, out);
    }

    /// Ends an item; a message ends its text before.
    fn close(&mut self, at: usize, item: &Value, out: &mut String) {
        let place = |field: &str, value: Value| {
            let mut data = json!({ "item_id": item["id"], "output_index": at, "content_index": 0 });
            data[field] = value;
            data
        };
        if item["type"] == "message" {
            let part = &item["content"][0];
            self.send("response.output_text.done", place("text", part["text"].clone()), out);
            self.send("response.content_part.done", place("part", part.clone()), out);
        } else {
            let data = json!({ "output_index": at, "item": item });
            self.send("response.output_item.added", data, out);
            let arguments = &item["arguments"];
            let data = place("delta", arguments.clone());
            self.send("response.function_call_arguments.delta", data, out);
            let data = place("arguments", arguments.clone());
            self.send("response.function_call_arguments.done", data, out);
        }
        let data = json!({ "output_index": at, "item": item });
        self.send("response.output_item.done", data, out);
    }
}

impl Writer for ResponseWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        let response = self.response("", &[], answers);
        self.send("response.created", json!({ "response": response }), out);
        self.send("response.in_progress", json!({ "response": response }), out);
        if self.style.is_none() {
            self.open(out);
        }
    }

    fn token(&mut self, _: usize, token: Token, _: &Answers, out: &mut String) {
        self.text.push_str(&token.text);
        // Text that may hold calls is sent when it is complete.
        if self.style.is_none() && !token.text.is_empty() {
            let data = json!({
                "item_id": self.item, "output_index": 0, "content_index": 0, "delta": token.text,
            });
            self.send("response.output_text.delta", data, out);
        }
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        let output = self.output(&self.text);
        for (at, item) in output.iter().enumerate() {
            if self.style.is_some() && item["type"] == "message" {
                self.open(out);
                let data = json!({
                    "item_id": self.item, "output_index": at, "content_index": 0,
                    "delta": item["content"][0]["text"],
                });
                self.send("response.output_text.delta", data, out);
            }
            self.close(at, item, out);
        }
        let reason = summary.reason.name();
        let response = self.response(reason, &output, answers);
        let kind = if reason == "length" { "response.incomplete" } else { "response.completed" };
        self.send(kind, json!({ "response": response }), out);
    }

    fn finish(&mut self, _: &Answers, _: &mut String) {}

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        let error = &error.json(Dialect::OpenAi)["error"];
        let data =
            json!({ "code": error["code"], "message": error["message"], "param": error["param"] });
        self.send("error", data, out);
    }

    fn keep_alive(&self) -> &'static str {
        ":\n\n"
    }
}
