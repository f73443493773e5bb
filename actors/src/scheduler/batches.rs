//! Admission in batches, as in servers that compute whole prompts between steps of generation.

use super::running::Sequence;
use super::state::Scheduler;

/// How batches of prompts are formed. By default a request is admitted whenever there is room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// Whether prompts are computed in passes of their own, as of [`Scheduler::keep_prompts_apart`].
    pub alone: bool,
    /// Most prompt tokens of a batch, without those that are cached; a longer prompt is a batch of its own. `None`: any number.
    pub prompt_tokens: Option<usize>,
    /// Steps of generation between two batches of prompts. If there is then no room for the next request, its turn comes
    /// before each further step.
    pub steps: usize,
}

/// The batch that is being formed.
#[derive(Clone, Debug, Default)]
pub(super) struct Forming {
    rules: Batches,
    /// Prompt rows of the batch.
    rows: usize,
    /// Steps since the latest batch.
    steps: usize,
}

impl Forming {
    /// Whether requests are admitted between passes only.
    fn is_limited(&self) -> bool {
        self.rules.prompt_tokens.is_some() || self.rules.steps > 0
    }

    /// Whether the batch has room for so many more prompt rows.
    pub(super) fn holds(&self, rows: usize) -> bool {
        let most = self.rules.prompt_tokens.unwrap_or(usize::MAX);
        self.rows == 0 || self.rows.saturating_add(rows) <= most
    }

    /// Records that a request with so many prompt rows is in the batch.
    pub(super) fn on_admitted(&mut self, rows: usize) {
        self.rows += rows;
        self.steps = 0;
    }

    /// Records a step of generation.
    pub(super) fn on_step(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }
}

impl Scheduler {
    /// Forms batches of prompts by these rules.
    pub fn form_batches(&mut self, rules: Batches) {
        if rules.alone {
            self.keep_prompts_apart();
        }
        self.batches.rules = rules;
    }

    /// Whether a batch may be formed now: no pass is in flight, no prompt is left of the one before, and streams have had
    /// their steps.
    pub(super) fn may_form_batch(&mut self) -> bool {
        let Forming { rules, steps, .. } = self.batches;
        self.batches.rows = 0;
        if !self.batches.is_limited() {
            return true;
        }
        let is_prompt = |sequence: &Sequence| sequence.due() > 0 && !sequence.is_decoding();
        let is_free = self.permits.in_use() == 0 && !self.running.iter().any(is_prompt);
        is_free && (steps >= rules.steps || self.running.is_empty())
    }

    /// Rows of a waiting request that the prefix cache does not have; 0 if the number does not matter.
    pub(super) fn rows_to_compute(&self, at: usize) -> usize {
        if self.batches.rules.prompt_tokens.is_none() {
            return 0;
        }
        let waiting = &self.waiting[at];
        let tree = self.models[waiting.model.0].prefixes.as_ref().map(|cache| cache.tree());
        waiting.ids.len() - waiting.matched(tree.as_deref())
    }
}
