//! Selects the rows of a chunk.

use lapwing_plan::Phase;
use lapwing_plan::planner::Planner;
use lapwing_plan::strategy::{ChunkShape, PromptRows};

use super::models::ChunkKind;
use super::rows::{Limit, PlannedBy, Room, RowKinds};
use super::state::Scheduler;

/// Rows for one chunk: indices of running sequences, with a row count for each.
pub(super) struct Selection {
    pub(super) kind: ChunkKind,
    pub(super) by: PlannedBy,
    pub(super) rows: Vec<(usize, usize)>,
    pub(super) shape: ChunkShape,
    /// Number of prompt rows among them.
    pub(super) prompts: usize,
    /// Why there are not more prompt rows, if streams limit them.
    pub(super) limit: Option<Limit>,
}

impl Selection {
    /// Number of decode rows, with those of branches.
    pub(super) fn decodes(&self) -> usize {
        self.shape.rows - self.prompts
    }

    /// Whether it has rows of the running sequence at that place.
    pub(super) fn holds(&self, place: usize) -> bool {
        self.rows.binary_search_by_key(&place, |(at, _)| *at).is_ok()
    }
}

impl Scheduler {
    /// Selects ready rows: a decode row of every sequence that has one, and as many prompt rows as streams leave room for. If
    /// `forced`, prompt rows are not held back.
    pub(super) fn select_paced(
        &mut self,
        kind: ChunkKind,
        by: PlannedBy,
        forced: bool,
    ) -> Option<Selection> {
        self.pace.is_forced = forced;
        let all = self.select_by(by, kind, RowKinds::ALL, usize::MAX)?;
        match self.room(&all, forced) {
            Room::Free => Some(all),
            Room::Rows(rows, limit) => {
                let limited = self.select_by(by, kind, RowKinds::ALL, rows)?;
                let limit = (limited.prompts > 0).then_some(limit);
                Some(Selection { limit, ..limited })
            }
            Room::Nothing => {
                self.pace.has_held = true;
                self.select_by(by, kind, RowKinds::DECODES, 0)
            }
        }
    }

    fn select_by(
        &self,
        by: PlannedBy,
        kind: ChunkKind,
        of: RowKinds,
        room: usize,
    ) -> Option<Selection> {
        let planner = self.models[kind.model.0].planner(kind.output);
        let selection = match by {
            PlannedBy::Strategy => self.select_for(planner, kind, of, room),
            PlannedBy::Meanwhile => self.select_for(planner.meanwhile()?, kind, of, room),
        };
        selection.map(|selection| Selection { by, ..selection })
    }

    /// Selects ready rows of these kinds, of which at most `room` are prompt rows.
    pub(super) fn select(&self, kind: ChunkKind, of: RowKinds, room: usize) -> Option<Selection> {
        self.select_for(self.models[kind.model.0].planner(kind.output), kind, of, room)
    }

    /// As [`select`](Scheduler::select), in chunks of the size that this planner chooses.
    fn select_for(
        &self,
        planner: &Planner,
        kind: ChunkKind,
        of: RowKinds,
        room: usize,
    ) -> Option<Selection> {
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let model = &self.models[kind.model.0];
        let kv = &model.kv;
        let can_decode = model.may_step();
        let displaces = of.prompts && self.displaces_background(kind);
        let can_send = |at: &usize| {
            let sequence = &self.running[*at];
            let is_displaced = displaces && sequence.gives_way();
            sequence.kind() == kind && sequence.has_pages(kv) && !is_displaced
        };
        let decoding = |at: &usize| {
            let sequence = &self.running[*at];
            let wanted = match sequence.has_state() {
                true => of.decodes,
                false => of.ahead && model.may_go_ahead(sequence) && sequence.may_be_followed(),
            };
            wanted && can_decode && sequence.is_decoding() && can_send(at)
        };
        let prompts = of.prompts;
        let decode_rows = (0..self.running.len())
            .filter(decoding)
            .map(|at| self.running[at].due() + self.running[at].branch_rows())
            .sum::<usize>();
        let prompt = |at: &usize| prompts && !self.running[*at].is_decoding() && can_send(at);
        let prompts = (0..self.running.len()).filter(prompt).map(|at| &self.running[at]);
        let prompts = prompts.filter(|sequence| sequence.due() > 0);
        let (due, all) = prompts.fold((0, 0), |(due, all), s| (due + s.due(), all + s.goal()));
        let rows_of = PromptRows { all: all + decode_rows, remaining: due + decode_rows };
        let mut left = match due {
            0 => 0,
            _ => planner.chunk_rows(rows_of).saturating_sub(decode_rows).max(1).min(room),
        };
        let (mut selected, mut context, mut branch_rows, mut prompt_rows) = (0, 0, 0, 0);
        let (mut any_decode, mut any_prompt) = (false, false);
        for (at, sequence) in self.running.iter().enumerate() {
            let count = if decoding(&at) {
                any_decode = true;
                branch_rows += sequence.branch_rows();
                sequence.due()
            } else if prompt(&at) {
                sequence.prompt_rows(left, any_prompt)
            } else {
                0
            };
            if count == 0 {
                continue;
            }
            if !sequence.is_decoding() {
                any_prompt = true;
                prompt_rows += count;
                left = left.saturating_sub(count);
            }
            selected += sequence.selected_in(count);
            context = context.max(sequence.sent);
            rows.push((at, count));
        }
        let phase = phase(any_decode, any_prompt)?;
        let total = rows.iter().map(|(_, count)| count).sum::<usize>() + branch_rows;
        let shape = ChunkShape { phase, rows: total, selected, context, prompt: all };
        let by = PlannedBy::Strategy;
        Some(Selection { kind, by, rows, shape, prompts: prompt_rows, limit: None })
    }
}

/// The phase of a chunk with such rows; `None` without any.
fn phase(decodes: bool, prompts: bool) -> Option<Phase> {
    match (decodes, prompts) {
        (true, true) => Some(Phase::Mixed),
        (true, false) => Some(Phase::Decode),
        (false, true) => Some(Phase::Prefill),
        (false, false) => None,
    }
}
