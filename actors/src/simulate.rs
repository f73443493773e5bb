//! Runs of a whole engine in virtual time, from the request to its last token: what experiments and
//! tests set up around the simulated driver.

mod error;
mod logits;
pub mod shape_only_device;
pub mod soc;
pub mod virtual_engine;

pub use error::SocRunError;
