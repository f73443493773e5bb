//! A loop that measures peak throughput, and the loops of an instruction set.

/// A loop over one instruction, or over the few that replace it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeakLoop {
    /// The instructions in assembler syntax.
    pub(crate) instructions: &'static str,
    /// Operations of one iteration; a multiply-add is two.
    pub(crate) ops: u64,
    /// Runs this many iterations on the calling thread.
    pub(crate) run: fn(u64),
}

/// The loops of an instruction set; `None` if it has no such instruction or no loop exists for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeakLoops {
    /// int8 products, summed in 32 bits.
    pub(crate) int8: Option<PeakLoop>,
    /// Products of bfloat16 pairs, summed in `f32`.
    pub(crate) bf16: Option<PeakLoop>,
    /// Multiply-adds of `f32`.
    pub(crate) f32: Option<PeakLoop>,
}
