//! Drafts: how many tokens a step verifies, and the companions of requests, which are sequences of a draft
//! model.

use std::collections::HashMap;

use super::effect::SchedulerEffect;
use super::models::Model;
use super::running::{NextStep, Sequence, StepTime};
use super::state::Scheduler;
use crate::sequence::SequenceId;

/// Why drafts end.
pub(super) const NO_ROOM: &str = "the draft model has no room for the text";
const LACKS_TOKEN: &str = "the draft model lacks a token of the text";

impl Scheduler {
    /// Drafts the tokens of a sequence's next step, as many as pay beside the rows of the other sequences.
    pub(super) fn propose(&mut self, at: usize) {
        let sequence = &self.running[at];
        if sequence.drafts().is_none() {
            return;
        }
        let (model, draft) = (sequence.model, sequence.model_drafts().map(|drafts| drafts.model));
        if let Some(draft) = draft {
            self.running[at].meet_usual(&mut self.models[draft.0].usual_acceptance);
        }
        let others = self.others(at);
        let slack = self.least_slack(model).unwrap_or(f64::INFINITY);
        let Model { vocab, steps, .. } = &self.models[model.0];
        // A token that was never drafted costs nothing, so that the first draft shows what it costs.
        let per_token = draft.and_then(|draft| self.models[draft.0].steps.estimate(1));
        let per_token = per_token.unwrap_or(0.0);
        let time = StepTime { others, verify: |rows: usize| steps.estimate(rows) };
        self.running[at].propose(*vocab, NextStep { time, per_token, slack });
    }

    /// Number of other sequences of the same model that decode.
    fn others(&self, at: usize) -> usize {
        let model = self.running[at].model;
        let others = self.running.iter().enumerate();
        let others = others.filter(|(other, sequence)| *other != at && sequence.model == model);
        others.filter(|(_, sequence)| sequence.is_decoding()).count()
    }

    /// Lets the companions of requests follow them, and hands drafted tokens over. Starts companions that are
    /// missing, and ends those whose request does not run.
    pub(super) fn draft_by_models(&mut self, effects: &mut Vec<SchedulerEffect>) {
        if self.models.len() < 2 {
            return;
        }
        let requests = self.places(|sequence| !sequence.is_companion());
        self.drop_companions(|companion| !requests.contains_key(&companion.request()), effects);
        self.end_stuck_companions(effects);
        self.start_companions(effects);
        self.count_staggered();
        self.end_outgrown_companions(effects);
        let companions = self.places(Sequence::is_companion);
        for at in 0..self.running.len() {
            if self.running[at].model_drafts().is_none() {
                continue;
            }
            let others = self.others(at);
            let Model { vocab, steps, .. } = &self.models[self.running[at].model.0];
            let vocab = *vocab;
            let time = StepTime { others, verify: |rows: usize| steps.estimate(rows) };
            let Some(&other) = companions.get(&self.running[at].id) else {
                self.running[at].take_draft(None, vocab, time);
                continue;
            };
            let goes_ahead = self.models[self.running[at].model.0].may_go_ahead(&self.running[at]);
            let Ok([target, companion]) = self.running.get_disjoint_mut([at, other]) else {
                continue;
            };
            let context = self.models[companion.model.0].context;
            companion.follow(target, context, effects);
            target.take_draft(Some(companion), vocab, time);
            if goes_ahead {
                target.draft_ahead(companion, vocab);
            }
            // The tokens that it has taken change how far its companion drafts.
            companion.follow(target, context, effects);
        }
    }

    /// Ends the drafts of requests whose text has a token that the draft model lacks, or fills its context.
    fn end_outgrown_companions(&mut self, effects: &mut Vec<SchedulerEffect>) {
        let requests = self.places(|sequence| !sequence.is_companion());
        let outgrown = |companion: &Sequence| {
            let target = &self.running[*requests.get(&companion.id.request())?];
            let Model { vocab, context, .. } = &self.models[companion.model.0];
            match companion.knows(target, *vocab) {
                false => Some((companion.id, LACKS_TOKEN)),
                true => (target.ids.len() >= *context).then_some((companion.id, NO_ROOM)),
            }
        };
        let companions = self.running.iter().filter(|sequence| sequence.is_companion());
        let ended: Vec<_> = companions.filter_map(outgrown).collect();
        for (id, reason) in ended {
            if let Some(at) = self.running.iter().position(|sequence| sequence.id == id) {
                self.end_companion(at, reason, effects);
            }
        }
    }

    /// Ends companions that lack hidden states of their request's rows. Others begin behind these.
    fn end_stuck_companions(&mut self, effects: &mut Vec<SchedulerEffect>) {
        let requests = self.places(|sequence| !sequence.is_companion());
        let is_stuck = |companion: &&Sequence| {
            let target = requests.get(&companion.id.request()).map(|at| &self.running[*at]);
            companion.is_companion() && target.is_some_and(|target| companion.lacks_hidden(target))
        };
        let stuck: Vec<SequenceId> =
            self.running.iter().filter(is_stuck).map(|companion| companion.id).collect();
        for id in stuck {
            if let Some(at) = self.running.iter().position(|sequence| sequence.id == id.request()) {
                self.close_account(at, effects);
            }
            self.drop_companions(|companion| companion == id, effects);
        }
    }

    /// Indices of running sequences, by their request.
    fn places(&self, of: impl Fn(&Sequence) -> bool) -> HashMap<SequenceId, usize> {
        let found = self.running.iter().enumerate().filter(|(_, sequence)| of(sequence));
        found.map(|(at, sequence)| (sequence.id.request(), at)).collect()
    }

    /// Starts a companion for each request that drafts by a model and has none, if there are pages for it.
    fn start_companions(&mut self, effects: &mut Vec<SchedulerEffect>) {
        let companions = self.places(Sequence::is_companion);
        for at in 0..self.running.len() {
            if companions.contains_key(&self.running[at].id) {
                continue;
            }
            let Some(mut companion) = self.running[at].companion() else { continue };
            let model = &mut self.models[companion.model.0];
            let is_known = companion.ids.iter().all(|id| (*id as usize) < model.vocab);
            let has_room = companion.ids.len() < model.context
                && companion.reserve_prompt(model, effects).is_ok();
            if is_known && has_room {
                self.running.push(companion);
                continue;
            }
            companion.lose(effects);
            self.running[at].stop_drafts(if is_known { NO_ROOM } else { LACKS_TOKEN });
        }
    }

    /// Ends the companion at an index, and the drafts of its request.
    pub(super) fn end_companion(
        &mut self,
        at: usize,
        reason: &str,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        let mut companion = self.running.remove(at);
        companion.lose(effects);
        let request = companion.id.request();
        tracing::warn!(parent: &companion.trace, id = request.0, reason, "no more drafts");
        if let Some(target) = self.running.iter_mut().find(|sequence| sequence.id == request) {
            companion.close_account(target, effects);
            target.stop_drafts(reason);
        }
    }

    /// Closes the account of the companion of a request that has ended.
    pub(super) fn close_account(&mut self, at: usize, effects: &mut Vec<SchedulerEffect>) {
        let id = self.running[at].id;
        let is_companion =
            |sequence: &Sequence| sequence.is_companion() && sequence.id.request() == id;
        let Some(other) = self.running.iter().position(is_companion) else { return };
        if let Ok([target, companion]) = self.running.get_disjoint_mut([at, other]) {
            companion.close_account(target, effects);
        }
    }

    /// Removes companions. Their pages return with the last chunk that holds them.
    pub(super) fn drop_companions(
        &mut self,
        which: impl Fn(SequenceId) -> bool,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        self.running.retain(|sequence| {
            let ends = sequence.is_companion() && which(sequence.id);
            if ends {
                sequence.lose(effects);
            }
            !ends
        });
    }

    /// Gives each companion the rank of its request.
    pub(super) fn rank_companions(&mut self) {
        if self.models.len() < 2 {
            return;
        }
        let ranks: HashMap<SequenceId, _> =
            self.running.iter().map(|sequence| (sequence.id, sequence.entry.rank())).collect();
        for companion in self.running.iter_mut().filter(|sequence| sequence.is_companion()) {
            if let Some(rank) = ranks.get(&companion.id.request()) {
                companion.entry.set_rank(*rank);
            }
        }
    }
}
