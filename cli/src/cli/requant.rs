//! Reports requantised matrices, as text and as JSON.

use lapwing_engine::{KeptReason, KeptTensor, Requantized};
use serde::{Deserialize, Serialize};

use super::session::Session;

/// The JSON form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequantReport {
    pub(crate) format: String,
    pub(crate) matrices: usize,
    pub(crate) changed: usize,
    pub(crate) from: Vec<String>,
    pub(crate) stored_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) kept: Vec<KeptReport>,
    /// The same as text.
    pub(crate) text: String,
}

/// A matrix that is used as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptReport {
    tensor: String,
    format: String,
    because: String,
}

impl RequantReport {
    pub(crate) fn of(requantized: &Requantized) -> RequantReport {
        let kept = requantized.kept.iter().map(|KeptTensor { tensor, dtype, reason }| KeptReport {
            tensor: tensor.clone(),
            format: dtype.to_string(),
            because: match reason {
                KeptReason::NoMoreBits => "bits",
                KeptReason::Columns { .. } => "columns",
            }
            .to_owned(),
        });
        RequantReport {
            format: requantized.format.to_string(),
            matrices: requantized.matrices,
            changed: requantized.changed,
            from: requantized.from.iter().map(ToString::to_string).collect(),
            stored_bytes: requantized.stored_bytes,
            bytes: requantized.bytes,
            kept: kept.collect(),
            text: requantized.to_string(),
        }
    }
}

/// Prints to stderr which matrices are requantised, if the option is set.
pub(crate) fn note(requantized: Option<&Requantized>, session: &Session) {
    if let Some(requantized) = requantized {
        session.note(&requantized.to_string());
    }
}
