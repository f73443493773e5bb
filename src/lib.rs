//! Lapwing's facade.
