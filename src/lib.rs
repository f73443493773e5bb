//! Lapwing's facade.

pub mod chat;
pub mod tokenizer;
