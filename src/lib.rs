//! Lapwing's facade.

pub mod tokenizer;
