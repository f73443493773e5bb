//! Styles of elements in elements.

use super::super::{Form, Style, Tree};
use super::LINES;

/// MiniMax M3.
pub(super) static MINIMAX_M3: Style = Style {
    name: "minimax-m3",
    signs: &[&["]<]minimax[>[", "<tool_call>"]],
    open: &["]<]minimax[>[<tool_call>"],
    close: "]<]minimax[>[</tool_call>",
    around: LINES,
    form: Form::Tree(Tree {
        begin: "]<]minimax[>[<invoke name=\"",
        name_end: "\">",
        tag: "]<]minimax[>[",
        item: "item",
        end: "]<]minimax[>[</invoke>",
    }),
    turn: None,
};
