//! A stage of a placement, as commands print it in JSON.

use std::collections::BTreeMap;

use lapwing_engine::{PartPlacement, StagePlacement};
use serde::Serialize;

/// A stage of the placement.
#[derive(Debug, Serialize)]
pub(crate) struct StageReport {
    pub(crate) device: String,
    pub(crate) ops: usize,
    pub(crate) first_layer: Option<usize>,
    pub(crate) last_layer: Option<usize>,
    pub(crate) kernels: String,
    /// Matrices by format.
    pub(crate) matrices: BTreeMap<String, usize>,
    pub(crate) parts: Vec<PartReport>,
}

/// A device's part of a stage.
#[derive(Debug, Serialize)]
pub(crate) struct PartReport {
    pub(crate) device: String,
    /// First row and one past the last; `None` for all rows.
    pub(crate) rows: Option<(usize, usize)>,
    /// First output channel, one past the last, and the number of channels; `None` for all channels.
    pub(crate) features: Option<(usize, usize, usize)>,
    /// First expert and one past the last; `None` for all experts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) experts: Option<(usize, usize)>,
    /// Rows of its prepared graphs.
    pub(crate) graphs: Vec<usize>,
    pub(crate) swapped: bool,
    pub(crate) predicted_ms: Option<f64>,
    pub(crate) kernels: String,
}

impl StageReport {
    /// As JSON shows it.
    pub(crate) fn of(stage: &StagePlacement) -> StageReport {
        StageReport {
            device: stage.device.clone(),
            ops: stage.ops,
            first_layer: stage.layers.map(|(first, _)| first),
            last_layer: stage.layers.map(|(_, last)| last),
            kernels: stage.kernels.clone(),
            matrices: stage.formats.iter().cloned().collect(),
            parts: stage.parts.iter().map(PartReport::of).collect(),
        }
    }
}

impl PartReport {
    fn of(part: &PartPlacement) -> PartReport {
        PartReport {
            device: part.device.clone(),
            rows: part.rows.as_ref().map(|rows| (rows.start, rows.end)),
            features: part.features,
            experts: part.experts.as_ref().map(|experts| (experts.start, experts.end)),
            graphs: part.graphs.clone(),
            swapped: part.swapped,
            predicted_ms: part.predicted.map(|time| time.as_secs_f64() * 1e3),
            kernels: part.kernels.clone(),
        }
    }
}
