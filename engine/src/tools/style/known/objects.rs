//! Styles of JSON objects.

use super::super::{Form, Objects, Style, Turn};
use super::{LINES, LIST, NO_LINES};

/// Objects with a name and arguments.
const OBJECTS: Form =
    Form::Objects(Objects { name: Some("name"), arguments: "arguments", number: None });

/// An answer that is JSON as a whole, as of Llama 3.
pub(crate) static BARE: Style = Style {
    name: "bare",
    signs: &[],
    open: &[],
    close: "",
    around: NO_LINES,
    form: Form::Objects(Objects { name: Some("name"), arguments: "parameters", number: None }),
    turn: None,
};

/// JSON between tags, as of Hermes, Qwen 2.5 and 3, Granite 4, EXAONE 4, SmolLM3 and most others.
pub(crate) static TAGGED: Style = Style {
    name: "tagged",
    signs: &[&["<tool_call>"]],
    open: &["<tool_call>"],
    close: "</tool_call>",
    around: LINES,
    form: OBJECTS,
    turn: None,
};

/// Command R7B, Command A and their successors.
pub(super) static COHERE: Style = Style {
    name: "cohere",
    signs: &[&["<|START_ACTION|>"]],
    open: &["<|START_ACTION|>"],
    close: "<|END_ACTION|>",
    around: ["[\n    ", "\n]"],
    form: Form::Objects(Objects {
        name: Some("tool_name"),
        arguments: "parameters",
        number: Some("tool_call_id"),
    }),
    turn: None,
};

/// Command R and R+.
pub(super) static COMMAND_R: Style = Style {
    name: "command-r",
    signs: &[&["Action:", "tool_name"]],
    open: &["Action:\n```json"],
    close: "```",
    around: ["\n[\n    ", "\n]"],
    form: Form::Objects(Objects { name: Some("tool_name"), arguments: "parameters", number: None }),
    turn: None,
};

/// Apertus.
pub(super) static APERTUS: Style = Style {
    name: "apertus",
    signs: &[&["<|tools_prefix|>"]],
    open: &["<|tools_prefix|>"],
    close: "<|tools_suffix|>",
    around: LIST,
    form: Form::Objects(Objects { name: None, arguments: "", number: None }),
    turn: None,
};

/// Nemotron Nano 1 and 2.
pub(super) static NEMOTRON: Style = Style {
    name: "nemotron",
    signs: &[&["<TOOLCALL>"]],
    open: &["<TOOLCALL>"],
    close: "</TOOLCALL>",
    around: LIST,
    form: OBJECTS,
    turn: None,
};

/// Hunyuan, MiniMax M1, Apriel.
pub(super) static TAGGED_LIST: Style = Style {
    name: "tagged-list",
    signs: &[&["<tool_calls>"]],
    open: &["<tool_calls>"],
    close: "</tool_calls>",
    around: LIST,
    form: OBJECTS,
    turn: None,
};

/// Mistral 7B v0.3, Nemo.
pub(super) static MISTRAL_LIST: Style = Style {
    name: "mistral-list",
    signs: &[&["[TOOL_CALLS]"]],
    open: &["[TOOL_CALLS]"],
    close: "",
    around: LIST,
    form: OBJECTS,
    turn: None,
};

/// Phi-4-mini; Firefunction writes the second text.
pub(super) static PHI4: Style = Style {
    name: "phi4",
    signs: &[&["<|/tool|>"], &["functools["]],
    open: &["<|tool_call|>", "functools["],
    close: "<|/tool_call|>",
    around: LIST,
    form: OBJECTS,
    turn: None,
};

/// Granite 3.
pub(super) static GRANITE3: Style = Style {
    name: "granite3",
    signs: &[&["<|tool_call|>"]],
    open: &["<|tool_call|>", "<tool_call>"],
    close: "",
    around: LIST,
    form: OBJECTS,
    turn: None,
};

/// GigaChat 3.1.
pub(super) static GIGACHAT: Style = Style {
    name: "gigachat",
    signs: &[&["<|function_call|>"]],
    open: &["<|function_call|>"],
    close: "",
    around: NO_LINES,
    form: OBJECTS,
    turn: None,
};

/// GigaChat 3.0, whose calls are a message of another role.
pub(super) static GIGACHAT3: Style = Style {
    name: "gigachat3",
    signs: &[&["<|role_sep|>", "<|message_sep|>"]],
    open: &["<|message_sep|>\n\nfunction call<|role_sep|>"],
    close: "",
    around: ["\n", ""],
    form: OBJECTS,
    turn: Some(Turn { start: "", text: ["", ""], end: "<|message_sep|>", is_begun: false }),
};
