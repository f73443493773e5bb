//! Options of Ollama's commands.

use super::row::Means::{Instead, Words};
use super::row::Takes::{Nothing, Value};
use super::row::{Row, SWITCH, holds, instead, renamed, row};

const SHOWN: &str = "`lapwing inspect NAME` shows all of it";
const THOUGHTS: &str = "an answer is printed as the model writes it, with its thoughts; `lapwing serve` \
                        has fields for them";

/// The options.
pub(crate) const ROWS: &[Row] = &[
    row(&["--format"], Value, Words(&["--json-schema", "{\"type\":\"object\"}"])).of(&["json"]),
    renamed(&["--format"], "--json-schema").within(&["run", "chat"]),
    row(&["--verbose"], Nothing, Words(&["--stats"])),
    holds(&["--nowordwrap"]),
    row(
        &["--keepalive"],
        Value,
        Instead(
            "the model is freed when the command ends; `lapwing serve --keep-alive \
             SECONDS` keeps it",
        ),
    ),
    row(&["--think"], SWITCH, Instead(THOUGHTS)),
    instead(&["--hidethinking"], THOUGHTS),
    instead(&["--insecure"], "HF_ENDPOINT names another hub, which may have an http address"),
    instead(&["--modelfile", "--template", "--parameters", "--license"], SHOWN)
        .within(&["inspect"]),
    instead(
        &["--quantize"],
        "--requant FORM requantises when a model is loaded, as in --requant \
             q8_0",
    ),
];
