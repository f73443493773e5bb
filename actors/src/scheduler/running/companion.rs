//! The sequence of a draft model, the companion of a request's sequence. It follows the request's tokens
//! and drafts the next ones.

use std::cell::Cell;
use std::sync::Arc;

use lapwing_kernels::device::ModelId;
use lapwing_traces::RequestTimes;

use super::given::{Given, STEP_ROWS};
use super::propose::StepTime;
use super::speculation::Speculation;
use super::{RowProgress, Sequence, SequenceTask};
use crate::draft::{DraftCost, Followed, ModelDrafts, Schedule, Wait};
use crate::message::Generate;
use crate::prefix::{Kept, PrefixUse};
use crate::scheduler::effect::SchedulerEffect;

impl Sequence {
    /// A companion for a sequence whose drafts are made by a model. `None` if there are no such drafts, or
    /// nothing is sampled yet.
    pub(in super::super) fn companion(&mut self) -> Option<Sequence> {
        let SequenceTask::Tokens(Some(generate)) = &self.work else { return None };
        let Speculation { drafts, hidden, .. } = &mut **self.speculation.as_mut()?;
        let drafts = drafts.as_mut()?;
        let alternatives = drafts.alternatives();
        let model = drafts.model_mut().filter(|model| model.stopped.is_none())?;
        let single_rows = model.has_bonus_passes();
        let given = match model.is_given {
            true => Some(Given::after(hidden.first().filter(|it| it.start + 1 < self.ids.len())?)),
            false => None,
        };
        let first = given.as_ref().map_or(0, Given::first);
        model.sequences += 1;
        let prompt_tokens = self.ids.len() - first;
        Some(Sequence {
            id: self.id.draft(model.sequences),
            model: model.model,
            ids: self.ids[first..].to_vec(),
            sent: 0,
            in_flight: 0,
            stale: 0,
            lease: super::KvLease::default(),
            states: None,
            progress: Arc::new(RowProgress::new(0)),
            sink: Arc::clone(&self.sink),
            times: RequestTimes { prompt_tokens, ..self.times },
            trace: self.trace.clone(),
            context: self.context,
            stall: None,
            lacks_graphs: false,
            speculation: Some(Speculation::of_companion(prompt_tokens, single_rows, given)),
            latest_token: self.latest_token,
            is_fed: false,
            prefix: PrefixUse::Off,
            matched: Cell::default(),
            shared: Kept::default(),
            reported: None,
            entry: self.entry.of_companion(),
            work: SequenceTask::Tokens(Some(Box::new(drafting(generate, alternatives)))),
            _admission: None,
        })
    }

    /// Whether it is the sequence of a draft model.
    pub(in super::super) fn is_companion(&self) -> bool {
        self.drafts_to().is_some()
    }

    /// The state of drafts by a model, if its drafts are made by one.
    pub(in super::super) fn model_drafts(&self) -> Option<&ModelDrafts> {
        self.drafts()?.model()
    }

    /// The model of its drafts and their cost without its times, if it is to be decided now whether it drafts.
    pub(in super::super) fn undecided_drafts(&mut self) -> Option<(ModelId, DraftCost)> {
        let drafts = self.drafts_mut()?;
        let (overlaps, waits) = (drafts.source.overlaps(), drafts.source.waits());
        let model = drafts.model_mut()?;
        let cost = DraftCost { per_token: 0.0, overlaps, waits, acceptance: 0.0 };
        std::mem::take(&mut model.must_pay).then_some((model.model, cost))
    }

    /// Whether it waits for drafted tokens.
    pub(super) fn awaits_draft(&self) -> bool {
        self.model_drafts().is_some_and(|model| matches!(model.wait, Wait::Tokens(_)))
    }

    /// Waits for drafted tokens no longer.
    pub(super) fn await_nothing(&mut self) {
        if let Some(model) = self.drafts_mut().and_then(|drafts| drafts.model_mut()) {
            model.wait = Wait::Nothing;
        }
    }

    /// Makes no more drafts, for a reason.
    pub(in super::super) fn stop_drafts(&mut self, reason: &str) {
        if let Some(model) = self.drafts_mut().and_then(|drafts| drafts.model_mut()) {
            model.wait = Wait::Nothing;
            model.stopped.get_or_insert_with(|| reason.to_owned());
        }
        self.forget_hidden();
    }

    /// Whether a companion's model, of `vocab` tokens, has every token that the companion has not taken over yet.
    pub(in super::super) fn knows(&self, target: &Sequence, vocab: usize) -> bool {
        target.ids[self.first() + self.agreed()..].iter().all(|id| (*id as usize) < vocab)
    }

    /// Brings a companion to the tokens of its target, and sets how far it drafts. Tokens that the target has
    /// rejected become stale, wherever they are computed.
    pub(in super::super) fn follow(
        &mut self,
        target: &mut Sequence,
        context: usize,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        self.check_first(target);
        let common = self.agree(target);
        let first = self.first();
        if common < self.ids.len().min(target.ids.len() - first) {
            self.roll_back(common, effects);
            self.ids.truncate(common);
        }
        self.take_hidden(target, effects);
        let target = &*target;
        let Some(drafts) = target.model_drafts() else { return };
        let of_target = &target.ids[first..];
        // While a chunk samples, the token after the present ones is on its way.
        let samples = matches!(self.work, SequenceTask::Tokens(None));
        if self.ids.len() < of_target.len() && (!samples || self.stale > 0) {
            self.ids.extend_from_slice(&of_target[self.ids.len()..]);
            if let Some(it) = &mut self.speculation {
                it.stale_sampler = true;
            }
        }
        let is_stale = self.speculation.as_ref().is_some_and(|it| it.stale_sampler);
        if let (true, SequenceTask::Tokens(Some(own)), SequenceTask::Tokens(Some(generate))) =
            (is_stale, &mut self.work, &target.work)
        {
            let alternatives = target.drafts().map_or(0, |drafts| drafts.alternatives());
            **own = drafting(generate, alternatives);
            if let Some(it) = &mut self.speculation {
                it.stale_sampler = false;
            }
        }
        let end = match (drafts.wanted(), drafts.schedule) {
            (0, Schedule::Synchronous) => 0,
            (0, Schedule::Asynchronous)
                if target.draft().is_empty() && drafts.checks_first.is_none() =>
            {
                0
            }
            (wanted, Schedule::Synchronous) => target.ids.len() + wanted,
            // One more token for the one that the target adds to an accepted draft.
            (_, Schedule::Asynchronous) => target.rows() + 1 + drafts.form.tokens_max(),
        };
        let Some(speculation) = self.speculation.as_mut() else { return };
        let end = end.min(context).min(target.drafts_end());
        speculation.drafts_to = Some(end.saturating_sub(first));
        let drafted = of_target.len()..self.ids.len();
        speculation.alternatives.retain(|(position, _)| drafted.contains(position));
    }

    /// Shows the target whether the first token of a draft is right that was drafted while the target computed it.
    fn check_first(&self, target: &mut Sequence) {
        let at = target.model_drafts().and_then(|drafts| drafts.checks_first);
        let Some(at) = at.filter(|at| *at < target.ids.len()) else { return };
        // Tokens before are the target's own.
        let place = at.checked_sub(self.first()).filter(|place| *place >= self.agreed());
        let drafted = place.and_then(|place| self.ids.get(place));
        let right = drafted.map(|drafted| usize::from(*drafted == target.ids[at]));
        let Some(drafts) = target.drafts_mut() else { return };
        right.into_iter().for_each(|right| drafts.length.learn(Followed::chain(1, right)));
        if let Some(model) = drafts.model_mut() {
            model.checks_first = None;
        }
    }

    /// Compares a companion's tokens with those of its target; returns how many are the same.
    fn agree(&mut self, target: &Sequence) -> usize {
        let known = self.agreed();
        let pairs = self.ids[known..].iter().zip(&target.ids[self.first() + known..]);
        let agreed = known + pairs.take_while(|(own, of_target)| own == of_target).count();
        if let Some(it) = &mut self.speculation {
            it.agreed = agreed;
        }
        self.settle();
        agreed
    }

    /// Ends the account of a companion: rows beyond the tokens of its target are wasted.
    pub(in super::super) fn close_account(
        &mut self,
        target: &mut Sequence,
        effects: &mut Vec<SchedulerEffect>,
    ) {
        let agreed = self.agree(target);
        self.waste_from(agreed, effects);
        let Some(speculation) = self.speculation.as_mut() else { return };
        let rows = std::mem::take(&mut speculation.pass_rows);
        if let Some(drafts) = target.drafts_mut() {
            drafts.stats.draft_rows += rows.sent;
            drafts.stats.draft_rows_wasted += rows.wasted;
        }
    }

    /// While a verification pass is in flight that another may follow, takes drafted tokens for the next one: as many as
    /// pay, and the one that the present pass adds to its draft.
    pub(in super::super) fn draft_ahead(&mut self, companion: &Sequence, vocab: usize) {
        let rows = self.rows();
        let Some(model) = self.model_drafts() else { return };
        let (wanted, fitting, is_open) = (model.length, model.fitting, model.is_open());
        if wanted == 0 || self.sent < rows {
            return;
        }
        let (length, rows) = (self.ids.len() - companion.first(), rows - companion.first());
        let follows = companion.ids.get(length..rows) == Some(self.draft());
        let there = companion.ids.get(rows..).filter(|_| follows).unwrap_or_default();
        let reachable = companion.drafts_to().unwrap_or(0).saturating_sub(rows);
        // Without a chosen length, as many as are there.
        let wanted = if is_open { there.len().max(2) } else { wanted + 1 };
        let wanted = wanted.min(reachable).min(fitting);
        let known = there.iter().take(wanted).take_while(|id| (**id as usize) < vocab).count();
        let is_known = wanted > 0 && known == wanted;
        if let Some(it) = self.speculation.as_mut().filter(|_| is_known) {
            it.draft.extend_from_slice(&there[..wanted]);
        }
    }

    /// Takes the drafted tokens of its companion, if as many are there as it waits for, or if no more will
    /// come. A draft ends before the first id outside the vocabulary.
    pub(in super::super) fn take_draft(
        &mut self,
        companion: Option<&Sequence>,
        vocab: usize,
        time: StepTime<impl Fn(usize) -> Option<f64>>,
    ) {
        let length = self.ids.len();
        let drafts = self.speculation.as_mut().and_then(|it| it.drafts.as_mut());
        let Some(drafts) = drafts else { return };
        let most = drafts.tokens_max();
        let Some(model) = drafts.model_mut() else { return };
        let Wait::Tokens(wanted) = model.wait else { return };
        let Some(companion) = companion else {
            model.wait = Wait::Missed(wanted);
            return;
        };
        let (position, length) = (length, length - companion.first());
        let there = companion.ids.get(length..).unwrap_or_default();
        let reachable = companion.drafts_to().unwrap_or(0).saturating_sub(length);
        let is_there = match model.schedule {
            Schedule::Synchronous => there.len() >= wanted.min(reachable),
            Schedule::Asynchronous => {
                (model.fresh && !there.is_empty()) || there.len() >= wanted.min(reachable)
            }
        };
        model.fresh = false;
        if is_there {
            let most = match model.schedule {
                Schedule::Synchronous => wanted,
                Schedule::Asynchronous => most.min(model.form.tokens_max()).min(model.fitting),
            };
            let known = there.iter().copied().take_while(|id| (*id as usize) < vocab);
            model.wait = Wait::Nothing;
            let drafted: Vec<u32> = known.take(most).collect();
            self.take_alternatives(companion, &drafted, vocab, time);
        } else if model.pre_verifies() {
            model.wait = Wait::Nothing;
            model.checks_first = Some(position);
        } else if there.is_empty() && length.saturating_sub(companion.sent) > STEP_ROWS {
            model.wait = Wait::Missed(wanted);
        }
    }

    /// Number of tokens, prompt included, of which any may be drafted. The last token of a request is not:
    /// a step yields one token more than its draft.
    fn drafts_end(&self) -> usize {
        self.times.prompt_tokens + self.entry.tokens_max().saturating_sub(1)
    }
}

/// The state that a companion samples with: the target's own random numbers and penalties, so that equal
/// distributions give equal tokens. Nothing but its target ends it. It also reports the `alternatives` most likely
/// tokens at each position.
fn drafting(generate: &Generate, alternatives: usize) -> Generate {
    Generate {
        sampler: generate.sampler.fork().with_top_logprobs(alternatives),
        stop_ids: Arc::default(),
        tokens_max: usize::MAX,
        drafts: None,
    }
}
