//! Traces tell: clock and metrics of a run. Knows no tensor.

pub mod clock;
pub mod metrics;

pub use clock::{Clock, Nanos, OsClock};
pub use metrics::{Spread, Stations};
