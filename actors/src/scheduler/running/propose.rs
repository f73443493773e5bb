//! Drafts: which tokens a step verifies.

use super::{Sequence, SequenceTask};
use crate::draft::{DRAFT_MAX, DraftCost, Drafts, Source, UsualAcceptance, Wait, chain};

/// The next decode step of a sequence.
pub(in super::super) struct NextStep<F> {
    pub(in super::super) time: StepTime<F>,
    /// Time of drafting a token, in ns.
    pub(in super::super) per_token: f64,
    /// Time in ns within which it is to end, with the drafting. A draft is as short as that needs.
    pub(in super::super) slack: f64,
}

/// What a decode step takes.
pub(in super::super) struct StepTime<F> {
    /// Rows of other sequences in it.
    pub(in super::super) others: usize,
    /// Predicts its time in ns by all of its rows, if that is known.
    pub(in super::super) verify: F,
}

impl Sequence {
    /// Takes over, or adds to, what is known of its draft model's acceptance.
    pub(in super::super) fn meet_usual(&mut self, usual: &mut UsualAcceptance) {
        if let Some(drafts) = self.drafts_mut() {
            drafts.length.meet(usual);
        }
    }

    /// Drafts the tokens of the next step, or chooses how many a draft model is to draft.
    pub(in super::super) fn propose<F>(&mut self, vocab: usize, step: NextStep<F>)
    where
        F: Fn(usize) -> Option<f64>,
    {
        let NextStep { time: StepTime { others, verify }, per_token, slack } = step;
        let SequenceTask::Tokens(Some(generate)) = &self.work else { return };
        let most = generate.tokens_max.saturating_sub(1);
        let drafts = self.speculation.as_mut().and_then(|it| it.drafts.as_deref_mut());
        let Some(drafts) = drafts.filter(|_| most > 0) else { return };
        let Drafts { source, length, always, stats, .. } = drafts;
        let most = most.min(always.unwrap_or(DRAFT_MAX));
        let waits = source.waits();
        let (overlaps, acceptance) = (source.overlaps(), length.hopeful_acceptance());
        let others_accepted = length.acceptance_of_others();
        let cost = DraftCost { per_token, overlaps, waits, acceptance };
        let time = |rows: usize| Some(cost.step(rows - 1 - others, verify(rows)?));
        // A stale pass of the draft model may be in flight when the draft begins.
        let stale = usize::from(overlaps);
        let fits = |drafted: &usize| {
            let drafting = per_token * (drafted + stale) as f64;
            verify(drafted + 1 + others).is_none_or(|time| time + drafting <= slack)
        };
        let fitting = |most: usize| (1..=most).rev().find(fits).unwrap_or(0);
        let mut choose = |chances: &[f64]| {
            let verified = fitting(match always {
                Some(_) => chances.len(),
                None => length.choose(chances, others, time),
            });
            stats.declined += usize::from(verified == 0 && !chances.is_empty());
            verified
        };
        match source {
            Source::Drafter(drafter) => {
                let tree = drafter.draft_tree(&self.ids, most).within(most, vocab);
                let mut nodes = tree.by_chance((acceptance, others_accepted));
                nodes.truncate(always.unwrap_or(DRAFT_MAX));
                let chances: Vec<f64> = nodes.iter().map(|(_, chance)| *chance).collect();
                let verified = choose(&chances);
                self.set_draft(tree.first(&nodes, verified));
            }
            Source::Model(model) if model.stopped.is_some() => model.wait = Wait::Nothing,
            Source::Model(model) => {
                // A draft that was missed is still wanted, so that a trial does not end before it began.
                let wanted = match model.wait {
                    Wait::Missed(count) => fitting(count.min(most)),
                    // As many as are there: it waits for one.
                    _ if model.is_open() => fitting(1),
                    _ => {
                        let chances = chain(acceptance).take(most.min(DRAFT_MAX));
                        choose(&chances.collect::<Vec<_>>())
                    }
                };
                let is_limited = slack.is_finite();
                model.fitting = if is_limited { fitting(DRAFT_MAX + 1) } else { usize::MAX };
                model.length = wanted;
                model.wait = if wanted > 0 { Wait::Tokens(wanted) } else { Wait::Nothing };
                model.fresh = true;
            }
        }
    }
}
