//! A cost model fitted to a profile: a measured point is used exactly, other points are predicted,
//! and the cross-validated error is part of the result.

mod curve;
mod device;
mod errors;
mod fitted;
mod group;
mod trust;

pub use curve::{Curve, Point};
pub use device::DeviceFit;
pub use errors::Errors;
pub use fitted::{Fitted, FittedTimes};
pub use trust::Trust;

#[cfg(test)]
mod tests;
