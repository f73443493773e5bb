//! Activation of one value times another.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::Activation;

pub(super) const INFO: OpInfo = OpInfo::new("gated", 5, OpKind::Elementwise).in_static_graphs();

pub(super) fn work(at: &OpShape<'_>, activation: Activation) -> Work {
    Work::of_values(match activation {
        Activation::Silu => 5 * at.out(),
        Activation::GeluTanh => 10 * at.out(),
        Activation::Sigmoid => 4 * at.out(),
    })
}
