//! Strategies and placements against brute force, closed forms and the published cuts, without
//! actors.

mod attention_flops;
mod coverage;
mod placing;
mod setup;
mod strategies;
mod support;
