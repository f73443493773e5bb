//! Actors order: messages, scheduler, workers, plans, policies. Pure state machines; only
//! `drive` touches threads, channels and time.

pub mod chunk;
pub mod decide;
pub mod draft;
pub mod drive;
pub mod error;
pub mod join;
pub mod message;
pub mod policy;
mod progress;
pub mod sample;
pub mod scheduler;
pub mod sequence;
#[cfg(feature = "simulate")]
pub mod simulate;
pub mod traced;
pub mod worker;

pub use error::RunError;
