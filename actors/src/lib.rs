//! Actors order: messages, scheduler, workers, plans, policies. Pure state machines; only
//! `drive` touches threads, channels and time.

pub mod drive;
pub mod error;
pub mod join;
pub mod message;
pub mod policy;
pub mod sample;
pub mod scheduler;
pub mod sequence;
#[cfg(feature = "simulate")]
pub mod simulate;
pub mod worker;

pub use error::RunError;
