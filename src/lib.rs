//! Lapwing's facade.

pub mod chat;
#[cfg(feature = "fetch")]
pub mod models;
pub mod tokenizer;
