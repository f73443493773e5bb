//! Strategies by name: the built-in ones, and those that a program adds.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::auto::Auto;
use super::guarded::{Guarded, panic_text};
use super::interface::{PlanInput, Strategy};
use super::options::StrategyOptions;
use super::registry::{by_name, registry};
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::route::Route;

/// The strategy that chooses among all others.
const AUTO: &str = "auto";

/// The strategies that an engine, a simulated scenario or a comparison knows by name: the built-in
/// ones, and any that a program adds. `auto` chooses among all of them.
///
/// ```
/// use lapwing_plan::strategy::{LayerSplit, Strategies, StrategyOptions};
///
/// let strategies = Strategies::builtin().with("mine", "half of the layers", |_| LayerSplit)?;
/// let mine = strategies.get("mine", &StrategyOptions::default());
/// assert_eq!(mine.map(|strategy| strategy.name().to_owned()).as_deref(), Some("mine"));
/// # Ok::<(), lapwing_plan::strategy::StrategyNameError>(())
/// ```
#[derive(Clone, Default)]
pub struct Strategies {
    own: Vec<Own>,
}

type Make = dyn Fn(&StrategyOptions) -> Arc<dyn Strategy> + Send + Sync;

#[derive(Clone)]
struct Own {
    name: Arc<str>,
    about: Arc<str>,
    make: Arc<Make>,
}

/// A name that a strategy cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyNameError {
    /// Another strategy has it.
    #[error("there is a strategy '{name}' already; choose another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// It has characters that lists of strategies cannot have.
    #[error("'{name}' cannot name a strategy; use letters, digits, - and _")]
    Invalid {
        /// The name.
        name: String,
    },
}

impl Strategies {
    /// The built-in strategies.
    pub fn builtin() -> Strategies {
        Strategies::default()
    }

    /// Adds a strategy: its name, its description in one line, and what makes it from the options of an
    /// engine or a scenario. Reports call it by this name. If making or running it panics, every route
    /// is [`PlanError::Panicked`].
    ///
    /// # Errors
    /// [`StrategyNameError`] when the name is taken, empty, or has other characters than letters,
    /// digits, `-` and `_`.
    pub fn with<S: Strategy + 'static>(
        mut self,
        name: &str,
        about: &str,
        make: impl Fn(&StrategyOptions) -> S + Send + Sync + 'static,
    ) -> Result<Strategies, StrategyNameError> {
        let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(fits) {
            return Err(StrategyNameError::Invalid { name: name.to_owned() });
        }
        if self.contains(name) {
            return Err(StrategyNameError::Taken { name: name.to_owned() });
        }
        let make: Arc<Make> = Arc::new(move |options: &StrategyOptions| -> Arc<dyn Strategy> {
            Arc::new(make(options))
        });
        self.own.push(Own { name: name.into(), about: about.into(), make });
        Ok(self)
    }

    /// Name and description of each strategy: the built-in ones, then the added ones, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.own.iter().map(|own| (&*own.name, &*own.about));
        registry().iter().map(|entry| (entry.name, entry.about)).chain(own)
    }

    /// All names, with commas between them, for error messages.
    pub fn names(&self) -> String {
        self.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    }

    /// Whether there is a strategy of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|(known, _)| known == name)
    }

    /// The strategy of that name with these options; `None` if the name is unknown.
    pub fn get(&self, name: &str, options: &StrategyOptions) -> Option<Arc<dyn Strategy>> {
        if name == AUTO {
            return Some(Arc::new(Auto::new(self.candidates(options), options.in_flight)));
        }
        let own = self.own.iter().find(|own| &*own.name == name);
        own.map(|own| own.made(options)).or_else(|| by_name(name, options))
    }

    /// Every strategy except `auto`, which chooses among them.
    pub fn candidates(&self, options: &StrategyOptions) -> Vec<Arc<dyn Strategy>> {
        let builtin = registry().iter().filter(|entry| entry.name != AUTO);
        let builtin = builtin.map(|entry| (entry.make)(options));
        builtin.chain(self.own.iter().map(|own| own.made(options))).collect()
    }

    /// Text that tells its added strategies from those of other registries; clones have the same. It is
    /// unique while they are alive, and empty without added strategies.
    pub fn identity(&self) -> String {
        let own = self.own.iter();
        own.map(|own| format!("{}@{:p} ", own.name, Arc::as_ptr(&own.make))).collect()
    }
}

impl Own {
    fn made(&self, options: &StrategyOptions) -> Arc<dyn Strategy> {
        match catch_unwind(AssertUnwindSafe(|| (self.make)(options))) {
            Ok(made) => Arc::new(Guarded::named(&self.name, made)),
            Err(panic) => {
                Arc::new(Unmade { name: self.name.to_string(), reason: panic_text(&*panic) })
            }
        }
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

impl fmt::Debug for Strategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::{CpuOnly, LayerSplit};

    #[test]
    fn added_strategies_stand_beside_the_built_in_ones() {
        let options = StrategyOptions::default();
        let both = Strategies::builtin().with("mine", "all on the CPU", |_| CpuOnly);
        let both = both.and_then(|both| both.with("half", "half of it", |_| LayerSplit));
        let both = both.expect("two names");
        let names: Vec<&str> = both.iter().map(|(name, _)| name).collect();
        assert!(names.starts_with(&["cpu-only"]) && names.ends_with(&["auto", "mine", "half"]));
        for name in names {
            let made = both.get(name, &options).expect("a strategy");
            assert_eq!(made.name(), name, "its registered name is the name in reports");
        }
        let candidates = both.candidates(&options);
        assert_eq!(candidates.len(), registry().len() + 1, "auto rates all but itself");
        assert!(candidates.iter().any(|candidate| candidate.name() == "mine"));
        assert!(both.names().contains("pipe") && both.names().ends_with("mine, half"));
        assert!(both.get("other", &options).is_none());
        assert!(Strategies::builtin().get("mine", &options).is_none(), "no global state");
    }

    #[test]
    fn a_name_is_refused_if_it_is_taken_or_breaks_a_list() {
        let mine = Strategies::builtin().with("mine", "", |_| CpuOnly).expect("a name");
        for name in ["mine", "auto", "cpu-only"] {
            let error = mine.clone().with(name, "", |_| CpuOnly).expect_err(name);
            assert_eq!(error, StrategyNameError::Taken { name: name.to_owned() });
        }
        for name in ["", "a,b", "a b", "a=b", "1:2"] {
            let error = mine.clone().with(name, "", |_| CpuOnly).expect_err(name);
            assert_eq!(error, StrategyNameError::Invalid { name: name.to_owned() });
        }
    }

    #[test]
    fn registries_with_different_strategies_have_different_identities() {
        let of = || Strategies::builtin().with("mine", "", |_| CpuOnly).expect("a name");
        let (a, b) = (of(), of());
        assert_ne!(a.identity(), b.identity());
        assert_eq!(a.identity(), a.clone().identity());
        assert_eq!(Strategies::builtin().identity(), "");
    }
}
