//! `--activations`: the columns of activations that share a scale.

use clap::ValueEnum;
use lapwing_engine::Activations;

/// Columns of activations that share a scale when they are rounded to int8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scales {
    /// Blocks, as llama.cpp has them for the format of the weights.
    #[default]
    Block,
    /// One scale for each row.
    Row,
    /// One scale and one minimum for each row.
    RowMin,
}

impl Scales {
    /// Name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scales::Block => "block",
            Scales::Row => "row",
            Scales::RowMin => "row-min",
        }
    }

    /// The same as a setting of the engine.
    pub(crate) fn precision(self) -> Activations {
        match self {
            Scales::Block => Activations::Int8,
            Scales::Row => Activations::Int8Row,
            Scales::RowMin => Activations::Int8RowMin,
        }
    }
}
