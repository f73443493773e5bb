//! A function of each value.

use super::{OpInfo, OpKind, OpShape, Work};
use crate::op::Curve;

pub(super) const INFO: OpInfo = OpInfo::new("curve", 11, OpKind::Elementwise);

/// The exact GELU is a polynomial of degree 5, an exponential and a division.
pub(super) fn work(at: &OpShape<'_>, curve: Curve) -> Work {
    Work::of_values(match curve {
        Curve::Gelu => 18 * at.out(),
        Curve::GeluTanh => 10 * at.out(),
        Curve::Xielu(_) => 12 * at.out(),
        Curve::ReluSquared | Curve::Clamp { .. } => 2 * at.out(),
        Curve::Sigmoid => 4 * at.out(),
        Curve::Softplus => 3 * at.out(),
        Curve::Exp => at.out(),
    })
}
