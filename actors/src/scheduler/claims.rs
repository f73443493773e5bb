//! What running requests claim of the KV cache, and whether it is promised to a request at its admission.
//!
//! With [`Reserve::Peak`] a claim is the number of pages that a request has once all of its tokens are stored. Two rules keep
//! every request in its place until it ends:
//! - A request is admitted if the peak of all claims stays below the cache, as in the servers of S-LoRA and VTC: of the requests
//!   in descending order of the pages that they still need, the largest of (number so far) · (pages that the last of them
//!   needs) + (pages that all of them have). This is the most that they hold at once if all of them go on in step.
//! - A request gets a page if afterwards all can end one after the other, the one with the least need first (the safe states of
//!   the banker's algorithm; Dijkstra, 1965). Otherwise it waits. A peak below the cache is such a state, and the request with
//!   the least need always gets its page, so that some request goes on in any schedule.
//!
//! Pages that the prefix cache shares count once.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use foldhash::HashSet;
use lapwing_kernels::device::ModelId;
use lapwing_kernels::kv::{KvPage, PageId};

use super::models::Model;
use super::running::Sequence;
use super::state::Scheduler;
use crate::error::RunError;

/// Room in the KV cache that a request finds when it is admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reserve {
    /// Room for its prompt. More requests run at once; when their answers fill the cache, some are preempted and computed again.
    #[default]
    Prompt,
    /// Room for the most that all running requests hold at once if their answers are as long as they may be. Only background
    /// work is preempted.
    Peak,
}

impl Reserve {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Reserve::Prompt => "prompt",
            Reserve::Peak => "peak",
        }
    }
}

impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Reserve {
    type Err = String;

    fn from_str(text: &str) -> Result<Reserve, String> {
        let all = [Reserve::Prompt, Reserve::Peak];
        let found = all.into_iter().find(|reserve| reserve.name() == text);
        found.ok_or_else(|| format!("'{text}' is neither prompt nor peak"))
    }
}

/// Pages of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    /// Those that it has, and no request before it.
    held: usize,
    /// Those that it still needs at most.
    needed: usize,
}

/// The most pages at once if all go on in step; claims in descending order of need.
fn peak(claims: &[Claim]) -> usize {
    let mut held = 0;
    let at_end = |(before, claim): (usize, &Claim)| {
        held += claim.held;
        (before + 1) * claim.needed + held
    };
    claims.iter().enumerate().map(at_end).max().unwrap_or(0)
}

/// Whether all can end one after the other; claims in descending order of need.
fn is_safe(claims: &[Claim], capacity: usize) -> bool {
    let mut held = 0;
    claims.iter().all(|claim| {
        held += claim.held;
        held + claim.needed <= capacity
    })
}

impl Sequence {
    /// Rows of which it needs keys and values when its last token is generated.
    fn rows_at_end(&self) -> usize {
        let generated = self.entry.tokens_max().saturating_sub(1);
        (self.times.prompt_tokens + generated).max(self.ids.len())
    }

    /// First pages of a waiting sequence that the prefix cache has.
    fn cached_pages(&self, model: &Model) -> Vec<PageId> {
        let ids = &self.ids[..self.reusable_rows()];
        model.find_prefix(&self.prefix, ids).pages.iter().map(KvPage::id).collect()
    }
}

/// What a request has, and what it is to have.
struct Holder<'a> {
    pages: &'a [PageId],
    /// Further pages of its own.
    more: usize,
    /// Pages that it still needs after those.
    needed: usize,
}

impl<'a> Holder<'a> {
    fn new(pages: &'a [PageId], more: usize, at_end: usize) -> Holder<'a> {
        Holder { pages, more, needed: at_end.saturating_sub(pages.len() + more) }
    }
}

/// Claims in descending order of need. If pages are shared, one that several requests have is that of the first of them.
fn claims(mut holders: Vec<Holder<'_>>, are_shared: bool) -> Vec<Claim> {
    holders.sort_by_key(|holder| Reverse(holder.needed));
    let mut seen: HashSet<PageId> = HashSet::default();
    let claim = |holder: Holder<'_>| {
        let held = match are_shared {
            true => holder.pages.iter().filter(|page| seen.insert(**page)).count(),
            false => holder.pages.len(),
        };
        Claim { held: held + holder.more, needed: holder.needed }
    };
    holders.into_iter().map(claim).collect()
}

impl Scheduler {
    /// Sets how much room a request finds when it is admitted.
    pub fn set_reserve(&mut self, reserve: Reserve) {
        self.reserve = reserve;
    }

    /// The running requests of a model that stay; those that `grow` have pages for all of their tokens.
    fn holders(
        &self,
        model: ModelId,
        stays: impl Fn(&Sequence) -> bool,
        grow: impl Fn(&Sequence) -> bool,
    ) -> Vec<Holder<'_>> {
        let kv = &self.models[model.0].kv;
        let of_model = |it: &&Sequence| it.model == model && !it.is_companion() && stays(it);
        let all = self.running.iter().filter(of_model);
        all.map(|it| {
            let more = if grow(it) { it.missing_pages(kv) } else { 0 };
            Holder::new(it.lease.page_ids(), more, kv.layout.pages_for(it.rows_at_end()))
        })
        .collect()
    }

    /// Whether all running requests of a model can end; those that `grow` have pages for all of their tokens.
    fn can_all_end(&self, model: ModelId, grow: impl Fn(&Sequence) -> bool) -> bool {
        let Model { kv, prefixes, .. } = &self.models[model.0];
        let holders = self.holders(model, |_| true, grow);
        is_safe(&claims(holders, prefixes.is_some()), kv.pool.usable())
    }

    /// Whether a waiting request may be admitted beside the running ones, without background work if it `displaces` that.
    pub(super) fn is_promised(&self, at: usize, displaces: bool) -> bool {
        if self.reserve == Reserve::Prompt {
            return true;
        }
        let waiting = &self.waiting[at];
        let model = &self.models[waiting.model.0];
        let (layout, cached) = (&model.kv.layout, waiting.cached_pages(model));
        let more = layout.pages_for(waiting.ids.len()).saturating_sub(cached.len());
        let own = Holder::new(&cached, more, layout.pages_for(waiting.rows_at_end()));
        let stays = |it: &Sequence| !(displaces && it.gives_way() && it.in_flight == 0);
        let mut all = self.holders(waiting.model, stays, |_| false);
        all.push(own);
        peak(&claims(all, model.prefixes.is_some())) < model.kv.pool.usable()
    }

    /// Whether every running request may have the pages that it needs now.
    pub(super) fn may_all_grow(&self) -> bool {
        let mut models = (0..self.models.len()).map(ModelId);
        self.reserve == Reserve::Prompt || models.all(|it| self.can_all_end(it, |_| true))
    }

    /// Whether the running request at a place may have the pages that it needs now.
    pub(super) fn may_grow(&self, at: usize) -> bool {
        let Sequence { id, model, .. } = self.running[at];
        self.may_preempt(at) || self.can_all_end(model, |it| it.id == id)
    }

    /// Whether the sequence at a place may take the pages of others: with promised room only if the cache has become smaller,
    /// because a device was lost.
    pub(super) fn may_preempt(&self, at: usize) -> bool {
        let sequence = &self.running[at];
        self.reserve == Reserve::Prompt
            || sequence.is_companion()
            || !self.can_all_end(sequence.model, |_| false)
    }

    /// The error if the whole KV cache can never hold a waiting request.
    pub(super) fn never_fits(&self, at: usize) -> Option<RunError> {
        let waiting = &self.waiting[at];
        let kv = &self.models[waiting.model.0].kv;
        if self.reserve == Reserve::Prompt {
            return kv.too_small_for(waiting.ids.len());
        }
        // A peak is below the cache.
        let (wanted, capacity) = (kv.layout.pages_for(waiting.rows_at_end()) + 1, kv.pool.usable());
        (wanted > capacity).then_some(RunError::OutOfKvPages { wanted, capacity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(all: &[(usize, usize)]) -> Vec<Claim> {
        all.iter().map(|(held, needed)| Claim { held: *held, needed: *needed }).collect()
    }

    #[test]
    fn the_peak_is_that_of_requests_in_step() {
        // Three requests in step: after 2 steps the last one ends, after 5 the second, after 9 the first.
        let three = pages(&[(10, 9), (20, 5), (30, 2)]);
        assert_eq!(peak(&three), 60 + 3 * 2);
        let in_step = |step: usize| -> usize {
            let left = three.iter().filter(|claim| claim.needed >= step);
            left.map(|claim| claim.held + step).sum()
        };
        assert_eq!((0..=9).map(in_step).max(), Some(peak(&three)));
        assert_eq!(peak(&[]), 0);
    }

    #[test]
    fn requests_are_safe_if_they_can_end_one_after_the_other() {
        let two = pages(&[(10, 50), (100, 1)]);
        // The second ends with 111 pages in all, after which the first has 60.
        assert!(is_safe(&two, 111) && !is_safe(&two, 110));
        // A peak that fits is safe.
        assert!(is_safe(&two, peak(&two)));
    }

    #[test]
    fn a_reserve_has_a_name() {
        for reserve in [Reserve::Prompt, Reserve::Peak] {
            assert_eq!(reserve.to_string().parse(), Ok(reserve));
        }
        assert!("all".parse::<Reserve>().is_err());
    }
}
