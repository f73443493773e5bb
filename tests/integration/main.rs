//! The whole engine with real models, compared with llama.cpp's results in `tests/reference`.
//!
//! The models and vocabularies come from the README's test command, which fetches them first.

mod a_caller_is_blocked;
#[cfg(feature = "compare")]
mod a_claim_is_wrong;
mod a_policy_is_ignored;
mod a_recording_is_wrong;
mod a_strategy_changes_a_token;
mod a_strategy_panics;
mod a_token_differs_from_llama_cpp;
mod batching_changes_a_token;
mod perplexity_differs_from_llama_cpp;
mod sampling_is_not_repeatable;
mod simulated;
mod support;
mod text_becomes_other_ids;
