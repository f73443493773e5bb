//! What the rows of a chunk are.

/// What a chunk's rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Rows of prompts.
    Prefill,
    /// One generated token of each sequence.
    Decode,
    /// Both.
    Mixed,
}

impl Phase {
    /// Name on a timeline.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
            Phase::Mixed => "mixed",
        }
    }
}
