//! Strategies, placements and time models against brute force, closed forms and the published cuts,
//! without actors.
#![cfg(not(loom))]

mod a_bound_exceeds_a_schedule;
mod a_bound_is_above_a_route;
mod a_cut_by_experts_leaves_one_out;
mod a_decode_step_is_cut_as_prefill;
mod a_moment_is_rated_wrongly;
mod a_stored_plan_differs;
mod an_array_has_no_steps;
mod attention_flops;
mod coverage;
mod experts;
mod memory;
mod placing;
mod prompts_idle_devices;
mod setup;
mod strategies;
mod support;
