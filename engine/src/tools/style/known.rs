//! The styles of published models.

mod elements;
mod literals;
mod named;
mod objects;

use super::{Form, Style};
pub(crate) use objects::{BARE, TAGGED};

const NO_LINES: [&str; 2] = ["", ""];
const LINES: [&str; 2] = ["\n", "\n"];
const LIST: [&str; 2] = ["[", "]"];

/// Styles that templates tell, those with more particular signs first.
pub(crate) static KNOWN: [&Style; 31] = [
    &CHANNELS,
    &named::KIMI_K2,
    &elements::DEEPSEEK_V3_2,
    &elements::DEEPSEEK_V4,
    &named::DEEPSEEK_R1,
    &named::DEEPSEEK_V3_1,
    &elements::SEED_OSS,
    &elements::MINIMAX_M2,
    &elements::ATEM,
    &literals::GEMMA4,
    &literals::FUNCTION_GEMMA,
    &objects::COHERE,
    &objects::COMMAND_R,
    &literals::PYTHON_BLOCK,
    &literals::PYTHON,
    &objects::APERTUS,
    &objects::NEMOTRON,
    &elements::HUNYUAN3,
    &objects::TAGGED_LIST,
    &named::MISTRAL,
    &objects::MISTRAL_LIST,
    &objects::PHI4,
    &objects::GIGACHAT,
    &objects::GRANITE3,
    &elements::MINICPM5,
    &elements::GLM_4_7,
    &elements::GLM_4_5,
    &elements::QWEN3_CODER,
    &objects::TAGGED,
    &named::FUNCTIONARY,
    &named::GLM_4,
];

/// gpt-oss.
static CHANNELS: Style = Style {
    name: "channels",
    signs: &[&["<|channel|>", "<|message|>"]],
    open: &[],
    close: "",
    around: NO_LINES,
    form: Form::Channels,
};
