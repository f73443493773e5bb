//! Runs of a whole engine in virtual time, from a request to its last token, for experiments and
//! tests.

mod error;
mod logits;
mod pass_device;
pub mod serving;
pub mod shape_only_device;
pub mod soc;
pub mod speculation;
pub mod virtual_engine;

pub use error::SocRunError;
