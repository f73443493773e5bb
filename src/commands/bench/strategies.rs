//! `lapwing bench --strategy all --length …`: whether strategies are to be compared.

use super::Args;
use super::compare::{self, Wanted};
use crate::cli::failure::Failure;

impl Args {
    /// The comparison that is asked for, if one is.
    pub(super) fn comparison(&self) -> Result<Option<Wanted<'_>>, Failure> {
        let strategies = self.engine.devices.strategy.as_deref();
        let several = strategies.is_some_and(|names| names.contains(',') || names == "all");
        if self.length.is_none() && !several {
            return match self.html {
                Some(_) => Err(Failure::usage(
                    "--html shows strategies side by side: add --length N,… or --strategy all",
                )),
                None => Ok(None),
            };
        }
        if let Some((what, instead)) = self.not_of_strategies() {
            return Err(Failure::usage(format!(
                "{what} is not for strategies that are compared: {instead}"
            )));
        }
        let tokens = match self.generate.as_deref() {
            None => 4,
            Some([tokens]) if *tokens > 0 => *tokens,
            Some(_) => {
                return Err(Failure::usage(
                    "-n must be one number of at least 1 where strategies are compared",
                ));
            }
        };
        self.engine.check_but_strategy()?;
        Ok(Some(Wanted {
            model: &self.model.model,
            engine: &self.engine,
            strategies: strategies.unwrap_or("all"),
            lengths: self.length.clone().unwrap_or_else(|| compare::LENGTHS.to_vec()),
            tokens,
            repetitions: self.repetitions.unwrap_or(3),
            html: self.html.clone(),
        }))
    }

    /// An option that says nothing of strategies, and what to do instead.
    fn not_of_strategies(&self) -> Option<(&'static str, &'static str)> {
        const ONE: &str = "leave out --length, and name one strategy at most";
        let given = [
            (self.prompt.is_some(), "-p", "use --length"),
            (self.trace.trace.is_some(), "--trace", "use --html"),
            (!self.vs.is_empty(), "--vs", ONE),
            (self.depth.is_some(), "-d", ONE),
            (self.save.is_some(), "--save", ONE),
            (self.against.is_some(), "--against", ONE),
            (self.no_warmup, "--no-warmup", ONE),
            (self.reading, "--reading", ONE),
        ];
        given.into_iter().find(|(given, ..)| *given).map(|(_, what, instead)| (what, instead))
    }
}
