//! The whole engine with real models, compared with llama.cpp's results in `tests/reference`.
//!
//! Models come from the cache, vocabularies from llama.cpp's sources. `sh tests/all.sh` fetches them; where
//! one is missing, the tests that need it say so on stderr and end.

mod a_caller_is_blocked;
#[cfg(feature = "compare")]
mod a_claim_is_wrong;
mod a_draft_changes_a_token;
mod a_draft_on_other_devices;
#[cfg(feature = "structured")]
mod a_grammar_is_hostile;
#[cfg(feature = "structured")]
mod a_model_cannot_chat;
mod a_model_has_no_tokenizer;
mod a_policy_is_ignored;
mod a_predictor_by_default_changes_a_token;
mod a_predictor_changes_a_token;
mod a_prefix_changes_a_token;
mod a_prepared_engine_is_cold;
#[cfg(feature = "qnn")]
mod a_qnn_device_computes_otherwise;
mod a_ranking_is_wrong;
mod a_recomputation_is_not_told;
mod a_recording_hides_experts;
mod a_recording_is_wrong;
#[cfg(feature = "serve")]
mod a_server_fails_a_client;
mod a_state_is_wrong;
mod a_strategy_changes_a_token;
mod a_strategy_panics;
#[cfg(feature = "structured")]
mod a_template_is_not_understood;
mod a_token_differs_from_llama_cpp;
mod a_type_has_no_name;
#[cfg(all(feature = "schemars", feature = "serve"))]
mod a_typed_answer_is_wrong;
mod a_wrong_call_breaks_the_engine;
#[cfg(feature = "structured")]
mod an_answer_breaks_its_grammar;
#[cfg(feature = "structured")]
mod an_answer_is_invalid_for_its_schema;
mod an_embedding_is_wrong;
mod an_embedding_program_stumbles;
mod an_encoder_is_wrong;
#[cfg(feature = "opencl")]
mod an_opencl_device_chooses_other_experts;
#[cfg(feature = "opencl")]
mod an_opencl_device_computes_otherwise;
#[cfg(feature = "opencl")]
mod an_opencl_device_forgets_a_state;
#[cfg(all(feature = "opencl", feature = "openvino"))]
mod an_opencl_device_serves_all_at_once;
#[cfg(feature = "opencl")]
mod an_opencl_profile_is_of_another_use;
#[cfg(feature = "openvino")]
mod an_openvino_device_computes_otherwise;
mod an_own_cost_model_is_ignored;
#[cfg(feature = "compare")]
mod an_own_strategy_has_no_name;
mod batching_changes_a_token;
#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/encoder.rs"]
mod encoder;
mod experts_change_a_token;
mod experts_on_two_devices_change_a_token;
#[cfg(target_os = "linux")]
mod mapped_weights_change_a_token;
mod perplexity_differs_from_llama_cpp;
mod sampling_is_not_repeatable;
mod shared_keys_are_wrong;
mod simulated;
mod support;
mod text_becomes_other_ids;
#[cfg(feature = "structured")]
#[path = "../support/with_template.rs"]
mod with_template;
