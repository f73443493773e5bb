//! The longest dependency chain of runs: a lower bound of the total time for any order of the runs.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::chunk::Chunk;
use crate::sequence::SequenceId;
use lapwing_plan::Phase;

/// Dependency chains of completed runs, with their times without contention.
///
/// A chunk is a chain of its stages. Each stage adds its longest part and the time of its merge.
/// Chunks of a prompt may overlap. A decode chunk depends on the decode chunk before it and on all
/// earlier rows of its sequences.
#[derive(Debug, Default)]
pub(super) struct Bound {
    chunks: BTreeMap<u64, Chain>,
    /// By sequence: the longest chain that ends with one of its chunks.
    ready: BTreeMap<SequenceId, Duration>,
    /// The longest chain that ends with a decode chunk.
    decoded: Duration,
    longest: Duration,
}

/// The chain that ends with a chunk.
#[derive(Debug)]
struct Chain {
    decodes: bool,
    /// Time before the present stage.
    done: Duration,
    stage: usize,
    /// The longest part of the present stage so far.
    part: Duration,
}

impl Bound {
    /// Length of the longest chain.
    pub(super) fn length(&self) -> Duration {
        self.longest
    }

    /// Records the end of a run of a chunk's present stage.
    pub(super) fn ran(&mut self, chunk: &Chunk, alone: Duration) {
        let chain = self.chain(chunk);
        if chain.stage != chunk.cursor {
            chain.done += std::mem::take(&mut chain.part);
            chain.stage = chunk.cursor;
        }
        chain.part = chain.part.max(alone);
        self.reach(chunk);
    }

    /// Records the end of the merge of a chunk's present stage.
    pub(super) fn merged(&mut self, chunk: &Chunk, time: Duration) {
        let chain = self.chain(chunk);
        chain.done += std::mem::take(&mut chain.part) + time;
        self.reach(chunk);
    }

    fn chain(&mut self, chunk: &Chunk) -> &mut Chain {
        let decodes = chunk.phase != Phase::Prefill;
        if decodes && !self.chunks.contains_key(&chunk.id) {
            // Earlier decode chunks have ended.
            self.chunks.retain(|_, chain| !chain.decodes);
        }
        let ready = &self.ready;
        let before = || chunk.sequences.iter().filter_map(|rows| ready.get(&rows.sequence));
        let start = match chunk.phase {
            Phase::Prefill => Duration::ZERO,
            Phase::Decode => before().copied().max().unwrap_or_default().max(self.decoded),
            // Earlier prompt rows of its sequences may still be in flight.
            Phase::Mixed => self.decoded,
        };
        let chain = Chain { decodes, done: start, stage: chunk.cursor, part: Duration::ZERO };
        self.chunks.entry(chunk.id).or_insert(chain)
    }

    fn reach(&mut self, chunk: &Chunk) {
        let Some(chain) = self.chunks.get(&chunk.id) else { return };
        let length = chain.done + chain.part;
        self.longest = self.longest.max(length);
        if chain.decodes {
            self.decoded = self.decoded.max(length);
        }
        for rows in &chunk.sequences {
            let ready = self.ready.entry(rows.sequence).or_default();
            *ready = (*ready).max(length);
        }
    }
}
