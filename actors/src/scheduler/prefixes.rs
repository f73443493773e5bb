//! The prefix cache of each model: which rows of a request need not be computed, and which pages stay
//! when a request ends.

use std::sync::Arc;

use lapwing_kernels::device::ModelId;
use lapwing_kernels::kv::{KvLease, KvPage, OutOfPages};

use super::copy_page::CopyPage;
use super::models::Model;
use super::running::Sequence;
use super::state::Scheduler;
use crate::message::RollBack;
use crate::prefix::{DroppedText, Found, PrefixCache, PrefixTree, PrefixUse, common};

impl Model {
    /// Adds pages to a lease until `rows` rows fit. Drops pages of the prefix cache if too few are free.
    pub(super) fn grow(&mut self, lease: &mut KvLease, rows: usize) -> Result<(), OutOfPages> {
        let missing = self.kv.layout.pages_for(rows).saturating_sub(lease.pages().len());
        let short = missing.saturating_sub(self.kv.pool.free_pages());
        if let (1.., Some(prefixes)) = (short, &self.prefixes) {
            prefixes.tree().free(short);
        }
        lease.grow(&self.kv.pool, &self.kv.layout, rows)
    }

    /// Whether there may be room for `rows` rows of a request that begins with `ids`. The pages that are cached of it need not be leased to
    /// know that there is none. Known only of models whose pages are shared whole, and alone.
    pub(super) fn may_have_room(&self, prefix: &PrefixUse, ids: &[u32], rows: usize) -> bool {
        let (Some(prefixes), PrefixUse::Shared(namespace)) = (&self.prefixes, prefix) else {
            return true;
        };
        if self.has_state || prefixes.store().is_some() {
            return true;
        }
        let (all, free) = (self.kv.layout.pages_for(rows), self.kv.pool.free_pages());
        prefixes.tree().has_room(namespace, ids, |cached| all.saturating_sub(cached + free))
    }

    /// The cached pages of the longest prefix of `ids`.
    pub(super) fn find_prefix(&self, prefix: &PrefixUse, ids: &[u32]) -> Found {
        let (Some(prefixes), PrefixUse::Shared(namespace)) = (&self.prefixes, prefix) else {
            return Found::default();
        };
        let (mut tree, has_copies) = (prefixes.tree(), prefixes.store().is_some());
        if self.has_state {
            let known = tree.matched(namespace, ids);
            let Some(state) = tree.find_state(namespace, ids, !has_copies) else {
                return Found { known, ..Found::default() };
            };
            let found = tree.find(namespace, &ids[..state.rows]);
            return Found { state: Some(state), known, ..found };
        }
        let found = tree.find(namespace, ids);
        Found { partial: found.partial.filter(|_| has_copies), ..found }
    }

    /// The effect that copies a partly filled page.
    pub(super) fn copy_page(
        &self,
        from: KvPage,
        to: KvPage,
        instead: RollBack,
    ) -> Option<CopyPage> {
        let store = Arc::clone(self.prefixes.as_ref()?.store()?);
        Some(CopyPage { store, from, to, instead })
    }
}

impl Sequence {
    /// Number of the tokens of a waiting sequence whose rows the prefix cache of its model has.
    pub(super) fn matched(&self, tree: Option<&PrefixTree>) -> usize {
        match (tree, &self.prefix) {
            (Some(tree), PrefixUse::Shared(namespace)) => {
                let ids = &self.ids[..self.reusable_rows()];
                tree.matched_again(namespace, ids, &self.matched)
            }
            _ => 0,
        }
    }
}

impl Scheduler {
    /// Shares the KV pages of a model's requests: a request does not compute rows that an earlier one with
    /// the same first tokens has computed. Rows are the same function of their tokens with and without it, so
    /// no token changes. An encoder's rows depend on later tokens, so its requests share none. Those of a model with states
    /// go on only after rows whose states are kept.
    pub fn cache_prefixes(&mut self, model: ModelId, cache: PrefixCache) {
        if let Some(model) = self.models.get_mut(model.0).filter(|model| !model.is_encoder) {
            model.prefixes = Some(cache);
        }
    }

    /// Reports from now on what the prefix caches drop, in whole blocks of so many tokens.
    pub fn report_drops(&self, block: usize) {
        self.prefixes().for_each(|cache| cache.tree().report_drops(block));
    }

    /// What the prefix caches have dropped since this was last called.
    pub fn take_drops(&self) -> Vec<DroppedText> {
        self.prefixes().flat_map(|cache| cache.tree().take_drops()).collect()
    }

    /// Number of KV pages in the prefix caches, those that sequences lease included.
    pub fn cached_pages(&self) -> usize {
        self.prefixes().map(|cache| cache.tree().pages()).sum()
    }

    /// Number of places in the prefix caches with states of layers.
    pub fn cached_states(&self) -> usize {
        self.prefixes().map(|cache| cache.tree().states()).sum()
    }

    /// Nodes and tokens that the prefix caches have looked at: what they cost, whatever the machine.
    pub fn prefix_looks(&self) -> u64 {
        self.prefixes().map(|cache| cache.tree().looks()).sum()
    }

    /// Number of KV pages in the prefix caches that no sequence leases.
    pub(super) fn unleased_pages(&self) -> usize {
        self.prefixes().map(|cache| cache.tree().unleased()).sum()
    }

    fn prefixes(&self) -> impl Iterator<Item = &PrefixCache> {
        self.models.iter().filter_map(|model| model.prefixes.as_ref())
    }

    /// Puts the pages that a sequence has filled into the prefix cache; also a partly filled one if the
    /// sequence has ended. If the cache already has pages with the same tokens, the sequence leases these in
    /// place of its own. A sequence with a cached page therefore leases all cached pages before it, too.
    pub(super) fn keep_rows(&mut self, at: usize, ended: bool) {
        let sequence = &mut self.running[at];
        let Model { prefixes, kv, .. } = &mut self.models[sequence.model.0];
        let (Some(prefixes), PrefixUse::Shared(namespace)) = (prefixes, &sequence.prefix) else {
            return;
        };
        let done = sequence.progress.complete();
        let complete = done.min(sequence.ids.len());
        let whole = complete / kv.layout.page_rows * kv.layout.page_rows;
        // A chunk whose rows are complete may not have reported its end yet; it writes nothing any more.
        let is_settled = sequence.in_flight == 0 || done >= sequence.sent;
        let rows = if ended && is_settled { complete } else { whole };
        if rows > sequence.shared.rows {
            let pages = &sequence.lease.pages()[..kv.layout.pages_for(rows)];
            // Those that it shared before are those of the tree.
            let known = sequence.shared.rows / kv.layout.page_rows;
            let ids = &sequence.ids[..rows];
            let others = prefixes.tree().keep(namespace, ids, pages, &mut sequence.shared);
            sequence.lease.replace(known, &others);
        }
        if sequence.states.is_some() {
            let namespace = namespace.clone();
            sequence.keep_states(&mut prefixes.tree(), &namespace, ended && is_settled);
        }
    }

    /// Whether a waiting request begins with a page of tokens that a running sequence is about to compute.
    /// It is admitted when they are computed, and does not block others meanwhile.
    pub(super) fn awaits_prefix(&self, at: usize) -> bool {
        self.awaited_prefix(at).is_some()
    }

    /// The first running sequence whose rows a waiting request awaits, and how many of them.
    pub(super) fn awaited_prefix(&self, at: usize) -> Option<(usize, usize)> {
        let waiting = &self.waiting[at];
        let Model { prefixes, kv, .. } = &self.models[waiting.model.0];
        let prefixes = prefixes.as_ref().filter(|_| waiting.prefix != PrefixUse::Off)?;
        let ids = &waiting.ids[..waiting.reusable_rows()];
        let cached = waiting.matched(Some(&prefixes.tree()));
        let computes = |running: &Sequence| {
            // What gives way may be computed much later.
            let is_late = running.gives_way() && !waiting.gives_way();
            let is_alike =
                running.model == waiting.model && running.prefix == waiting.prefix && !is_late;
            let whole = || {
                let same = common(ids, &running.ids[..running.goal().min(running.ids.len())]);
                same / kv.layout.page_rows * kv.layout.page_rows
            };
            is_alike.then(whole).filter(|rows| *rows > cached)
        };
        let mut found = self.running.iter().enumerate();
        found.find_map(|(at, running)| Some((at, computes(running)?)))
    }
}
