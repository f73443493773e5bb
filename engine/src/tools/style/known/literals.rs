//! Styles of names with literals.

use super::super::{Form, Literals, Style};
use super::{LIST, NO_LINES};

const CALLS: Form =
    Form::Literals(Literals { begin: "", brackets: ['(', ')'], assign: '=', quote: None });

/// Gemma 4.
pub(super) static GEMMA4: Style = Style {
    name: "gemma4",
    signs: &[&["<|tool_call>call:"]],
    open: &["<|tool_call>"],
    close: "<tool_call|>",
    around: NO_LINES,
    form: Form::Literals(Literals {
        begin: "call:",
        brackets: ['{', '}'],
        assign: ':',
        quote: Some("<|\"|>"),
    }),
    turn: None,
};

/// FunctionGemma.
pub(super) static FUNCTION_GEMMA: Style = Style {
    name: "function-gemma",
    signs: &[&["<start_function_call>"]],
    open: &["<start_function_call>"],
    close: "<end_function_call>",
    around: NO_LINES,
    form: Form::Literals(Literals {
        begin: "call:",
        brackets: ['{', '}'],
        assign: ':',
        quote: Some("<escape>"),
    }),
    turn: None,
};

/// MiniCPM 3 and 4.
pub(super) static PYTHON_BLOCK: Style = Style {
    name: "python-block",
    signs: &[&["<|tool_call_start|>", "```python"]],
    open: &["<|tool_call_start|>"],
    close: "<|tool_call_end|>",
    around: ["\n```python\n", "\n```\n"],
    form: CALLS,
    turn: None,
};

/// LFM2 and LFM2.5, of which some templates show no calls.
pub(super) static PYTHON: Style = Style {
    name: "python",
    signs: &[&["<|tool_call_start|>"], &["<|tool_list_start|>"], &["List of tools: ["]],
    open: &["<|tool_call_start|>"],
    close: "<|tool_call_end|>",
    around: LIST,
    form: CALLS,
    turn: None,
};
