//! Options of the prefix cache.

use clap::Args;
use lapwing::EngineBuilder;

/// The prefix cache. Commands that measure have none: they compute every row.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct PrefixArgs {
    /// Compute the whole prompt of every answer, even if it begins as an earlier one
    #[arg(long, hide_short_help = true)]
    no_prefix_cache: bool,
}

impl PrefixArgs {
    /// Adds the settings to a builder.
    pub(crate) fn applied(&self, builder: EngineBuilder) -> EngineBuilder {
        builder.prefix_cache(!self.no_prefix_cache)
    }
}
