//! A loop that measures a peak, and the loops of an instruction set.

/// A loop over one instruction, or the few that stand for one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeakLoop {
    /// The instructions, as assemblers write them.
    pub(crate) instructions: &'static str,
    /// Operations of one iteration; a multiply-add is two.
    pub(crate) ops: u64,
    /// Runs so many iterations on this thread.
    pub(crate) run: fn(u64),
}

/// Loops of an instruction set; `None` where it has no such instruction, or none is known here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeakLoops {
    /// Products of 8-bit integers, summed in 32 bits.
    pub(crate) int8: Option<PeakLoop>,
    /// Products of bfloat16 pairs, summed in `f32`.
    pub(crate) bf16: Option<PeakLoop>,
    /// MicroKernel-add of `f32`.
    pub(crate) f32: Option<PeakLoop>,
}
