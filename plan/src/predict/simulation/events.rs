//! Events of a simulation, and the times of parts.

use std::time::Duration;

use crate::predict::chunks::PlannedChunk;

/// A part of a stage of a chunk, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartIndex {
    pub(super) chunk: usize,
    pub(super) stage: usize,
    pub(super) part: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The graphs of this chunk are prepared.
    Prepared(usize),
    Arrived(PartIndex),
    Ran(PartIndex),
    Merged(PartIndex),
}

/// Times of the parts of a chunk alone.
pub(super) struct PartTimes {
    /// By stage, the number of parts before it.
    before: Vec<usize>,
    pub(super) times: Vec<Duration>,
}

impl PartTimes {
    /// Those of a single chunk; none of several.
    pub(super) fn of(chunks: &[PlannedChunk]) -> PartTimes {
        let (mut before, mut count) = (Vec::new(), 0);
        if let [chunk] = chunks {
            for stage in &chunk.route.stages {
                before.push(count);
                count += stage.parts.len();
            }
        }
        PartTimes { before, times: vec![Duration::ZERO; count] }
    }

    pub(super) fn record(&mut self, index: PartIndex, time: Duration) {
        if let Some(before) = self.before.get(index.stage) {
            self.times[before + index.part] = time;
        }
    }
}
