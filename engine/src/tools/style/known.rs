//! The styles of published models.

mod elements;
mod literals;
mod named;
mod objects;
mod trees;

use super::{Form, Style, Turn};
pub(crate) use objects::{BARE, TAGGED};

const NO_LINES: [&str; 2] = ["", ""];
const LINES: [&str; 2] = ["\n", "\n"];
const LIST: [&str; 2] = ["[", "]"];

/// Styles that templates tell, those with more particular signs first.
pub(crate) static KNOWN: [&Style; 36] = [
    &CHANNELS,
    &named::KIMI_K2,
    &elements::DEEPSEEK_V3_2,
    &elements::DEEPSEEK_V4,
    &named::DEEPSEEK_R1,
    &named::DEEPSEEK_V3_1,
    &elements::SEED_OSS,
    &elements::MINIMAX_M2,
    &elements::KIMI_K3,
    &trees::MINIMAX_M3,
    &named::SOLAR_OPEN,
    &named::FUNCTIONARY_RECIPIENTS,
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
    &objects::GIGACHAT3,
    &objects::GRANITE3,
    &elements::MINICPM5,
    &elements::GLM_4_7,
    &elements::GLM_4_5,
    &elements::QWEN3_CODER,
    &objects::TAGGED,
    &named::FUNCTIONARY,
    &named::GLM_4,
];

/// gpt-oss, LLM-jp 4.1.
static CHANNELS: Style = Style {
    name: "channels",
    signs: &[&["<|channel|>", "<|message|>"]],
    open: &[],
    close: "",
    around: NO_LINES,
    form: Form::Channels,
    turn: Some(Turn {
        start: "<|start|>assistant",
        text: ["<|channel|>final<|message|>", ""],
        end: "",
        is_begun: false,
    }),
};
