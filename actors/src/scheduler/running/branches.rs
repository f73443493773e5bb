//! The branches of a draft that is a tree. The draft's longest path is a chain of rows like any draft. Each branch has
//! pages of its own behind the full ones that it shares.

use lapwing_kernels::device::{Batch, Fork};
use lapwing_kernels::kv::{KvLease, KvPage, PageId};

use super::Sequence;
use super::propose::StepTime;
use super::speculation::Speculation;
use crate::draft::{
    ALTERNATIVE_MIN, DRAFT_MAX, DraftTree, StepTokens, TreeRows, VerifiedDraft, best_count,
};
use crate::sample::TokenLogprob;
use crate::scheduler::models::Model;

/// The branches of a draft.
#[derive(Debug)]
pub(super) struct Branches {
    tree: DraftTree,
    rows: TreeRows,
    /// Pages of each piece but the first, whose pages are the sequence's; empty until they are leased.
    pages: Vec<BranchPages>,
    /// First pages, those before the one of the latest token, which all branches share with the sequence.
    shared: usize,
    /// Whether their pass is in flight. The passes ahead of it go on after the longest path, and have no branches.
    sent: bool,
}

#[derive(Debug)]
struct BranchPages {
    lease: KvLease,
    /// A page of the piece that the branch leaves, and the branch's own that begins as its copy.
    copy: Option<(PageId, PageId)>,
}

impl Branches {
    fn are_leased(&self) -> bool {
        self.pages.len() + 1 == self.rows.pieces.len()
    }

    fn are_due(&self) -> bool {
        self.are_leased() && !self.sent
    }
}

impl Speculation {
    /// Records that the pass of the branches is in flight.
    pub(super) fn on_branches_sent(&mut self) {
        self.branches.iter_mut().for_each(|branches| branches.sent = true);
    }
}

impl Sequence {
    /// The branches of its draft, if that is a tree.
    fn branches(&self) -> Option<&Branches> {
        self.speculation.as_ref()?.branches.as_deref()
    }

    /// Takes a draft over.
    pub(super) fn set_draft(&mut self, tree: DraftTree) {
        let rows = tree.rows();
        let first = rows.pieces.first();
        let draft = first.map(|piece| piece.tokens.clone()).unwrap_or_default();
        let branches = Branches { tree, rows, pages: Vec::new(), shared: 0, sent: false };
        let Some(speculation) = self.speculation.as_mut() else { return };
        speculation.draft = draft;
        speculation.branches = (branches.rows.pieces.len() > 1).then(|| Box::new(branches));
    }

    /// Drops the draft.
    pub(super) fn clear_draft(&mut self) {
        let Some(speculation) = self.speculation.as_mut() else { return };
        speculation.draft.clear();
        speculation.branches = None;
    }

    /// Keeps what a draft model's sequence reports beside the tokens that it chose, which are the next ones.
    pub(super) fn keep_alternatives(&mut self, tokens: &StepTokens) {
        if self.is_companion() {
            let tops = tokens.iter().map(|token| token.top.clone());
            let tops = (self.ids.len()..).zip(tops).filter(|(_, top)| !top.is_empty());
            if let Some(it) = &mut self.speculation {
                it.alternatives.extend(tops);
            }
        }
    }

    /// Takes over the tokens `drafted` of a companion, and those of its alternatives that pay, of a vocabulary of
    /// `vocab` tokens.
    pub(super) fn take_alternatives(
        &mut self,
        companion: &Sequence,
        drafted: &[u32],
        vocab: usize,
        time: StepTime<impl Fn(usize) -> Option<f64>>,
    ) {
        let StepTime { others, verify } = time;
        let Some(drafts) = self.drafts() else { return };
        let alternatives = companion.speculation.as_ref().map(|it| &it.alternatives);
        let mut tree = DraftTree::from(drafted.to_vec());
        for (position, likely) in alternatives.into_iter().flatten() {
            let position = position + companion.first();
            let Some(at) = position.checked_sub(self.ids.len()) else { continue };
            let Some(chosen) = drafted.get(at) else { continue };
            let is_likely = |other: &&TokenLogprob| other.logprob.exp() >= ALTERNATIVE_MIN;
            let likely = likely.iter().filter(is_likely).map(|token| token.id);
            let likely = likely.filter(|id| id != chosen && (*id as usize) < vocab);
            for id in likely.take(drafts.width - 1) {
                tree.add(&[&drafted[..at], &[id]].concat());
            }
        }
        if tree.len() > drafted.len() {
            let length = &drafts.length;
            let mut nodes = tree.by_chance((length.acceptance(), length.acceptance_of_others()));
            let fitting = drafts.model().map_or(usize::MAX, |model| model.fitting);
            nodes.truncate(drafts.always.unwrap_or(DRAFT_MAX).min(fitting));
            let best = || best_count(nodes.iter().map(|(_, chance)| *chance), others, verify);
            let count = match drafts.always {
                Some(_) => nodes.len(),
                None => best().map_or(drafted.len(), |best| best.length),
            };
            tree = tree.first(&nodes, count);
        }
        self.set_draft(tree);
    }

    /// Drops the branches that are not sent.
    pub(super) fn clear_due_branches(&mut self) {
        let Some(speculation) = self.speculation.as_mut() else { return };
        speculation.branches = speculation.branches.take().filter(|branches| branches.sent);
    }

    /// Drops the tokens of the draft's longest path behind the first `left`, which are not sent, and the branches.
    pub(super) fn shorten_draft(&mut self, left: usize) {
        if let Some(speculation) = self.speculation.as_mut() {
            speculation.draft.truncate(left);
        }
        self.clear_due_branches();
    }

    /// Number of drafted tokens on branches that have pages and are not sent.
    pub(in super::super) fn branch_rows(&self) -> usize {
        let due = self.branches().filter(|branches| branches.are_due());
        due.map_or(0, |branches| branches.tree.len() - branches.tree.depth())
    }

    /// Leases pages for the branches of a draft whose longest path has pages and is not sent yet. Drops the branches if
    /// too few are free, and if the model has states, which branches do not have.
    pub(in super::super) fn reserve_branches(&mut self, model: &mut Model) {
        if model.has_state {
            return self.clear_due_branches();
        }
        if self.due() == 0 || !self.has_pages(&model.kv) {
            return;
        }
        let branches = self.speculation.as_mut().and_then(|it| it.branches.take());
        let Some(mut branches) = branches else { return };
        if branches.pages.is_empty() {
            let root = self.ids.len() - 1;
            branches.shared = root / model.kv.layout.page_rows;
            branches.pages = self.branch_pages(&branches.rows, root, model);
        }
        if let Some(it) = self.speculation.as_mut().filter(|_| branches.are_leased()) {
            it.branches = Some(branches);
        }
    }

    /// Pages for the branches that there is room for, in order. The latest token is at position `root`.
    fn branch_pages(&self, rows: &TreeRows, root: usize, model: &mut Model) -> Vec<BranchPages> {
        let page_rows = model.kv.layout.page_rows;
        let mut branches: Vec<BranchPages> = Vec::with_capacity(rows.pieces.len() - 1);
        for piece in &rows.pieces[1..] {
            let start = root + piece.depth;
            let parent = piece.parent.and_then(|parent| branches.get(parent.checked_sub(1)?));
            let parent: &[KvPage] = parent.map_or(&self.lease, |branch| &branch.lease).pages();
            let (full, rest) = parent.split_at((start / page_rows).min(parent.len()));
            let mut lease = KvLease::new(full.to_vec());
            let copied = rest.first().filter(|_| !start.is_multiple_of(page_rows));
            let copied = copied.map(KvPage::id);
            if model.grow(&mut lease, start + piece.tokens.len()).is_err() {
                break;
            }
            let own = lease.pages().get(start / page_rows).map(KvPage::id);
            branches.push(BranchPages { lease, copy: copied.zip(own) });
        }
        branches
    }

    /// Adds the branches of the draft to a batch whose last rows are those of the draft's longest path. Returns
    /// their pages.
    pub(in super::super) fn push_branches(&self, batch: &mut Batch) -> Vec<KvLease> {
        let due = self.branches().filter(|branches| branches.are_due());
        let Some(Branches { tree, rows, pages, .. }) = due else { return Vec::new() };
        let root = batch.rows() - 1 - tree.depth();
        for (piece, BranchPages { lease, copy }) in rows.pieces[1..].iter().zip(pages) {
            let start = self.ids.len() - 1 + piece.depth;
            let fork = Fork { after: root + piece.after, copy: *copy };
            batch.push_branch(&piece.tokens, start, lease.page_ids().clone(), fork);
        }
        pages.iter().map(|branch| branch.lease.clone()).collect()
    }

    /// Compares the draft of a step, of `drafted` tokens, with the tokens that the model chose. If they follow a
    /// branch, the sequence goes on with its pages.
    pub(super) fn follow_draft(&mut self, drafted: usize, tokens: &StepTokens) -> VerifiedDraft {
        let accepted = tokens.more.len();
        let branches = self.speculation.as_mut().and_then(|it| it.branches.take());
        let Some(branches) = branches.filter(|branches| branches.are_leased()) else {
            return VerifiedDraft::chain(drafted, accepted);
        };
        let Branches { tree, rows, pages, shared, .. } = *branches;
        let depth = tree.depth();
        let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        let (last, followed) = tree.follow(&ids, accepted);
        let branch = last.and_then(|node| rows.piece_of(node).checked_sub(1));
        if let Some(BranchPages { lease, .. }) = branch.and_then(|branch| pages.get(branch)) {
            // The prefix cache may have replaced the shared ones by others of the same content.
            let own = self.lease.pages().iter().take(shared);
            self.lease = KvLease::new(own.chain(&lease.pages()[shared..]).cloned().collect());
        }
        VerifiedDraft { drafted, depth, followed, branch: branch.is_some() }
    }
}
