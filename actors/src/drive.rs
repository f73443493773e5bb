//! Drivers: the only code that uses threads, channels and clocks. The live and the simulated driver
//! run the same state machines.

pub mod blocking;
pub mod live;
pub mod mailbox;
pub mod masks;
pub mod measure;
mod modelled;
mod record;
#[cfg(feature = "simulate")]
pub mod simulated;
pub mod wait;
