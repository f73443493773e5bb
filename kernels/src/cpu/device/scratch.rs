//! What a device keeps between runs, so that a step allocates nothing.

use crate::cpu::attention::AttentionSequence;
use crate::cpu::context::Cpu;
use crate::cpu::gemm::QuantizedInputs;
use crate::cpu::rope::{RopeAngles, RopeFreqs};
use crate::device::Slot;
use crate::graph::ValueId;

/// Buffers of one run, for the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Values of the stage, in the order of its nodes; empty between runs.
    pub(super) written: Vec<Option<Slot>>,
    pub(super) sequences: Sequences,
    pub(super) matmul_inputs: MatmulInputs,
    pub(super) angles: Angles,
}

/// QuantizedInputs of activations.
#[derive(Debug, Default)]
pub(super) struct MatmulInputs {
    /// Those of the group that is computed.
    pub(super) now: QuantizedInputs,
    /// Those that it makes of its result for the next group, instead of the result.
    pub(super) next: QuantizedInputs,
    /// The result that `next` has.
    pub(super) value: Option<ValueId>,
}

impl MatmulInputs {
    /// Whether `now` has the inputs of a value, because the group before made them.
    pub(super) fn take(&mut self, value: ValueId) -> bool {
        let has = self.value == Some(value);
        if has {
            self.value = None;
            std::mem::swap(&mut self.now, &mut self.next);
        }
        has
    }
}

/// The angles of every rotary embedding for the latest positions: all stages of a step use them.
#[derive(Debug, Default)]
pub(super) struct Angles {
    positions: Vec<u32>,
    of_rope: Vec<RopeAngles>,
}

impl Angles {
    /// Has them for rows at `positions`.
    pub(super) fn fill<'a>(
        &mut self,
        ctx: &Cpu,
        ropes: impl ExactSizeIterator<Item = &'a RopeFreqs>,
        positions: &[u32],
    ) {
        if self.of_rope.len() == ropes.len() && self.positions == positions {
            return;
        }
        self.positions.clear();
        self.positions.extend_from_slice(positions);
        self.of_rope.resize_with(ropes.len(), RopeAngles::default);
        ropes.zip(&mut self.of_rope).for_each(|(freqs, to)| freqs.fill(ctx, positions, to));
    }

    /// Those of the rotary embedding with that number in the graph.
    pub(super) fn of(&self, rope: usize) -> &RopeAngles {
        &self.of_rope[rope]
    }
}

/// Room for the spans of an attention.
#[derive(Debug, Default)]
pub(super) struct Sequences(Vec<AttentionSequence<'static>>);

impl Sequences {
    /// Calls `f` with `spans` as a slice.
    pub(super) fn with<'a, R>(
        &mut self,
        sequences: impl Iterator<Item = AttentionSequence<'a>>,
        f: impl FnOnce(&[AttentionSequence<'a>]) -> R,
    ) -> R {
        let mut room: Vec<AttentionSequence<'a>> = std::mem::take(&mut self.0);
        room.extend(sequences);
        let result = f(&room);
        room.clear();
        // Collecting in place keeps the memory.
        self.0 =
            room.into_iter().map(|sequence| AttentionSequence { pages: &[], ..sequence }).collect();
        result
    }
}
