//! What a strategy is made from, by its name.

use std::sync::Arc;

use super::{Strategy, StrategyOptions};
use crate::registry::{Entry, Parameter, Parameters};

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
