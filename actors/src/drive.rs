//! Drivers: the only place that touches threads, channels and time. Both run the same state
//! machines.

pub mod live;
pub mod mailbox;
pub mod measure;
mod modelled;
pub mod off_thread;
mod record;
#[cfg(feature = "simulate")]
pub mod simulated;
pub mod wait;
