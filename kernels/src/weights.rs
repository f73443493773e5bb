//! Weight files.
