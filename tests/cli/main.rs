//! The command line as users see it: output, errors and exit codes. Runs offline, with models of a
//! few kilobytes.

mod a_chat_forgets;
mod a_colour_escapes;
mod a_command_line_by_memory_misleads;
mod a_comparison_misleads;
mod a_depth_misleads;
mod a_draft_misleads;
mod a_driver_fails;
mod a_fit_misleads;
mod a_json_form_changes;
mod a_json_form_of_measurements_changes;
mod a_kernel_misleads;
mod a_legacy_file_is_misread;
mod a_limit_or_a_damaged_file_stops_a_run;
mod a_load_misleads;
mod a_machine_is_simulated_as_another;
mod a_mask_misleads;
mod a_model_in_a_cache_is_not_found;
mod a_peer_misleads;
mod a_prediction_misleads;
mod a_prefix_is_not_kept;
mod a_preparation_misleads;
mod a_recording_is_lost;
mod a_report_misleads;
mod a_run_cannot_be_stopped;
mod a_sharing_misleads;
mod a_signal_meets_drivers;
mod a_simulation_has_other_devices;
mod a_simulation_misleads;
mod a_speculation_misleads;
mod a_study_is_lost;
mod a_sweep_misleads;
#[cfg(unix)]
mod a_terminal_is_left_in_disorder;
mod a_timeline_misleads;
mod an_activation_is_out_of_range;
mod an_answer_breaks_its_grammar;
mod an_error_is_unclear;
mod an_exported_folder_misleads;
mod an_opencl_driver_is_missing;
mod an_option_is_ignored;
mod an_overlap_misleads;
#[path = "../support/cases.rs"]
mod cases;
mod recordings;
mod requantised_weights_mislead;
mod support;
#[path = "../support/with_template.rs"]
mod with_template;
