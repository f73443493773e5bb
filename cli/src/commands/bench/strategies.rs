//! `lapwing bench --strategy all`: decides whether strategies are compared.

use lapwing_engine::plan::choices;

use super::Args;
use super::compare::{self, CompareOptions};
use crate::cli::failure::Failure;
use crate::cli::session::Session;

impl Args {
    /// The requested comparison, if there is one.
    pub(super) fn comparison(
        &self,
        session: &Session,
    ) -> Result<Option<CompareOptions<'_>>, Failure> {
        let strategies = self.engine.devices.strategy.as_deref();
        let several = strategies.is_some_and(|names| choices(names).len() > 1 || names == "all");
        let page_of_one = self.html.is_some() && strategies.is_some();
        if self.length.is_none() && !several && !page_of_one && !self.quick {
            return match self.html {
                Some(_) => Err(Failure::usage(
                    "--html compares strategies: add --strategy all, or --strategy NAME,…",
                )),
                None => Ok(None),
            };
        }
        if let Some((what, instead)) = self.excluded_option() {
            return Err(Failure::usage(format!(
                "{what} cannot be used when strategies are compared: {instead}"
            )));
        }
        let tokens = match self.max_tokens.as_deref() {
            None => 4,
            Some([tokens]) if *tokens > 0 => *tokens,
            Some(_) => {
                return Err(Failure::usage(
                    "-n must be one number of at least 1 when strategies are compared",
                ));
            }
        };
        let lengths = self.length.as_ref().or(self.prompt_tokens.as_ref());
        if lengths.is_some_and(|lengths| lengths.contains(&0)) {
            return Err(Failure::usage("-p must be at least 1 when strategies are compared"));
        }
        self.engine.check_but_strategy(session)?;
        Ok(Some(CompareOptions {
            model: &self.model.model,
            engine: &self.engine,
            strategies: strategies.unwrap_or("all"),
            lengths: lengths.cloned().unwrap_or_else(|| match self.quick {
                true => vec![compare::LENGTHS[0]],
                false => compare::LENGTHS.to_vec(),
            }),
            tokens,
            repetitions: self.repetitions.unwrap_or(if self.quick { 1 } else { 3 }),
            html: self.html.clone(),
            profile: self.profile.clone(),
        }))
    }

    /// An option that a comparison does not have, and what to do instead.
    fn excluded_option(&self) -> Option<(&'static str, &'static str)> {
        const ONE: &str = "name at most one strategy, without --html";
        let given = [
            (self.trace.trace.is_some(), "--trace", "use --html"),
            (!self.vs.is_empty(), "--vs", ONE),
            (self.depth.is_some(), "-d", ONE),
            (self.output.is_some(), "-o", ONE),
            (self.against.is_some(), "--against", ONE),
            (self.no_warmup, "--no-warmup", ONE),
            (self.reading, "--reading", ONE),
            (self.acceptance.is_some(), "--acceptance", ONE),
        ];
        given.into_iter().find(|(given, ..)| *given).map(|(_, what, instead)| (what, instead))
    }
}
