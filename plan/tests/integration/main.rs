//! Time models of plans.
#![cfg(not(loom))]

mod an_array_has_no_steps;
