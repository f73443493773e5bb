//! What the queue knows of a sequence.

use lapwing_traces::Nanos;

use crate::policy::{ClientId, Rank, Urgency};
use crate::scheduler::accounts::AccountId;

/// The queue's state of a sequence, apart from its progress.
pub(in super::super) struct QueueEntry {
    pub(super) client: ClientId,
    pub(super) urgency: Urgency,
    pub(super) tokens_max: usize,
    /// Its rank at the latest ordering of running sequences.
    pub(in crate::scheduler) rank: Rank,
    pub(super) running: bool,
    pub(super) account: AccountId,
    /// Rows before this position are recomputed if they are sent again, because a preemption or a roll-back
    /// has lost them.
    pub(super) lost_rows: usize,
    /// Time of its latest rows, or of its arrival.
    served: Nanos,
    /// Whether it is background work that has a turn.
    has_turn: bool,
}

impl QueueEntry {
    /// The entry of a sequence that has just arrived.
    pub(in super::super) fn new(
        client: ClientId,
        urgency: Urgency,
        tokens_max: usize,
    ) -> QueueEntry {
        let (rank, running, account, lost_rows) = (Rank::EQUAL, false, AccountId::default(), 0);
        QueueEntry {
            client,
            urgency,
            tokens_max,
            rank,
            running,
            account,
            lost_rows,
            served: Nanos::default(),
            has_turn: false,
        }
    }

    /// As it is, of a sequence that arrived at that time.
    pub(in super::super) fn since(self, arrival: Nanos) -> QueueEntry {
        QueueEntry { served: arrival, ..self }
    }

    /// The entry of a draft model's sequence, for which no client is charged.
    pub(in super::super) fn of_companion(&self) -> QueueEntry {
        let QueueEntry { rank, has_turn, .. } = *self;
        QueueEntry { rank, has_turn, ..QueueEntry::new(self.client.clone(), self.urgency, 0) }
    }

    pub(in super::super) fn urgency(&self) -> Urgency {
        self.urgency
    }

    /// Whether it gives way to other requests: it is background work without a turn.
    pub(in super::super) fn gives_way(&self) -> bool {
        self.urgency.is_background() && !self.has_turn
    }

    /// Records that it has rows in a chunk, or a token.
    pub(in super::super) fn on_served(&mut self, now: Nanos) {
        self.served = now;
    }

    /// Time of its latest rows, or of its arrival.
    pub(in super::super) fn served(&self) -> Nanos {
        self.served
    }

    /// Gives it a turn, or takes it.
    pub(in super::super) fn set_turn(&mut self, has_turn: bool) {
        self.has_turn = has_turn;
    }

    /// Whether it is background work that has a turn.
    pub(in super::super) fn has_turn(&self) -> bool {
        self.has_turn
    }

    pub(in super::super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(in super::super) fn set_rank(&mut self, rank: Rank) {
        self.rank = rank;
    }

    /// Most tokens that the request may generate.
    pub(in super::super) fn tokens_max(&self) -> usize {
        self.tokens_max
    }

    /// Records that the rows before `end` are lost and must be recomputed.
    pub(in super::super) fn lose_rows(&mut self, end: usize) {
        self.lost_rows = self.lost_rows.max(end);
    }
}
