//! Research: strategies compared on real devices, simulated devices and machines in virtual time, and loads. The crate
//! `lapwing` exports it.

pub mod compare;
#[cfg(feature = "simulate")]
pub mod load;
#[cfg(feature = "simulate")]
pub mod simulate;
#[cfg(feature = "simulate")]
pub mod study;
#[cfg(feature = "simulate")]
pub mod table;
