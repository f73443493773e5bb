//! Responses, whole and streamed.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answers, Complete};
use crate::error::{ApiError, Dialect};
use crate::ids::new_id;
use crate::streaming::{Writer, named_event};
use lapwing_engine::Summary;
use lapwing_engine::parts::Part;

/// What a response repeats of its request.
pub(super) struct Echo {
    /// When it was asked for, in seconds since 1970.
    pub(super) created: u64,
    /// Whether there may be several calls.
    pub(super) parallel: bool,
    pub(super) metadata: Map<String, Value>,
}

/// Writes an answer.
pub(crate) struct ResponseWriter {
    id: String,
    model: String,
    echo: Echo,
    /// Complete items.
    output: Vec<Value>,
    open: Option<OpenItem>,
    /// Number of the next event.
    sequence: u64,
}

/// An item whose end is still to come.
struct OpenItem {
    kind: Kind,
    /// As at its beginning.
    item: Value,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Call,
}

impl Kind {
    /// The events of its text.
    fn events(self) -> &'static str {
        match self {
            Kind::Message => "response.output_text",
            Kind::Reasoning => "response.reasoning_text",
            Kind::Call => "response.function_call_arguments",
        }
    }

    /// The part that holds its text, if it has parts.
    fn part(self, text: &str) -> Option<Value> {
        match self {
            Kind::Message => {
                Some(json!({ "type": "output_text", "text": text, "annotations": [] }))
            }
            Kind::Reasoning => Some(json!({ "type": "reasoning_text", "text": text })),
            Kind::Call => None,
        }
    }
}

impl ResponseWriter {
    pub(super) fn new(echo: Echo, answers: &Answers) -> ResponseWriter {
        ResponseWriter {
            id: new_id("resp_"),
            model: answers.lease().name().to_owned(),
            echo,
            output: Vec::new(),
            open: None,
            sequence: 0,
        }
    }

    fn response(&self, reason: &str, output: &[Value], answers: &Answers) -> Value {
        let usage = answers.usage();
        let (status, incomplete) = match reason {
            "" => ("in_progress", Value::Null),
            "length" => ("incomplete", json!({ "reason": "max_output_tokens" })),
            _ => ("completed", Value::Null),
        };
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.echo.created,
            "status": status,
            "error": null,
            "incomplete_details": incomplete,
            "instructions": null,
            "metadata": self.echo.metadata,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": self.echo.parallel,
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

    /// The end of the answer; an empty one is an empty message.
    fn last(&mut self, out: &mut String) {
        if self.output.is_empty() && self.open.is_none() {
            self.begin_item(Kind::Message, message(), out);
        }
        self.close(out);
    }

    /// Begins an item, unless one of this kind is open.
    fn begin_item(&mut self, kind: Kind, mut item: Value, out: &mut String) {
        if self.open.as_ref().is_some_and(|open| open.kind == kind) {
            return;
        }
        self.close(out);
        item["status"] = "in_progress".into();
        let at = self.output.len();
        self.send("response.output_item.added", json!({ "output_index": at, "item": item }), out);
        if let Some(part) = kind.part("") {
            let mut data = place(&item, at);
            data["part"] = part;
            self.send("response.content_part.added", data, out);
        }
        self.open = Some(OpenItem { kind, item, text: String::new() });
    }

    /// More text of the open item.
    fn delta(&mut self, text: &str, out: &mut String) {
        let at = self.output.len();
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let mut data = place(&open.item, at);
        data["delta"] = text.into();
        let kind = format!("{}.delta", open.kind.events());
        self.send(&kind, data, out);
    }

    /// Ends the open item.
    fn close(&mut self, out: &mut String) {
        let Some(OpenItem { kind, mut item, text }) = self.open.take() else { return };
        let at = self.output.len();
        let mut data = place(&item, at);
        let field = if kind == Kind::Call { "arguments" } else { "text" };
        data[field] = text.as_str().into();
        self.send(&format!("{}.done", kind.events()), data, out);
        match kind.part(&text) {
            Some(part) => {
                let mut data = place(&item, at);
                data["part"] = part.clone();
                self.send("response.content_part.done", data, out);
                item["content"] = json!([part]);
            }
            None => item["arguments"] = text.into(),
        }
        item["status"] = "completed".into();
        self.send("response.output_item.done", json!({ "output_index": at, "item": item }), out);
        self.output.push(item);
    }
}

fn message() -> Value {
    json!({ "type": "message", "id": new_id("msg_"), "role": "assistant", "content": [] })
}

/// Where the text of an item is.
fn place(item: &Value, at: usize) -> Value {
    json!({ "item_id": item["id"], "output_index": at, "content_index": 0 })
}

impl Writer for ResponseWriter {
    fn whole(&mut self, mut choices: Vec<Complete>, answers: &Answers) -> impl Serialize {
        let choice = choices.pop().unwrap_or_default();
        let (reason, mut events) = (choice.reason(), String::new());
        self.parts(0, choice.parts, answers, &mut events);
        self.last(&mut events);
        self.response(reason, &self.output, answers)
    }

    fn begin(&mut self, answers: &Answers, out: &mut String) {
        let response = self.response("", &[], answers);
        self.send("response.created", json!({ "response": response }), out);
        self.send("response.in_progress", json!({ "response": response }), out);
    }

    fn parts(&mut self, _: usize, parts: Vec<Part>, _: &Answers, out: &mut String) {
        for part in parts {
            match part {
                Part::Thought(text) => {
                    let item = json!({ "type": "reasoning", "id": new_id("rs_"), "summary": [] });
                    self.begin_item(Kind::Reasoning, item, out);
                    self.delta(&text, out);
                }
                Part::Text(text) => {
                    self.begin_item(Kind::Message, message(), out);
                    self.delta(&text, out);
                }
                Part::Call { id, name } => {
                    let item = json!({
                        "type": "function_call", "id": new_id("fc_"), "call_id": id, "name": name,
                        "arguments": "",
                    });
                    self.begin_item(Kind::Call, item, out);
                }
                Part::Arguments(text) => self.delta(&text, out),
                Part::CallEnd(_) => self.close(out),
            }
        }
    }

    fn end(&mut self, _: usize, summary: &Summary, answers: &Answers, out: &mut String) {
        self.last(out);
        let reason = summary.reason.name();
        let response = self.response(reason, &self.output, answers);
        let kind = if reason == "length" { "response.incomplete" } else { "response.completed" };
        self.send(kind, json!({ "response": response }), out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        let error = &error.json(Dialect::OpenAi)["error"];
        let data =
            json!({ "code": error["code"], "message": error["message"], "param": error["param"] });
        self.send("error", data, out);
    }
}
