//! Drivers: the only place that touches threads, channels and time. Both run the same state
//! machines.

pub mod blocking;
pub mod live;
pub mod mailbox;
pub mod measure;
mod modelled;
mod record;
#[cfg(feature = "simulate")]
pub mod simulated;
pub mod wait;
