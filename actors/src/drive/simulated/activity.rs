//! What devices compute at the same time.

use lapwing_plan::Phase;
use lapwing_traces::Nanos;
use lapwing_traces::event::DraftRole;

use crate::chunk::Chunk;

/// A set of activities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activities(u8);

impl Activities {
    /// A draft model computes.
    pub const DRAFT: Activities = Activities(1);
    /// A step verifies drafted tokens.
    pub const VERIFY: Activities = Activities(2);
    /// A step computes decode rows without drafted tokens.
    pub const DECODE: Activities = Activities(4);
    /// Rows of prompts are computed.
    pub const PROMPT: Activities = Activities(8);

    /// Those of either set.
    #[must_use]
    pub fn and(self, other: Activities) -> Activities {
        Activities(self.0 | other.0)
    }

    fn holds(self, other: Activities) -> bool {
        self.0 & other.0 == other.0
    }

    /// What a chunk is for.
    pub(super) fn of(chunk: &Chunk) -> Activities {
        let step = match chunk.role() {
            Some(DraftRole::Draft) => return Activities::DRAFT,
            Some(DraftRole::Verify) => Activities::VERIFY,
            None => Activities::DECODE,
        };
        match chunk.phase {
            Phase::Prefill => Activities::PROMPT,
            Phase::Decode => step,
            Phase::Mixed => Activities::PROMPT.and(step),
        }
    }
}

/// Time in which devices compute each set of activities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtOnce([Nanos; 16]);

impl AtOnce {
    /// Time in which all of these are computed at once, whatever else is.
    pub fn time(&self, all: Activities) -> Nanos {
        let sets = (0..).zip(&self.0).filter(|(set, _)| Activities(*set).holds(all));
        Nanos(sets.map(|(_, time)| time.0).sum())
    }

    pub(super) fn add(&mut self, set: Activities, nanos: u64) {
        self.0[usize::from(set.0)].0 += nanos;
    }
}
