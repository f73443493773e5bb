//! Names of a scenario's settings.

/// Settings that [`Scenario::set`](super::Scenario::set) can change, besides the numbers of the
/// processors.
pub const SETTINGS: [&str; 15] = [
    "soc",
    "device",
    "model",
    "prompt",
    "decode",
    "strategy",
    "fast-sync",
    "order-swap",
    "moment",
    "chunk",
    "permits",
    "interference",
    "verify",
    "stepped-preparation",
    "seed",
];

/// Settings and numbers that must be integers.
pub(super) const WHOLE_NUMBERS: [&str; 7] =
    ["prompt", "decode", "chunk", "permits", "verify", "seed", "npu.tile"];
