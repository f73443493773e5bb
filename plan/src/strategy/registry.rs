//! The built-in strategies by name.

use std::sync::Arc;

use super::*;
use crate::registry::{ChoiceError, Entry, Parameter, Parameters};

/// A strategy that can be chosen by name.
pub type StrategyEntry = Entry<Maker>;

/// A strategy from the options of an engine or a scenario, and from its parameters.
type Make = dyn Fn(&StrategyOptions, &Parameters) -> Arc<dyn Strategy> + Send + Sync;

/// How a strategy is made.
#[derive(Clone)]
pub enum Maker {
    /// By a function of this crate.
    Builtin(fn(&StrategyOptions, &Parameters) -> Arc<dyn Strategy>),
    /// From all others, among which it chooses.
    Auto,
    /// By a function of the program, which may panic.
    Own(Arc<Make>),
}

/// The entry of a built-in strategy.
pub(super) const fn builtin(
    name: &'static str,
    about: &'static str,
    parameters: &'static [Parameter],
    make: fn(&StrategyOptions, &Parameters) -> Arc<dyn Strategy>,
) -> StrategyEntry {
    StrategyEntry::new(name, about, parameters, Maker::Builtin(make))
}

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
    chunk_graph::ENTRY,
    auto_place::ENTRY,
    tensor_level::ENTRY,
    auto::ENTRY,
];
