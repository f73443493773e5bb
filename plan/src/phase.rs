//! The phase of a chunk: prefill, decode or both.

/// Which rows a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Rows of prompts.
    Prefill,
    /// One generated token of each sequence.
    Decode,
    /// Rows of prompts and generated tokens.
    Mixed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 3] = [Phase::Prefill, Phase::Decode, Phase::Mixed];

    /// Name on the timeline.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
            Phase::Mixed => "mixed",
        }
    }
}
