//! Candidates by shape, each planned once.

use std::collections::HashMap;
use std::sync::Arc;

use super::Candidate;
use crate::chunk::ChunkShape;
use crate::error::PlanError;
use crate::strategy::PlanInput;

/// The candidates of the shapes that chunks have had.
#[derive(Default)]
pub(crate) struct Known {
    of: HashMap<ChunkShape, Arc<[Candidate]>>,
}

impl Known {
    /// The candidates of a chunk: their routes are those of its rounded shape ([`ChunkShape::rounded`]), which are planned if they are not
    /// known, and their times those of its own ([`ChunkShape::timed`]).
    ///
    /// # Errors
    /// Those of `plan`.
    pub(crate) fn of(
        &mut self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
        plan: impl FnOnce(&ChunkShape) -> Result<Vec<Candidate>, PlanError>,
    ) -> Result<Arc<[Candidate]>, PlanError> {
        let timed = shape.timed();
        if let Some(known) = self.of.get(&timed) {
            return Ok(Arc::clone(known));
        }
        let rounded = shape.rounded();
        let planned = match self.of.get(&rounded) {
            Some(known) => Arc::clone(known),
            None => {
                let planned: Arc<[Candidate]> = plan(&rounded)?.into();
                self.of.insert(rounded, Arc::clone(&planned));
                planned
            }
        };
        if timed == rounded {
            return Ok(planned);
        }
        let candidates: Arc<[Candidate]> =
            planned.iter().map(|candidate| candidate.timed(input, &timed)).collect();
        self.of.insert(timed, Arc::clone(&candidates));
        Ok(candidates)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.of.clear();
    }
}
