//! Names of a scenario's settings.

/// Settings that [`Scenario::set`](super::Scenario::set) can change, besides the numbers of the
/// processors.
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

/// Settings and numbers that must be integers.
pub(super) const WHOLE_NUMBERS: [&str; 6] =
    ["prompt", "decode", "chunk", "verify", "seed", "npu.tile"];
