//! The actor runtime: messages, scheduler, workers and queue policies. They are pure state machines;
//! only `drive` uses threads, channels and clocks.

pub mod chunk;
pub mod decide;
pub mod draft;
pub mod drive;
pub mod error;
mod finish;
pub mod handover;
pub mod join;
pub mod message;
pub mod policy;
pub mod prefix;
mod progress;
pub mod routing;
pub mod sample;
pub mod scheduler;
pub mod sequence;
#[cfg(feature = "simulate")]
pub mod simulate;
pub mod stats;
pub mod traced;
pub mod worker;

pub use error::RunError;
