//! Styles of a name and a JSON object.

use super::super::{Form, Named, Style, Turn};
use super::NO_LINES;

/// A name and JSON.
const fn named(begin: &'static str, between: &'static str, end: &'static str) -> Form {
    Form::Named(Named { begin, id_end: "", within: ["", ""], skipped: "", between, end })
}

/// Kimi K2.
pub(super) static KIMI_K2: Style = Style {
    name: "kimi-k2",
    signs: &[&["<|tool_calls_section_begin|>"]],
    open: &["<|tool_calls_section_begin|>"],
    close: "<|tool_calls_section_end|>",
    around: NO_LINES,
    form: Form::Named(Named {
        begin: "<|tool_call_begin|>",
        id_end: "",
        within: ["functions.", ":0"],
        skipped: "",
        between: "<|tool_call_argument_begin|>",
        end: "<|tool_call_end|>",
    }),
    turn: None,
};

/// DeepSeek R1 and V3.
pub(super) static DEEPSEEK_R1: Style = Style {
    name: "deepseek-r1",
    signs: &[&["<｜tool▁call▁begin｜>", "```json"]],
    open: &["<｜tool▁calls▁begin｜>"],
    close: "<｜tool▁calls▁end｜>",
    around: NO_LINES,
    form: named(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        "\n```json\n",
        "\n```<｜tool▁call▁end｜>",
    ),
    turn: None,
};

/// DeepSeek V3.1.
pub(super) static DEEPSEEK_V3_1: Style = Style {
    name: "deepseek-v3.1",
    signs: &[&["<｜tool▁call▁begin｜>"]],
    open: &["<｜tool▁calls▁begin｜>"],
    close: "<｜tool▁calls▁end｜>",
    around: NO_LINES,
    form: named("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    turn: None,
};

/// Mistral Small 3.2, Devstral, Ministral 3.
pub(super) static MISTRAL: Style = Style {
    name: "mistral",
    signs: &[&["[TOOL_CALLS]", "[ARGS]"]],
    open: &["[TOOL_CALLS]"],
    close: "",
    around: NO_LINES,
    form: Form::Named(Named {
        begin: "",
        id_end: "",
        within: ["", ""],
        skipped: "[CALL_ID]",
        between: "[ARGS]",
        end: "",
    }),
    turn: None,
};

/// Functionary 3.1.
pub(super) static FUNCTIONARY: Style = Style {
    name: "functionary",
    signs: &[&["<function="]],
    open: &["<function="],
    close: "</function>",
    around: NO_LINES,
    form: named("", ">", ""),
    turn: None,
};

/// Functionary 3.2, whose messages each begin with their recipient; that of the text is `all`.
pub(super) static FUNCTIONARY_RECIPIENTS: Style = Style {
    name: "functionary-recipients",
    signs: &[&[">>>${recipient}", ">>>all"]],
    open: &[">>>"],
    close: "",
    around: NO_LINES,
    form: named("", "\n", ""),
    turn: Some(Turn { start: "", text: [">>>all\n", ""], end: "", is_begun: true }),
};

/// Solar Open.
pub(super) static SOLAR_OPEN: Style = Style {
    name: "solar-open",
    signs: &[&["<|tool_call:begin|>", "<|tool_call:args|>"]],
    open: &["<|tool_calls|>"],
    close: "",
    around: NO_LINES,
    form: Form::Named(Named {
        begin: "<|tool_call:begin|>",
        id_end: "<|tool_call:name|>",
        within: ["", ""],
        skipped: "",
        between: "<|tool_call:args|>",
        end: "<|tool_call:end|>",
    }),
    turn: Some(Turn {
        start: "<|begin|>assistant",
        text: ["<|content|>", "<|end|>"],
        end: "<|calls|>",
        is_begun: false,
    }),
};

/// GLM 4, whose answer as a whole is a name and a line with the arguments.
pub(super) static GLM_4: Style = Style {
    name: "glm-4",
    signs: &[&["<|observation|>"]],
    open: &[],
    close: "",
    around: NO_LINES,
    form: named("", "\n", ""),
    turn: None,
};
