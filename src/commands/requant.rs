//! Reports requantised matrices, as text and as JSON.

use lapwing::{KeptReason, KeptTensor, Requantized};
use serde::{Deserialize, Serialize};

use super::session::Session;

/// The JSON form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequantReport {
    pub(super) format: String,
    pub(super) matrices: usize,
    pub(super) changed: usize,
    pub(super) from: Vec<String>,
    pub(super) stored_bytes: u64,
    pub(super) bytes: u64,
    pub(super) kept: Vec<KeptReport>,
    /// The same as text.
    pub(super) text: String,
}

/// A matrix that is used as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptReport {
    tensor: String,
    format: String,
    because: String,
}

impl RequantReport {
    pub(super) fn of(requantized: &Requantized) -> RequantReport {
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

/// Notes on stderr what is requantised, if anything.
pub(super) fn note(requantized: Option<&Requantized>, session: &Session) {
    if let Some(requantized) = requantized {
        session.note(&requantized.to_string());
    }
}
