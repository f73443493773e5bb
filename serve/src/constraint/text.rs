//! Grammars as text.

use lapwing_engine::structured::Grammar;

/// A grammar in llama.cpp's form, whose rules have `::=`, or in Lark's.
pub(super) fn of_text(text: &str) -> Grammar {
    match text.contains("::=") {
        true => Grammar::gbnf(text),
        false => Grammar::lark(text),
    }
}
