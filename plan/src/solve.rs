//! The solver: the fastest way to run a block on one device or divided between several.
//!
//! T = min( max_i T_i(p_i) + T_sync + T_copy , T_i(all) + T_sync ), over all sets of devices, all
//! p with Σ p_i = all on the grid, and all ways to fill static graphs (HeteroInfer, SOSP 2025,
//! section 4.4). The solver tries row cuts and sequence cuts, which `strategy/cut.rs` explains. A
//! padded row cut is a hybrid cut; a sequence cut with several graph sizes on one device is a
//! multi-sequence cut. T_sync is 0 if the whole block stays on the device that holds its inputs and
//! runs the next block. T_copy is the time to merge the parts of a divided block, and 0 for an
//! undivided one. A block stays undivided if a cut gains nothing.
//!
//! Between two devices, the solver tries every border on the grid. Between three or four devices, it
//! searches row cuts on at most 16 positions (the largest such grid that divides the units evenly)
//! by dynamic programming over the devices. It then moves units from part to part in ever smaller
//! steps down to one unit; this ends at the optimum if a wider part never takes less time. It
//! searches sequence cuts exhaustively, by branch and bound, on at most 32 positions at multiples of
//! 32 rows, without refinement: up to 32 · 32 rows the result is the optimum of the grid. Of more
//! than four devices, only the four that are fastest alone are combined.

pub(crate) mod candidate;
mod covers;
mod features;
pub(crate) mod solver;
mod space;
pub(crate) mod terms;
mod tokens;

pub use candidate::{Candidate, Cut, Solution};
pub use covers::covers;
pub use features::WIDE_ALIGN;
pub use solver::{Problem, Solver};
pub use terms::stage_merge_bytes;
pub use tokens::SEQUENCE_ALIGN;

#[cfg(test)]
mod tests;
