//! Several decode chunks of a model in flight. While one device computes the last layers of a chunk, another can compute
//! the first layers of the next one.
//!
//! Requests that draft by a model get out of step, as each waits for its own drafts. Those that are ready go at once, in a
//! chunk of their own, while that of the others is in flight. Where there are fewer requests than devices, a request may
//! also have passes ahead: the next verification pass while its last one is in flight (PipeInfer, Butler et al., 2024).
//! Its rows continue the draft in flight, on the assumption that all of it is accepted. Where it is not, the request's
//! rows are stale, and those of other requests in the chunk are not; a chunk of which all rows are stale is dropped at
//! the next border of stages.

use lapwing_plan::Route;

use super::chunks::NextChunk;
use super::graphs::Readiness;
use super::models::Model;
use super::rows::{PlannedBy, RowKinds};
use super::running::Sequence;
use super::selection::Selection;
use super::state::Scheduler;
use crate::sequence::Permit;

impl Model {
    /// Whether a chunk with decode rows may be sent.
    pub(super) fn may_step(&self) -> bool {
        let in_flight = self.decoding.len();
        let has_room = || self.decoding.iter().all(|step| in_flight < step.devices);
        in_flight == 0 || self.staggered.is_some() && has_room()
    }

    /// Whether a sequence may have one more pass in flight: it has fewer than its share of the devices.
    pub(super) fn may_go_ahead(&self, sequence: &Sequence) -> bool {
        let requests = self.staggered.unwrap_or(usize::MAX);
        self.may_step() && sequence.may_go_ahead(requests)
    }
}

impl Scheduler {
    /// The next chunk that consists of passes ahead, if there is one. Takes the permit if it returns a chunk.
    pub(super) fn pass_ahead(&mut self, permit: &mut Option<Permit>) -> NextChunk {
        if self.models.iter().all(|model| model.staggered.is_none()) {
            return NextChunk::Nothing;
        }
        for kind in self.kinds_in_order() {
            let selection = self.select(kind, PlannedBy::Strategy, RowKinds::AHEAD, 0);
            let Some(selection) = selection else { continue };
            if let Ok((route, Readiness::Ready)) = self.route_for(&selection)
                && self.may_take(&selection, route.route())
            {
                return self.cut(permit, &selection, route);
            }
        }
        NextChunk::Nothing
    }

    fn may_take(&self, selection: &Selection, route: &Route) -> bool {
        selection.rows.iter().all(|(at, _)| self.running[*at].may_take(route))
    }

    /// Counts the requests of each model that generate, if one of them drafts by a model, and once a step has been timed
    /// while no other was in flight.
    pub(super) fn count_staggered(&mut self) {
        for (number, model) in self.models.iter_mut().enumerate() {
            let requests = || {
                let of_model =
                    |sequence: &&Sequence| sequence.model.0 == number && !sequence.is_companion();
                self.running.iter().filter(of_model)
            };
            let drafts = |sequence: &Sequence| {
                sequence.model_drafts().is_some_and(|drafts| drafts.stopped.is_none())
            };
            let is_staggered = model.steps.estimate(1).is_some() && requests().any(drafts);
            let generating = || requests().filter(|request| request.has_generated()).count();
            model.staggered = is_staggered.then(generating);
        }
    }
}
