//! The options of the engines of a server, for other programs that serve models: `lapwing serve` has the same, so each is defined once.
//!
//! ```no_run
//! use clap::Parser;
//! use lapwing_cli::engine_options::{self, EngineOptions};
//!
//! #[derive(Parser)]
//! struct Options {
//!     #[arg(short, long)]
//!     model: String,
//!     #[command(flatten)]
//!     engine: EngineOptions,
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! engine_options::answer_lister();
//! let options = Options::parse();
//! let offer = options.engine.offer(&options.model).await?;
//! let engine = offer.engine.build().await?;
//! # drop(engine);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use lapwing_engine::EngineBuilder;
use lapwing_serve::ServeConfig;

/// Ends the process at once: drivers free at its end what their threads may still use.
pub use lapwing_kernels::leave;

use crate::cli::failure::Failure;
use crate::cli::opening::{Given, with_stored};
use crate::cli::resolve::ModelChoice;
use crate::cli::session::Session;
use crate::cli::{EngineArgs, PrefixArgs, at_least_one, drivers};
use crate::commands::serve::kv_events::KvEventsArgs;

/// Answers the process that started this one to list drivers, and ends this one; otherwise it does nothing. Drivers may abort or
/// hang, so an engine lists them in a process of the same program: call this first in `main`.
pub fn answer_lister() {
    if let Some(request) = drivers::Request::of(std::env::args_os()) {
        request.answer(crate::commands::list_drivers);
    }
}

/// Options of the engines of a server.
#[derive(Clone, Debug, Args)]
pub struct EngineOptions {
    /// Maximum requests of a model; further ones are refused [default: 256]
    ///
    /// They wait or run. `lapwing serve` refuses with 429.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    requests: Option<usize>,

    /// Maximum requests that are computed at once; further ones wait [default: 16]
    ///
    /// Of each model.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    parallel: Option<usize>,

    /// Maximum tokens of prompt and answer [default: the training context, up to 8192]
    #[arg(short, long, value_name = "TOKENS", value_parser = at_least_one, help_heading = "Engine")]
    ctx: Option<usize>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    prefix: PrefixArgs,
    #[command(flatten)]
    kv_events: KvEventsArgs,
}

/// A model that a program serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Offer {
    /// Name that requests use.
    pub name: String,
    /// Settings of its engine.
    pub engine: EngineBuilder,
    /// Sampling temperature that the model's makers recommend, for requests that name none.
    pub temperature: Option<f32>,
}

impl EngineOptions {
    /// Checks everything that needs no model, and says on stderr what the devices are.
    ///
    /// # Errors
    /// When options contradict each other, or name what this machine does not have.
    pub fn check(&self) -> Result<(), OptionsError> {
        Ok(self.engine.check(&Session::new(false))?)
    }

    /// Settings of a server with these options: how requests wait, and where KV events are published.
    ///
    /// # Errors
    /// When there is no such form of events.
    pub fn serve_config(&self) -> Result<ServeConfig, OptionsError> {
        let mut config = ServeConfig::default();
        self.apply(&mut config)?;
        Ok(config)
    }

    /// Puts what the options say in the place of the settings.
    pub(crate) fn apply(&self, config: &mut ServeConfig) -> Result<(), Failure> {
        if let Some(policy) = &self.engine.policy {
            config.policy.clone_from(policy);
        }
        config.requests_max = self.requests.unwrap_or(config.requests_max);
        config.sequences_max = self.parallel.unwrap_or(config.sequences_max);
        self.kv_events.apply(&mut config.kv_events)
    }

    /// A model in the form `[NAME=]MODEL`, which is fetched if it is not on this machine; as by `lapwing serve`, whose defaults hold. Notes
    /// go to stderr.
    ///
    /// # Errors
    /// When there is no such model, or it cannot be fetched.
    pub async fn offer(&self, argument: &str) -> Result<Offer, OptionsError> {
        let (config, session) = (self.serve_config()?, Session::new(false));
        let offer = self.offer_in(argument, &session).await?;
        let engine = offer.engine.policy(config.policy).requests_max(config.requests_max);
        Ok(Offer { engine: engine.sequences_max(config.sequences_max), ..offer })
    }

    /// As [`offer`](EngineOptions::offer), with the policy and the limits that the options name.
    pub(crate) async fn offer_in(
        &self,
        argument: &str,
        session: &Session,
    ) -> Result<Offer, Failure> {
        let (name, model) = named(argument);
        let choice = ModelChoice::of(model)?;
        let engine = self.prefix.applied(self.engine.builder_of(model, session).await?);
        let engine = with_stored(engine.given(self.ctx, EngineBuilder::context), session);
        Ok(Offer { name, engine, temperature: choice.temperature() })
    }
}

/// Name and model of `NAME=MODEL`; a model without a name has that of the argument, or of its file.
fn named(argument: &str) -> (String, &str) {
    if let Some((name, model)) = argument.split_once('=')
        && !name.is_empty()
        && !name.contains(['/', ':'])
    {
        return (name.to_owned(), model);
    }
    let file = Path::new(argument);
    let is_file = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
    let stem = file.file_stem().filter(|_| is_file).map(|stem| stem.to_string_lossy().into_owned());
    (stem.unwrap_or_else(|| argument.to_owned()), argument)
}

/// Why options cannot be followed. The message says what to do.
#[derive(Debug)]
pub struct OptionsError(Failure);

impl OptionsError {
    /// Prints the message to stderr, and returns the exit code of the command line: 2 for wrong usage, otherwise 1.
    pub fn report(&self) -> ExitCode {
        self.0.report()
    }
}

impl From<Failure> for OptionsError {
    fn from(failure: Failure) -> OptionsError {
        OptionsError(failure)
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.text();
        let plain = anstream::adapter::strip_str(text.trim_end()).to_string();
        f.write_str(plain.strip_prefix("error: ").unwrap_or(&plain))
    }
}

impl std::error::Error for OptionsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_the_name_that_is_given_or_that_of_their_file() {
        let rows = [
            ("small=dir/a.gguf", ("small", "dir/a.gguf")),
            ("dir/a.gguf", ("a", "dir/a.gguf")),
            ("smollm2", ("smollm2", "smollm2")),
            ("hf:owner/repo:Q8_0", ("hf:owner/repo:Q8_0", "hf:owner/repo:Q8_0")),
            ("chat=hf:owner/repo", ("chat", "hf:owner/repo")),
            ("dir/a=b.gguf", ("a=b", "dir/a=b.gguf")),
        ];
        for (argument, (name, model)) in rows {
            assert_eq!(named(argument), (name.to_owned(), model), "{argument}");
        }
    }

    #[test]
    fn errors_are_plain_text_with_their_hint() {
        let error = OptionsError::from(Failure::failed("no such model").hint("fetch it"));
        assert_eq!(error.to_string(), "no such model\nhint: fetch it");
    }
}
