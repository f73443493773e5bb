//! Selects the rows of a chunk: first decode rows, then prompt rows in the room that these leave.

use lapwing_plan::Phase;
use lapwing_plan::moment::Haste;
use lapwing_plan::planner::Planner;
use lapwing_plan::strategy::{ChunkShape, PromptRows};

use super::models::{ChunkKind, Model};
use super::rows::{Limit, PlannedBy, Room, RowKinds};
use super::running::Sequence;
use super::state::Scheduler;
use crate::chunk::Turn;

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
    /// Without rows.
    fn new(kind: ChunkKind, by: PlannedBy) -> Selection {
        let phase = Phase::Prefill;
        let shape = ChunkShape { phase, rows: 0, selected: 0, context: 0, prompt: 0 };
        Selection { kind, by, rows: Vec::new(), shape, prompts: 0, limit: None }
    }

    /// Number of decode rows, with those of branches.
    pub(super) fn decodes(&self) -> usize {
        self.shape.rows - self.prompts
    }

    /// Whether it has rows of the running sequence at that place.
    pub(super) fn holds(&self, place: usize) -> bool {
        self.rows.binary_search_by_key(&place, |(at, _)| *at).is_ok()
    }

    /// Adds the next `rows` rows of the running sequence at a place.
    fn add(&mut self, place: usize, sequence: &Sequence, rows: usize) {
        self.rows.push((place, rows));
        self.shape.rows += rows;
        self.shape.selected += sequence.selected_in(rows);
        self.shape.context = self.shape.context.max(sequence.sent);
    }

    /// Puts its rows in the order of the running sequences. `None` without any.
    fn complete(mut self) -> Option<Selection> {
        self.shape.phase = match (self.decodes() > 0, self.prompts > 0) {
            (true, true) => Phase::Mixed,
            (true, false) => Phase::Decode,
            (false, true) => Phase::Prefill,
            (false, false) => return None,
        };
        self.rows.sort_unstable_by_key(|(place, _)| *place);
        Some(self)
    }
}

/// The running sequences whose ready rows may go into a chunk, in order of rank, each with its place.
struct Ready<'a> {
    running: &'a [Sequence],
    model: &'a Model,
    kind: ChunkKind,
    rows: RowKinds,
    /// Whether background work stays out of the chunk.
    displaces: bool,
}

impl<'a> Ready<'a> {
    fn may_send(&self, sequence: &Sequence) -> bool {
        let is_displaced = self.displaces && sequence.gives_way();
        sequence.kind() == self.kind && sequence.has_pages(&self.model.kv) && !is_displaced
    }

    fn decodes(&self) -> impl Iterator<Item = (usize, &'a Sequence)> {
        let running = if self.model.may_step() { self.running } else { &[] };
        running.iter().enumerate().filter(|(_, sequence)| {
            let is_wanted = match sequence.has_state() {
                true => self.rows.decodes,
                false => {
                    let may_go_ahead = self.rows.ahead && self.model.may_go_ahead(sequence);
                    may_go_ahead && sequence.may_be_followed()
                }
            };
            is_wanted && sequence.is_decoding() && self.may_send(sequence)
        })
    }

    fn prompts(&self) -> impl Iterator<Item = (usize, &'a Sequence)> {
        let running = if self.rows.prompts { self.running } else { &[] };
        running.iter().enumerate().filter(|(_, sequence)| {
            sequence.due() > 0 && !sequence.is_decoding() && self.may_send(sequence)
        })
    }
}

impl Ready<'_> {
    /// What a strategy is told of the prompts that may share the next chunk, which has so many rows at most: they are as long as the longest
    /// of them, since those behind it have chunks of their own, or as all of them where they fit into one chunk.
    fn prompt_rows(&self, most: usize) -> PromptRows {
        let (mut longest, mut due) = (0, 0);
        for (_, prompt) in self.prompts() {
            if due >= most {
                break;
            }
            longest = longest.max(prompt.goal());
            due += prompt.due();
        }
        let all = longest.max(due.min(most));
        PromptRows { all, remaining: due.min(all) }
    }
}

/// Room for prompt rows in a chunk.
struct RowBudget {
    left: usize,
    /// Whether a prompt has taken rows.
    is_shared: bool,
}

impl RowBudget {
    /// As many rows as the planner puts into a chunk for these rows, of which `decodes` are decode rows, but at most `room`.
    fn new(planner: &Planner, rows: PromptRows, decodes: usize, room: usize) -> RowBudget {
        // A strategy is asked about prompts only.
        let left = match rows.remaining == decodes {
            true => 0,
            false => planner.chunk_rows(rows).saturating_sub(decodes).max(1).min(room),
        };
        RowBudget { left, is_shared: false }
    }

    /// Takes rows for a prompt.
    fn take(&mut self, prompt: &Sequence) -> usize {
        let rows = prompt.prompt_rows(self.left, self.is_shared);
        self.left = self.left.saturating_sub(rows);
        self.is_shared |= rows > 0;
        rows
    }
}

impl Scheduler {
    /// Computes no prompt rows of requests beside decode rows of others, whatever devices are free: prompts come first, and
    /// streams wait until they are computed, as in servers without chunked prefill. What a draft model computes is not affected.
    pub fn keep_prompts_apart(&mut self) {
        self.keep_chunks_whole();
        self.keeps_apart = true;
    }

    /// Which of these rows may be selected now, if prompts are kept apart.
    fn rows_apart(&self, kind: ChunkKind, rows: RowKinds) -> RowKinds {
        let of_kind = |sequence: &&Sequence| sequence.kind() == kind && !sequence.is_companion();
        if !self.keeps_apart || !self.running.iter().any(|sequence| of_kind(&sequence)) {
            return rows;
        }
        let kv = &self.models[kind.model.0].kv;
        let is_stepping = |sequence: &Sequence| sequence.in_flight > 0 && sequence.has_generated();
        let is_prompt = |sequence: &Sequence| {
            let is_ready = sequence.due() > 0 && !sequence.is_decoding() && sequence.has_pages(kv);
            is_ready || sequence.in_flight > 0 && !sequence.has_generated()
        };
        let any = |is: &dyn Fn(&Sequence) -> bool| self.running.iter().filter(of_kind).any(is);
        let (steps, prompts) = (any(&is_stepping), any(&is_prompt));
        RowKinds {
            decodes: rows.decodes && !prompts,
            prompts: rows.prompts && !steps,
            ahead: rows.ahead && !prompts,
        }
    }

    /// Which chunks one with these rows passes.
    pub(super) fn turn_of(&self, selection: &Selection, haste: Haste) -> Turn {
        let mut all = selection.rows.iter().map(|(at, _)| &self.running[*at]);
        match haste {
            _ if all.all(Sequence::gives_way) => Turn::Background,
            Haste::Due => Turn::Due,
            Haste::InTurn | Haste::Step => Turn::InTurn,
        }
    }

    /// Selects ready rows: a decode row of every sequence that has one, and as many prompt rows as streams leave room for. If
    /// `forced`, prompt rows are not held back.
    pub(super) fn select_paced(
        &mut self,
        kind: ChunkKind,
        by: PlannedBy,
        forced: bool,
    ) -> Option<Selection> {
        self.pace.is_forced = forced;
        let all = self.select(kind, by, RowKinds::ALL, usize::MAX)?;
        match self.room(&all, forced) {
            Room::Free => Some(all),
            Room::Rows(rows, limit) => {
                let limited = self.select(kind, by, RowKinds::ALL, rows)?;
                let limit = (limited.prompts > 0).then_some(limit);
                Some(Selection { limit, ..limited })
            }
            Room::Nothing => {
                self.pace.has_held = true;
                self.select(kind, by, RowKinds::DECODES, 0)
            }
        }
    }

    /// Selects ready rows of these kinds, of which at most `room` are prompt rows, in chunks of the size that one planner
    /// chooses.
    pub(super) fn select(
        &self,
        kind: ChunkKind,
        by: PlannedBy,
        rows: RowKinds,
        room: usize,
    ) -> Option<Selection> {
        let model = &self.models[kind.model.0];
        let rows = self.rows_apart(kind, rows);
        let displaces = rows.prompts && self.displaces_background(kind);
        let ready = Ready { running: &self.running, model, kind, rows, displaces };
        let mut chunk = Selection::new(kind, by);
        for (place, sequence) in ready.decodes() {
            chunk.add(place, sequence, sequence.due());
            chunk.shape.rows += sequence.branch_rows();
        }
        let decodes = chunk.decodes();
        let planner = model.planner_by(kind.output, by)?;
        let PromptRows { all, remaining } = ready.prompt_rows(planner.chunk_rows_max());
        chunk.shape.prompt = all;
        let all = PromptRows { all: all + decodes, remaining: remaining + decodes };
        let mut budget = RowBudget::new(planner, all, decodes, room);
        for (place, prompt) in ready.prompts() {
            let rows = budget.take(prompt);
            if rows > 0 {
                chunk.add(place, prompt, rows);
                chunk.prompts += rows;
            }
        }
        chunk.complete()
    }
}
