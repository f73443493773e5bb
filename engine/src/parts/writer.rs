//! Calls whose arguments become JSON member by member.

use serde_json::Value;

use super::part::Part;
use crate::tools::ToolCall;

/// Writes a call and its arguments as parts.
#[derive(Debug)]
pub(super) struct CallWriter {
    call: ToolCall,
    has_members: bool,
}

impl CallWriter {
    /// Begins a call, with the brace of its arguments.
    pub(super) fn begin(name: &str, parts: &mut Vec<Part>) -> CallWriter {
        let call = ToolCall::new(name, "");
        parts.push(Part::Call { id: call.id.clone(), name: call.name.clone() });
        let mut writer = CallWriter { call, has_members: false };
        writer.write("{", parts);
        writer
    }

    /// Name of the function.
    pub(super) fn name(&self) -> &str {
        &self.call.name
    }

    /// Begins a member.
    pub(super) fn member(&mut self, name: &str, parts: &mut Vec<Part>) {
        let comma = if self.has_members { "," } else { "" };
        self.has_members = true;
        self.write(&format!("{comma}{}:", Value::from(name)), parts);
    }

    /// More of the arguments, in JSON.
    pub(super) fn write(&mut self, json: &str, parts: &mut Vec<Part>) {
        if !json.is_empty() {
            self.call.arguments.push_str(json);
            parts.push(Part::Arguments(json.to_owned()));
        }
    }

    /// More of a value that is a text, whose quotation marks are written apart.
    pub(super) fn text(&mut self, text: &str, parts: &mut Vec<Part>) {
        let quoted = Value::from(text).to_string();
        self.write(&quoted[1..quoted.len() - 1], parts);
    }

    /// Ends the call, whose arguments are complete or cut off.
    pub(super) fn end(mut self, is_complete: bool, parts: &mut Vec<Part>) {
        if is_complete {
            self.write("}", parts);
        }
        parts.push(Part::CallEnd(self.call));
    }
}
