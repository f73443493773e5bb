//! Cutting what is due into chunks.

use std::sync::Arc;

use lapwing_kernels::device::{Batch, TensorSet};

use super::{Scheduler, SchedulerEffect, fail};
use crate::message::{Chunk, ChunkRecord, Hold, Phase, Span};
use crate::sequence::Permit;

impl Scheduler {
    /// Leases a page for every decode row that needs a new one. When there is none, younger
    /// sequences give theirs back and start again later; the oldest always gets on.
    pub(super) fn reserve_decode_rows(&mut self, effects: &mut Vec<SchedulerEffect>) {
        if self.decoding.is_some() {
            return;
        }
        let mut at = 0;
        while at < self.running.len() {
            let sequence = &mut self.running[at];
            if !sequence.is_decoding() {
                at += 1;
                continue;
            }
            if sequence.reserve(&self.kv).is_ok() {
                at += 1;
                continue;
            }
            let id = sequence.id;
            let victim = self.running.iter().rposition(|s| s.in_flight == 0 && s.id > id);
            if let Some(victim) = victim {
                let mut sequence = self.running.remove(victim);
                sequence.preempt(effects);
                self.waiting.push(sequence);
            } else if let Some(error) = self.kv.too_small_for(self.running[at].ids.len()) {
                fail(self.running.remove(at), &error, effects);
            } else {
                at += 1;
            }
        }
    }

    /// The next chunk: a decode row of every sequence that has one, and prompt rows up to the
    /// chunk size. `None` when nothing is due. With it, what has held its rows back the longest.
    pub(super) fn next_chunk(&mut self, permit: Permit) -> Option<(Chunk, Option<Hold>)> {
        let mut batch = Batch::default();
        let mut spans = Vec::new();
        let mut prompt_rows = self.config.chunk_rows;
        let mut decodes = false;
        let mut hold: Option<Hold> = None;
        for sequence in &mut self.running {
            let due = sequence.due();
            let rows = if sequence.is_decoding() {
                usize::from(self.decoding.is_none() && sequence.has_pages(&self.kv))
            } else {
                due.min(prompt_rows)
            };
            if rows == 0 {
                continue;
            }
            if sequence.is_decoding() {
                decodes = true;
            } else {
                prompt_rows -= rows;
            }
            let held = sequence.held.take();
            hold = hold.into_iter().chain(held).min_by_key(|(_, since)| *since);
            let start = sequence.sent;
            let (selected, finish) = sequence.hand_out(rows);
            let ids = &sequence.ids[start..start + rows];
            batch.push(ids, start, sequence.lease.page_ids().to_vec(), selected);
            spans.push(Span {
                sequence: sequence.id,
                lease: sequence.lease.clone(),
                ledger: Arc::clone(&sequence.ledger),
                sink: Arc::clone(&sequence.sink),
                finish,
                traced: sequence.traced,
            });
        }
        if spans.is_empty() {
            return None;
        }
        let id = self.next_chunk;
        self.next_chunk += 1;
        if decodes {
            self.decoding = Some(id);
        }
        let phase = match (decodes, prompt_rows < self.config.chunk_rows) {
            (true, true) => Phase::Mixed,
            (true, false) => Phase::Decode,
            (false, _) => Phase::Prefill,
        };
        let record =
            ChunkRecord { traced: spans.iter().any(|s| s.traced), ..ChunkRecord::default() };
        let trace = tracing::trace_span!("chunk", id, rows = batch.rows(), spans = spans.len());
        let chunk = Chunk {
            id,
            phase,
            route: Arc::clone(&self.route),
            cursor: 0,
            batch,
            spans,
            tensors: TensorSet::default(),
            permit,
            trace,
            record,
        };
        Some((chunk, hold))
    }
}
