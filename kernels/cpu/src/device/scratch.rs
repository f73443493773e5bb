//! Buffers that a device reuses, so that a step allocates nothing.

use super::read_ahead::ReadBuffers;
use crate::attention::AttentionSequence;
use crate::context::Cpu;
use crate::gemm::QuantizedInputs;
use crate::rope::{RopeAngles, RopeFreqs};
use lapwing_model::device::{ExpertLoad, Observer, RowsOfExpert, Slot};
use lapwing_model::graph::ValueId;
use std::cell::RefCell;

/// Buffers of one run.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Values of the stage, by node; empty between runs.
    pub(super) written: Vec<Option<Slot>>,
    pub(super) sequences: Sequences,
    pub(super) matmul_inputs: MatmulInputs,
    pub(super) angles: Angles,
    pub(super) reading: ReadBuffers,
    pub(super) loads: RefCell<ExpertLoads>,
}

/// How the latest experts divided their rows.
#[derive(Debug, Default)]
pub(super) struct ExpertLoads {
    /// Until it is reported.
    pub(super) load: Option<ExpertLoad>,
    /// Those that have rows.
    pub(super) each: Vec<RowsOfExpert>,
}

impl ExpertLoads {
    /// Reports the load of a node, if it had experts.
    pub(super) fn report(&mut self, node: usize, observer: &mut dyn Observer) {
        if let Some(load) = self.load.take() {
            observer.routed(node, load, &self.each);
        }
    }
}

/// Quantised inputs of matmuls.
#[derive(Debug, Default)]
pub(super) struct MatmulInputs {
    /// Inputs of the current fusion.
    pub(super) current: QuantizedInputs,
    /// Its output, quantised on the fly for the next fusion.
    pub(super) next: QuantizedInputs,
    /// The value that `next` holds.
    pub(super) value: Option<ValueId>,
}

impl MatmulInputs {
    /// Whether the previous fusion has quantised this value; `current` then holds it.
    pub(super) fn take(&mut self, value: ValueId) -> bool {
        let has = self.value == Some(value);
        if has {
            self.value = None;
            std::mem::swap(&mut self.current, &mut self.next);
        }
        has
    }
}

/// The angles of every rotary embedding for the latest positions, shared by all stages of a step.
#[derive(Debug, Default)]
pub(super) struct Angles {
    positions: Vec<u32>,
    of_rope: Vec<RopeAngles>,
}

impl Angles {
    /// Computes the angles for rows at `positions`, unless it has them.
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

    /// Angles of the rotary embedding with this index in the graph.
    pub(super) fn of(&self, rope: usize) -> &RopeAngles {
        &self.of_rope[rope]
    }
}

/// Memory for a list of sequences.
#[derive(Debug, Default)]
pub(super) struct Sequences(Vec<AttentionSequence<'static>>);

impl Sequences {
    /// Calls `f` with `sequences` as a slice.
    pub(super) fn with<'a, R>(
        &mut self,
        sequences: impl Iterator<Item = AttentionSequence<'a>>,
        f: impl FnOnce(&[AttentionSequence<'a>]) -> R,
    ) -> R {
        let mut room: Vec<AttentionSequence<'a>> = std::mem::take(&mut self.0);
        room.extend(sequences);
        let result = f(&room);
        room.clear();
        // Collecting in place reuses the memory.
        self.0 =
            room.into_iter().map(|sequence| AttentionSequence { pages: &[], ..sequence }).collect();
        result
    }
}
