//! The built-in strategies by name.

use std::sync::Arc;

use super::*;
use crate::registry::ChoiceError;

/// All built-in strategies, simplest first.
pub fn registry() -> &'static [StrategyEntry] {
    BUILTIN
}

/// The built-in strategy that a text chooses, with these options: `NAME`, or `NAME:KEY=VALUE,…`.
///
/// # Errors
/// [`ChoiceError`].
pub fn by_name(text: &str, options: &StrategyOptions) -> Result<Arc<dyn Strategy>, ChoiceError> {
    Strategies::builtin().get(text, options)
}

/// Every built-in strategy with these options, in the order of [`registry`].
pub fn all(options: &StrategyOptions) -> Vec<Arc<dyn Strategy>> {
    let known = Strategies::builtin();
    registry().iter().filter_map(|entry| known.get(entry.name(), options).ok()).collect()
}

const BUILTIN: &[StrategyEntry] = &[
    cpu_only::ENTRY,
    gpu_only::ENTRY,
    barrier_per_op::ENTRY,
    layer_split::ENTRY,
    npu_padding::ENTRY,
    online_prepare::ENTRY,
    pipe::ENTRY,
    chunked::ENTRY,
    layer_level::ENTRY,
    row_cut::ENTRY,
    sequence_cut::ENTRY,
    multi_sequence_cut::ENTRY,
    hybrid_cut::ENTRY,
    expert_cut::ENTRY,
    chunk_graph::ENTRY,
    auto_place::ENTRY,
    tensor_level::ENTRY,
    auto::ENTRY,
];
