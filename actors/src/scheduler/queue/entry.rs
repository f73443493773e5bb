//! What the queue knows of a sequence.

use std::time::Duration;

use lapwing_traces::Nanos;

use crate::policy::{ClientId, Rank, Urgency};
use crate::scheduler::accounts::AccountId;

/// The queue's state of a sequence, apart from its progress.
pub(in super::super) struct QueueEntry {
    pub(super) client: ClientId,
    pub(super) urgency: Urgency,
    pub(super) tokens_max: usize,
    /// Its rank at the latest ordering of running sequences.
    pub(super) rank: Rank,
    pub(super) running: bool,
    pub(super) account: AccountId,
    /// Rows before this position are recomputed if they are sent again, because a preemption or a roll-back
    /// has lost them.
    pub(super) lost_rows: usize,
    /// Time of its latest rows, or of its arrival.
    pub(super) served: Nanos,
}

/// Time without rows after which background work ranks with other requests, so that it does not starve.
const AGE: Duration = Duration::from_secs(10);

impl QueueEntry {
    /// The entry of a sequence that has just arrived.
    pub(in super::super) fn new(
        client: ClientId,
        urgency: Urgency,
        tokens_max: usize,
    ) -> QueueEntry {
        let (rank, running, account, lost_rows) = (Rank::EQUAL, false, AccountId::default(), 0);
        let served = Nanos::default();
        QueueEntry { client, urgency, tokens_max, rank, running, account, lost_rows, served }
    }

    /// As it is, of a sequence that arrived at that time.
    pub(in super::super) fn since(self, arrival: Nanos) -> QueueEntry {
        QueueEntry { served: arrival, ..self }
    }

    /// The entry of a draft model's sequence, for which no client is charged.
    pub(in super::super) fn of_companion(&self) -> QueueEntry {
        let (rank, served) = (self.rank, self.served);
        QueueEntry { rank, served, ..QueueEntry::new(self.client.clone(), self.urgency, 0) }
    }

    pub(in super::super) fn urgency(&self) -> Urgency {
        self.urgency
    }

    /// Whether it gives way to other requests: it is background work that has had rows lately.
    pub(in super::super) fn gives_way(&self, now: Nanos) -> bool {
        self.urgency.is_background() && now < self.served + AGE
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
