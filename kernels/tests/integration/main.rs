//! Kernels against the naive reference, and what can go wrong around them.
#![cfg(not(loom))]

mod a_kernel_differs_from_the_reference;
mod a_page_leaks;
mod a_result_depends_on_its_batch;
mod a_task_panics;
mod attention_sees_a_wrong_key;
mod support;
