//! Lapwing's facade.

#[cfg(feature = "fetch")]
pub mod models;
