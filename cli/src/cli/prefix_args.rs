//! Options of the prefix cache.

use std::path::PathBuf;

use clap::Args;
use lapwing_engine::EngineBuilder;

use super::opening::Given;

/// The prefix cache. Commands that measure have none: they compute every row.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct PrefixArgs {
    /// Compute the whole prompt of every answer, even if it begins as an earlier one
    #[arg(long, hide_short_help = true)]
    no_prefix_cache: bool,

    /// Keep keys and values of prompts and answers in DIR between runs: a prompt that begins as one of an
    /// earlier run computes only the rest
    #[arg(long, value_name = "DIR", conflicts_with = "no_prefix_cache", hide_short_help = true)]
    prefix_cache: Option<PathBuf>,
}

impl PrefixArgs {
    /// Whether the cache is turned off.
    pub(crate) fn is_off(&self) -> bool {
        self.no_prefix_cache
    }

    /// Adds the settings to a builder.
    pub(crate) fn applied(&self, builder: EngineBuilder) -> EngineBuilder {
        let builder = builder.prefix_cache(!self.no_prefix_cache);
        builder.given(self.prefix_cache.as_deref(), EngineBuilder::keep_prefixes)
    }
}
