//! The passes of a sequence in speculative decoding: which rows each computes, and how many were wasted.

use std::ops::Range;
use std::sync::Arc;

use lapwing_plan::{DeviceId, Route};
use lapwing_traces::event::{DraftRole, RowOutcome};

use super::speculation::Speculation;
use super::{Sequence, SequenceTask};
use crate::draft::StepTokens;
use crate::handover::Handover;
use crate::message::Generate;
use crate::scheduler::effect::{Noted, SchedulerEffect};

/// A pass of a request that drafts, or of a draft model.
#[derive(Debug)]
pub(super) struct Pass {
    chunk: u64,
    /// Rows that are not yet known to be wasted.
    rows: Range<usize>,
    /// Drafted tokens that it verifies.
    drafted: usize,
    /// Those of them on branches. Of each position of a tree one row at most is kept, so as many rows as branches have
    /// are wasted, beside rejected ones of the longest path.
    branch_rows: usize,
    in_flight: bool,
    /// Devices of its route, and the one that chooses tokens.
    devices: usize,
    decides_on: Option<DeviceId>,
    /// Through which the next pass may get the sampling state.
    next: Option<Arc<Handover>>,
}

/// Rows of all passes of a sequence in speculative decoding.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct PassRows {
    /// Dispatched rows; of a draft model, without those of its prompt.
    pub(in super::super) sent: usize,
    /// Those of them whose results were discarded.
    pub(in super::super) wasted: usize,
}

/// How many passes of a route can be computed at the same time: as many as devices compute its stages. If devices share a
/// stage, passes run one after another.
pub(in super::super) fn devices(route: &Route) -> usize {
    if route.is_cut() {
        return 1;
    }
    let mut devices: Vec<DeviceId> = route
        .compute_stages()
        .flat_map(|stage| stage.parts.iter().map(|part| part.device))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    devices.len()
}

/// The device that chooses tokens.
fn decides_on(route: &Route) -> Option<DeviceId> {
    route.stages.last()?.only_device()
}

impl Sequence {
    /// Begins a pass of the next rows. Returns what they are for.
    pub(super) fn begin_pass(&mut self) -> Option<DraftRole> {
        let role = match self.is_companion() {
            true => Some(DraftRole::Draft),
            false => {
                let is_step = self.has_generated() && self.sent + 1 >= self.ids.len();
                (is_step && !self.draft().is_empty()).then_some(DraftRole::Verify)
            }
        };
        self.go_ahead();
        role
    }

    /// Records that a chunk with these rows was cut.
    pub(super) fn on_pass(&mut self, chunk: u64, rows: Range<usize>, route: &Route) {
        let decodes = self.has_generated() && rows.start + 1 >= self.ids.len();
        let (is_companion, branch_rows) = (self.is_companion(), self.branch_rows());
        let Some(speculation) = self.speculation.as_mut() else { return };
        let next = speculation.next_pass.take();
        if !is_companion && (speculation.drafts.is_none() || !decodes) {
            return;
        }
        let prompt = if is_companion { self.times.prompt_tokens } else { 0 };
        speculation.on_branches_sent();
        let sent = rows.end.saturating_sub(rows.start.max(prompt)) + branch_rows;
        speculation.pass_rows.sent += sent;
        let drafted = if is_companion { 0 } else { rows.len() - 1 + branch_rows };
        let (devices, decides_on) = (devices(route), decides_on(route));
        let in_flight = true;
        speculation.passes.push(Pass {
            chunk,
            rows,
            drafted,
            branch_rows,
            in_flight,
            devices,
            decides_on,
            next,
        });
    }

    /// Handles the tokens that a pass chose. Rows of rejected draft tokens are rolled back, and passes that were sent
    /// after them become stale.
    pub(super) fn on_verified(
        &mut self,
        chunk: u64,
        tokens: &StepTokens,
        generate: Option<Box<Generate>>,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        let is_step = self.has_generated();
        let drafted = self.on_pass_decided(chunk, tokens, effects);
        let verified = self.follow_draft(drafted, tokens);
        if let (Some(drafts), true) = (self.drafts_mut(), is_step) {
            drafts.on_step(&verified);
        }
        let before = self.ids.len();
        self.keep_alternatives(tokens);
        self.ids.extend(tokens.iter().map(|token| token.id));
        let new = &self.ids[before..];
        let is_right = tokens.last().finish.is_none() && self.draft().starts_with(new);
        // A next pass that did not get the sampling state is stale.
        let is_followed = generate.is_none() || self.sent < self.ids.len();
        self.take_back(generate);
        if is_right && is_followed {
            // The next pass goes on with the rest of the draft.
            let right = self.ids.len() - before;
            if let Some(it) = &mut self.speculation {
                it.draft.drain(..right);
            }
        } else {
            self.reject_draft(effects);
        }
        self.end_draft_states();
        self.on_pass_ended(chunk, false, effects);
    }

    /// Drops the rest of the draft, and rolls back the rows behind the latest token.
    fn reject_draft(&mut self, effects: &mut Vec<SchedulerEffect>) {
        self.clear_draft();
        let accepted = self.ids.len() - 1;
        if self.sent > accepted {
            let (row, nudges) = self.progress.roll_back(accepted);
            effects.extend(nudges.into_iter().map(SchedulerEffect::Nudge));
            self.waste_from(row, effects);
            (self.sent, self.stale) = (row, self.in_flight);
            self.restore_states(row);
        }
    }

    /// Records that a pass chose tokens. Returns how many drafted tokens it verified.
    fn on_pass_decided(
        &mut self,
        chunk: u64,
        tokens: &StepTokens,
        effects: &mut Vec<SchedulerEffect>,
    ) -> usize {
        let pass = self.passes().iter().find(|pass| pass.chunk == chunk);
        let Some(drafted) = pass.map(|pass| pass.drafted).filter(|_| !self.is_companion()) else {
            return 0;
        };
        if drafted > 0 {
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let (drafted, accepted) = (count(drafted), count(tokens.more.len()));
            let rows = RowOutcome { drafted, accepted, wasted: 0 };
            self.note(Noted::Rows(chunk, rows), effects);
        }
        drafted
    }

    /// Records that a chunk has ended. Rows of a draft model stay on record until it is known whether their
    /// tokens are right. If the chunk was `dropped`, its rows are wasted.
    pub(in super::super) fn on_pass_ended(
        &mut self,
        chunk: u64,
        dropped: bool,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        if dropped {
            self.waste(|pass| if pass.chunk == chunk { 0 } else { usize::MAX }, effects);
        }
        let keep = self.is_companion();
        let Some(speculation) = self.speculation.as_mut() else { return };
        let mut wasted = 0;
        if let Some(pass) = speculation.passes.iter_mut().find(|pass| pass.chunk == chunk) {
            pass.in_flight = false;
            wasted = std::mem::take(&mut pass.branch_rows);
            speculation.pass_rows.wasted += wasted;
        }
        speculation.passes.retain(|pass| pass.in_flight || (keep && !pass.rows.is_empty()));
        self.note_wasted(chunk, wasted, effects);
    }

    /// Records that the rows from `row` on are wasted.
    pub(super) fn waste_from(&mut self, row: usize, effects: &mut Vec<SchedulerEffect>) {
        self.waste(|_| row, effects);
    }

    fn waste(&mut self, from: impl Fn(&Pass) -> usize, effects: &mut Vec<SchedulerEffect>) {
        let prompt = if self.is_companion() { self.times.prompt_tokens } else { 0 };
        let Some(mut speculation) = self.speculation.take() else { return };
        let Speculation { passes, pass_rows, .. } = &mut *speculation;
        for pass in passes.iter_mut() {
            let start = pass.rows.start.max(from(pass)).min(pass.rows.end);
            let wasted = start..pass.rows.end;
            pass.rows.end = start;
            let chunk = pass.chunk;
            pass_rows.wasted += wasted.end.saturating_sub(wasted.start.max(prompt));
            self.note_wasted(chunk, wasted.len(), effects);
        }
        passes.retain(|pass| pass.in_flight || !pass.rows.is_empty());
        self.speculation = Some(speculation);
    }

    fn note_wasted(&self, chunk: u64, rows: usize, effects: &mut Vec<SchedulerEffect>) {
        if rows > 0 {
            let wasted = u32::try_from(rows).unwrap_or(u32::MAX);
            let outcome = RowOutcome { wasted, ..RowOutcome::default() };
            self.note(Noted::Rows(chunk, outcome), effects);
        }
    }

    /// Records that the tokens of a draft model's first `agreed` rows are right.
    pub(super) fn settle(&mut self) {
        let Some(speculation) = self.speculation.as_mut() else { return };
        let agreed = speculation.agreed;
        speculation.passes.retain(|pass| pass.in_flight || pass.rows.end > agreed);
    }

    /// Whether it has its sampling state, so that no pass is in flight that chooses tokens.
    pub(in super::super) fn has_state(&self) -> bool {
        matches!(self.work, SequenceTask::Tokens(Some(_)))
    }

    /// Whether the next pass may be sent while one is in flight: the sequence drafts meanwhile, and has fewer passes in
    /// flight than its share of the devices, among that many requests. Not with states, which have one way back at a time.
    pub(in super::super) fn may_go_ahead(&self, requests: usize) -> bool {
        let overlaps = self.drafts().is_some_and(|drafts| drafts.source.overlaps());
        let in_flight = self.passes().iter().filter(|pass| pass.in_flight).count();
        let has_room = |pass: &Pass| (in_flight + 1).saturating_mul(requests) <= pass.devices;
        let is_in_flight =
            matches!(self.work, SequenceTask::Tokens(None)) && self.sent >= self.ids.len();
        let has_way_back = self.states.is_none();
        overlaps
            && has_way_back
            && self.passes().last().is_some_and(has_room)
            && is_in_flight
            && self.stale == 0
    }

    /// Whether rows of a next pass are ready while one is in flight.
    pub(in super::super) fn is_ahead(&self) -> bool {
        self.due() > 0 && self.may_go_ahead(1)
    }

    /// Whether the pass in flight may be followed by another one: it has not ended.
    pub(in super::super) fn may_be_followed(&self) -> bool {
        let next = self.passes().last().and_then(|before| before.next.as_ref());
        next.is_some_and(|next| next.is_open())
    }

    /// Whether its next pass may take that route: it chooses tokens on the same device as the pass in flight, so that
    /// tokens are sent in order.
    pub(in super::super) fn may_take(&self, route: &Route) -> bool {
        let before = self.passes().last().and_then(|before| before.decides_on);
        before.is_some() && before == decides_on(route)
    }

    /// Links the next pass with the one in flight, if there is one. If that has ended meanwhile, the next pass is stale.
    fn go_ahead(&mut self) {
        let first = self.row_ids(self.sent..self.sent + 1).first().copied();
        if let (true, Some(first), Some(before)) = (self.is_ahead(), first, self.passes().last())
            && let Some(next) = &before.next
        {
            next.follow(first);
            let next = Arc::clone(next);
            if let Some(it) = &mut self.speculation {
                it.before = Some(next);
            }
        }
    }
}
