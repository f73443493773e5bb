//! Runs of a whole engine in virtual time, from a request to its last token, for experiments and
//! tests.

mod error;
mod logits;
mod own_device;
mod pass_device;
pub mod serving;
pub mod shape_only_device;
pub mod shape_queue;
pub mod soc;
pub mod speculation;
pub mod virtual_engine;

pub use error::SocRunError;
pub use own_device::OwnDevice;
