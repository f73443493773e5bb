//! Strategies by name: the built-in ones, and those that a program adds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::auto::Auto;
use super::entry::{Maker, StrategyEntry};
use super::guarded::{Guarded, panic_text};
use super::interface::{PlanInput, Strategy};
use super::options::StrategyOptions;
use super::registry::registry;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::registry::{ChoiceError, Chosen, Entry, NameError, Parameter, Parameters, Registry};
use crate::route::Route;

/// The strategies that an engine, a simulated scenario or a comparison knows by name: the built-in
/// ones, and any that a program adds. `auto` chooses among all of them.
///
/// ```
/// use lapwing_plan::registry::Parameter;
/// use lapwing_plan::strategy::{Chunked, LayerSplit, Strategies, StrategyOptions};
///
/// const ROWS: Parameter = Parameter::new("rows", "rows of a chunk", 64.0, 1.0..=1024.0);
///
/// let strategies = Strategies::builtin()
///     .with("mine", "half of the layers", |_| LayerSplit)?
///     .with_parameters("small", "small chunks", &[ROWS], |options, parameters| Chunked {
///         chunk: parameters.count("rows"),
///         order_swap: options.order_swap,
///     })?;
/// for text in ["mine", "small", "small:rows=32"] {
///     let made = strategies.get(text, &StrategyOptions::default())?;
///     assert_eq!(made.name(), text);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Strategies(Registry<Maker>);

impl Strategies {
    /// The built-in strategies.
    pub fn builtin() -> Strategies {
        Strategies(Registry::new("strategy", registry(), &[]))
    }

    /// Adds a strategy: its name, its description in one line, and what makes it from the options of an
    /// engine or a scenario. Reports call it by this name. If making or running it panics, every route
    /// is [`PlanError::Panicked`].
    ///
    /// # Errors
    /// [`NameError`] when the name is taken, empty, or has other characters than letters, digits, `-`
    /// and `_`.
    pub fn with<S: Strategy + 'static>(
        self,
        name: &str,
        about: &str,
        make: impl Fn(&StrategyOptions) -> S + Send + Sync + 'static,
    ) -> Result<Strategies, NameError> {
        self.with_parameters(name, about, &[], move |options, _| make(options))
    }

    /// As [`with`](Strategies::with), with parameters: `NAME:KEY=VALUE,…` chooses the strategy that `make` makes from
    /// these values, and reports call it by this text.
    ///
    /// # Errors
    /// As [`with`](Strategies::with).
    pub fn with_parameters<S: Strategy + 'static>(
        self,
        name: &str,
        about: &str,
        parameters: &'static [Parameter],
        make: impl Fn(&StrategyOptions, &Parameters) -> S + Send + Sync + 'static,
    ) -> Result<Strategies, NameError> {
        let (name, about) = (name.to_owned().into(), about.to_owned().into());
        let make =
            Maker::Own(Arc::new(move |options, parameters| Arc::new(make(options, parameters))));
        self.0.with(Entry { name, about, parameters, make }).map(Strategies)
    }

    /// All strategies: the built-in ones, then the added ones, in order.
    pub fn entries(&self) -> &[StrategyEntry] {
        self.0.entries()
    }

    /// Checks that a text chooses a strategy.
    ///
    /// # Errors
    /// [`ChoiceError`].
    pub fn check(&self, text: &str) -> Result<(), ChoiceError> {
        self.0.find(text).map(|_| ())
    }

    /// The strategy that a text chooses, with these options: `NAME`, or `NAME:KEY=VALUE,…`. Its name is this text.
    ///
    /// # Errors
    /// [`ChoiceError`].
    pub fn get(
        &self,
        text: &str,
        options: &StrategyOptions,
    ) -> Result<Arc<dyn Strategy>, ChoiceError> {
        let Chosen { entry, parameters } = self.0.find(text)?;
        let made = self.made(entry, options, &parameters);
        Ok(match parameters.are_defaults() {
            true => made,
            false => Arc::new(Guarded::named(text, made)),
        })
    }

    /// Every strategy except `auto`, which chooses among them.
    pub fn candidates(&self, options: &StrategyOptions) -> Vec<Arc<dyn Strategy>> {
        let others = self.entries().iter().filter(|entry| !matches!(entry.make, Maker::Auto));
        others.map(|entry| self.made(entry, options, &entry.defaults())).collect()
    }

    /// Text that tells its added strategies from those of other registries; clones have the same. It is
    /// unique while they are alive, and empty without added strategies.
    pub fn identity(&self) -> String {
        let own = self.entries().iter().filter_map(|entry| match &entry.make {
            Maker::Own(make) => Some(format!("{}@{:p} ", entry.name, Arc::as_ptr(make))),
            Maker::Builtin(_) | Maker::Auto => None,
        });
        own.collect()
    }

    fn made(
        &self,
        entry: &StrategyEntry,
        options: &StrategyOptions,
        parameters: &Parameters,
    ) -> Arc<dyn Strategy> {
        let make = match &entry.make {
            Maker::Builtin(make) => return make(options, parameters),
            Maker::Auto => {
                let auto = Auto::new(self.candidates(options), options.in_flight);
                return Arc::new(
                    auto.with_moment(options.moment).with_order_swap(options.order_swap),
                );
            }
            Maker::Own(make) => make,
        };
        match catch_unwind(AssertUnwindSafe(|| make(options, parameters))) {
            Ok(made) => Arc::new(Guarded::named(&entry.name, made)),
            Err(panic) => {
                Arc::new(Unmade { name: entry.name.to_string(), reason: panic_text(&*panic) })
            }
        }
    }
}

impl Default for Strategies {
    fn default() -> Strategies {
        Strategies::builtin()
    }
}

/// A strategy whose making panicked.
struct Unmade {
    name: String,
    reason: String,
}

impl Strategy for Unmade {
    fn name(&self) -> &str {
        &self.name
    }

    fn route(&self, _: &PlanInput<'_>, _: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        Err(PlanError::Panicked { strategy: self.name.clone(), reason: self.reason.clone() })
    }
}

#[cfg(test)]
mod tests;
