//! Kernels against the naive reference, weight files, KV pages, and NPU graphs. Each file is named after
//! the defect that its tests rule out.
#![cfg(not(loom))]

mod a_branch_sees_a_wrong_key;
mod a_convolution_depends_on_its_chunks;
mod a_correction_is_inexact;
mod a_format_has_other_values;
mod a_graph_is_evicted_too_early;
mod a_graph_runs_twice;
mod a_kernel_differs_from_the_reference;
#[cfg(target_os = "linux")]
mod a_mapped_file_changes;
#[cfg(target_os = "linux")]
mod a_model_is_larger_than_memory;
mod a_page_leaks;
#[cfg(feature = "qnn")]
mod a_qnn_graph_differs;
#[cfg(feature = "qnn")]
mod a_qnn_product_of_integers_differs;
mod a_ready_graph_is_not_there;
mod a_result_depends_on_its_batch;
mod a_rotation_differs_from_its_definition;
mod a_row_reaches_a_wrong_expert;
mod a_row_scale_is_inexact;
mod a_sink_is_forgotten;
mod a_split_model_is_incomplete;
mod a_state_adds_up_wrongly;
mod a_sum_of_a_row_is_wrong;
mod a_task_panics;
mod a_tensor_table_is_hostile;
mod a_weight_file_is_hostile;
mod a_weight_file_is_truncated;
mod a_weight_file_loses_values;
mod a_wrong_expert_is_chosen;
mod a_wrong_graph_serves;
mod a_wrong_value_fails_late;
mod an_npu_computes_something_else;
mod an_npu_run_is_lost;
mod an_op_of_cpus_differs_from_the_reference;
#[cfg(feature = "openvino")]
mod an_openvino_graph_differs;
mod an_outlier_is_lost;
mod attention;
mod attention_depends_on_its_division;
mod attention_sees_a_wrong_key;
mod gguf_bytes;
mod kept_weights_are_wrong;
mod npu;
#[cfg(any(feature = "openvino", feature = "qnn"))]
mod npu_libraries;
#[cfg(feature = "openvino")]
mod openvino;
mod parts_are_merged_wrongly;
mod requantised_values_are_far_off;
mod requantised_weights_are_mixed_up;
mod support;
mod weights_are_packed_twice;
