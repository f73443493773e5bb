//! Names of a scenario's settings.

/// What [`Scenario::set`](super::Scenario::set) can change, beside the numbers of the processors.
pub const SETTINGS: [&str; 12] = [
    "soc",
    "model",
    "prompt",
    "decode",
    "strategy",
    "fast-sync",
    "order-swap",
    "chunk",
    "interference",
    "verify",
    "stepped-preparation",
    "seed",
];

/// Of these settings and numbers only whole numbers mean anything.
pub(super) const WHOLE_NUMBERS: [&str; 6] =
    ["prompt", "decode", "chunk", "verify", "seed", "npu.tile"];
