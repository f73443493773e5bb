//! By what a chunk chooses among its routes.

use serde::{Deserialize, Serialize};

/// By what a chunk chooses among the routes that it may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The one of a chunk alone, unless another one ends far earlier.
    Alone,
    /// The one on which it ends first.
    #[default]
    First,
    /// While others are behind it, the one with which it and the next of them end first.
    Mix,
}
