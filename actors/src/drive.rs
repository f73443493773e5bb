//! Drivers: the only place that touches threads, channels and time. Both run the same state
//! machines.

pub mod live;
pub mod mailbox;
pub mod measure;
mod modelled;
pub mod off_thread;
mod record;
pub mod simulated;
pub mod soc;
pub mod twin;
pub mod virtual_engine;
pub mod wait;
