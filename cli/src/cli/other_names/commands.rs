//! Commands of other programs.

/// What a command means here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// These words.
    Words(&'static [&'static str]),
    /// Nothing; the sentence says what to type instead.
    Instead(&'static str),
}

use Meaning::{Instead, Words};

/// Each command, and its meaning.
pub(super) const COMMANDS: &[(&str, Meaning)] = &[
    ("list", Words(&["models"])),
    ("ls", Words(&["models"])),
    ("show", Words(&["inspect"])),
    ("info", Words(&["inspect"])),
    ("rm", Words(&["models", "--remove"])),
    ("remove", Words(&["models", "--remove"])),
    ("get", Words(&["pull"])),
    ("download", Words(&["pull"])),
    ("server", Words(&["serve"])),
    ("complete", Words(&["run"])),
    ("generate", Words(&["run"])),
    ("version", Words(&["--version"])),
    (
        "stop",
        Instead(
            "a model is freed when its command ends, and in `lapwing serve` after --keep-alive SECONDS \
             without requests; Ctrl-C or SIGTERM ends the server",
        ),
    ),
    (
        "create",
        Instead(
            "a model is a .gguf file; `lapwing run -m FILE.gguf --system TEXT` gives it a system message, \
             and `lapwing serve -m NAME=FILE.gguf` a name",
        ),
    ),
    ("cp", Instead("`lapwing serve -m NAME=MODEL` gives a model another name")),
    ("push", Instead("models are published with the hub's own tools")),
    ("signin", Instead("the variable HF_TOKEN holds the token of the hub")),
    ("login", Instead("the variable HF_TOKEN holds the token of the hub")),
    ("signout", Instead("the variable HF_TOKEN holds the token of the hub")),
    (
        "quantize",
        Instead("--requant FORM requantises when a model is loaded, as in --requant q8_0"),
    ),
];

/// The meaning of a command's name, if it is one of other programs.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
}
