//! Profiles: measured times of ops, with the machine and model on which they were measured.

mod check;
pub(crate) mod data;
pub(crate) mod error;
mod file;
mod identity;

pub use data::{DeviceProfile, Machine, PrepareSample, Profile, Sample, Spread, VERSION, nanos};
pub use error::ProfileError;
pub use identity::Identity;
pub(crate) use identity::file_name;

#[cfg(test)]
mod tests;
