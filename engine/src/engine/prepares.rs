//! Graphs that a strategy prepares while a prompt waits, and those that chunks have lacked.

use std::collections::HashSet;
use std::time::Duration;

use lapwing_kernels::device::{GraphKey, ModelId, Prepare};
use lapwing_plan::predict::predict;

use super::Engine;
use crate::error::Error;

impl Engine {
    /// Waits until the graphs are ready that chunks have lacked, and that can be prepared: an engine makes them while it has no request. Returns
    /// whether any were made meanwhile. A measurement of a strategy whose chunks take several routes warms up until none are.
    ///
    /// # Errors
    /// When the engine has ended.
    pub async fn graphs_made(&self) -> Result<bool, Error> {
        Ok(self.inner.live.graphs_made().await?)
    }

    /// Static graphs that a prompt of `length` tokens prepares while it runs, because its strategy does
    /// not prepare them ahead. Empty for most strategies.
    pub(crate) fn graphs_on_the_spot(&self, length: usize) -> Result<HashSet<GraphKey>, Error> {
        let mut graphs = HashSet::new();
        for chunk in self.chunks(length)? {
            let stages = chunk.route.compute_stages();
            for stage in stages.filter(|stage| stage.prepare == Prepare::OnTheSpot) {
                let parts = stage.parts.iter();
                graphs.extend(parts.flat_map(|part| stage.graphs(ModelId::default(), &part.part)));
            }
        }
        Ok(graphs)
    }

    /// Whether a prompt of `length` tokens prepares static graphs while it runs, because its strategy does
    /// not prepare them ahead. An engine prepares each graph once: later prompts of the same length find
    /// it.
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn prepares_on_the_spot(&self, length: usize) -> Result<bool, Error> {
        Ok(!self.graphs_on_the_spot(length)?.is_empty())
    }

    /// Length of a prompt with which to warm up before a prompt of `length` tokens is timed: it prepares
    /// none of that prompt's graphs, and leaves room for `tokens` generated tokens. `None` if there is no
    /// such length.
    ///
    /// # Errors
    /// As [`plan`](Engine::plan).
    pub fn warm_up_length(&self, length: usize, tokens: usize) -> Result<Option<usize>, Error> {
        let graphs = self.graphs_on_the_spot(length)?;
        let room = self.context().saturating_sub(tokens);
        for other in [1, 64, 128] {
            if other <= room && self.graphs_on_the_spot(other)?.is_disjoint(&graphs) {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    /// As [`predict`](Engine::predict), for the first prompt of its length: graphs that are prepared
    /// ahead exist, those that are prepared on the spot do not.
    pub fn predict_new_length(&self, length: usize) -> Result<Option<Duration>, Error> {
        let chunks = self.chunks(length)?;
        let explainer = &self.inner.explainer;
        let known = chunks.iter().all(|chunk| explainer.knows_times(&chunk.route));
        let makespan = || predict(&explainer.parts.input(), &chunks, self.inner.permits).makespan;
        Ok(known.then(makespan))
    }
}
