//! The kernels of a device and their launches.
//!
//! A launch checks that its operands fit in their buffers; kernels replace ids, positions and pages
//! that are out of range. So no launch reads or writes beyond a buffer, whatever the values are.

mod attention;
mod built;
mod curves;
mod experts;
mod gather;
mod heads;
mod kernels;
mod matmul;
mod matrix;
mod persistent;
mod probe;
mod programs;
mod route;
mod rows;
mod shapes;
mod stack;
mod states;
mod sums;
mod target;
mod tuning;
mod variants;
mod views;
mod warm;

pub(super) use attention::{Attention, KvRows, KvWrite, RopeKv};
pub(super) use curves::{Curved, LayerNorm};
pub(super) use experts::{ExpertMatrices, ExpertRoom, Experts};
pub(super) use gather::{Embed, JoinHeads, RepeatValues, SelectRows};
pub(super) use heads::HeadDims;
pub(super) use kernels::Kernels;
pub(super) use matmul::{Fused, MatMul, Norm};
pub(super) use matrix::{Matrix, NORMAL};
#[cfg(test)]
pub(super) use programs::Family;
pub(super) use programs::{KernelSpec, PIECE};
pub(super) use route::{Mix, Route};
pub(super) use rows::{Add, Gated, RESULT, RmsNorm, Rope, RopeHeads, Unary, UnaryOp};
#[cfg(test)]
pub(super) use shapes::{FewRows, ManyRows, Shapes};
pub(super) use stack::Stack;
pub(super) use states::{LinearAttention, ShortConv, Spans, StateRows};
pub(super) use sums::{AddWeighted, Excess, WithLength};
#[cfg(test)]
pub(super) use target::{AS_ON_GPU, LAUNCHED, PERSISTENT};
pub(super) use variants::PERSISTENT_ROWS;
pub(super) use views::{Ints, View};
