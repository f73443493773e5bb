//! Runs of a whole engine in virtual time, from a request to its last token, for experiments and
//! tests.

pub mod arrival;
mod error;
mod own_device;
mod pass_graph;
pub mod serving;
pub mod shape_only_device;
pub mod shape_queue;
pub mod soc;
pub mod speculation;
mod tokens;
pub mod traffic;
pub mod virtual_engine;
pub mod workers;

pub use error::SocRunError;
pub use own_device::OwnDevice;
pub use tokens::{TEXTS_MAX, Tokens};
