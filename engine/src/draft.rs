//! The choice of a drafter, by name or as an object.

use std::sync::Arc;

mod explanation;
mod of_model;
mod text;

pub use explanation::DraftExplanation;
pub use lapwing_actors::draft::{
    ALTERNATIVE_MIN, ASSUMED_ACCEPTANCE, BestLength, DRAFT_MAX, DRAFT_MAX_OPEN, DraftForm,
    DraftStats, DraftTree, Drafter, DrafterEntry, DrafterUnion, GAIN_MIN, MakeDrafter,
    PromptLookup, RecentText, Schedule, SuffixDrafter, UnknownSchedule, by_name, known,
};
use lapwing_actors::draft::{Drafts, LOOKUP, LOOKUP_AND_SUFFIX, SUFFIX};
use lapwing_kernels::requant::Requant;
pub use lapwing_plan::registry::{ChoiceError, Parameter, Parameters};
pub(crate) use of_model::{DRAFT_MODEL, DraftModelChoice, DraftWeights};
use text::{AUTO, NONE};

/// Which drafter proposes the tokens of speculative decoding: none, one that comes with Lapwing, a draft
/// model, or one of the caller's own. The default is what comes with the model's file ([`of_file`](DraftChoice::of_file)).
///
/// Drafts change no token: a drafted token counts only if the model itself chooses it. They change the speed.
/// A step verifies as many drafted tokens as pay, by their acceptance so far and by the measured times of
/// steps, and none where they do not.
#[derive(Clone)]
pub struct DraftChoice {
    source: Option<Source>,
    /// Tokens of each draft; `None` for as many as pay.
    length: Option<usize>,
}

#[derive(Clone)]
enum Source {
    Drafter {
        name: String,
        make: MakeDrafter,
    },
    Model(DraftModelChoice),
    /// A layer of the file, if the engine finds that it has one and can run it.
    OfFile(DraftModelChoice),
}

impl Default for DraftChoice {
    fn default() -> DraftChoice {
        DraftChoice::of_file()
    }
}

impl DraftChoice {
    /// The default: what [`predictor`](DraftChoice::predictor) is, where the model's file has such a layer and a device of the engine can
    /// run it in host memory; otherwise nothing. A request drafts only if that is expected to pay: if its answer is long enough
    /// to repay that its prompt goes through the layer, and unless the drafts of earlier requests were rejected too often. Then
    /// requests try it ever more rarely. [`DraftStats::stopped`] says why a request does not draft.
    pub fn of_file() -> DraftChoice {
        let predictor = DraftModelChoice::new(DraftWeights::Predictor);
        DraftChoice::from_source(Source::OfFile(DraftModelChoice {
            is_optional: true,
            ..predictor
        }))
    }

    /// No drafts: every step computes one token.
    pub fn none() -> DraftChoice {
        DraftChoice { source: None, length: None }
    }

    /// Prompt lookup: proposes what followed the last tokens when they occurred before
    /// ([`PromptLookup`]).
    pub fn lookup() -> DraftChoice {
        DraftChoice::of(&LOOKUP)
    }

    /// Suffix decoding: proposes what followed the last tokens most often, in the request or in the answers to
    /// recent requests of the engine ([`SuffixDrafter`]).
    pub fn suffix() -> DraftChoice {
        DraftChoice::of(&SUFFIX)
    }

    /// What [`lookup`](DraftChoice::lookup) and [`suffix`](DraftChoice::suffix) propose, verified together: where they
    /// differ, as a tree ([`DrafterUnion`]).
    pub fn lookup_and_suffix() -> DraftChoice {
        DraftChoice::of(&LOOKUP_AND_SUFFIX)
    }

    fn of(entry: &DrafterEntry) -> DraftChoice {
        DraftChoice::drafter(entry.name(), entry.make()(&entry.defaults()))
    }

    fn drafter(name: impl Into<String>, make: MakeDrafter) -> DraftChoice {
        DraftChoice::from_source(Source::Drafter { name: name.into(), make })
    }

    /// A draft model (Leviathan et al., 2023; Chen et al., 2023): a smaller model with the same vocabulary
    /// drafts. `model` is a GGUF file, or the name of a model that is fetched when the engine is built.
    ///
    /// By default it runs on the first device that computes on CPU threads, otherwise on the first OpenCL device, and
    /// drafts while the target waits
    /// ([`on_device`](DraftChoice::on_device), [`schedule`](DraftChoice::schedule)).
    pub fn model(model: impl Into<String>) -> DraftChoice {
        DraftChoice::of_weights(DraftWeights::Other(model.into()))
    }

    /// The model itself drafts, with its matrices requantised to fewer bits. It pays for files of many bits per
    /// weight (F16, BF16, Q8_0).
    pub fn own(format: Requant) -> DraftChoice {
        DraftChoice::of_weights(DraftWeights::Own(format))
    }

    /// The layer of the model's file that predicts a further token drafts (multi-token prediction; tensors `nextn`): it reads the model's
    /// hidden states beside the latest token, and shares the model's token table and output matrix where it has none of its own. It runs on
    /// a device whose work CPU threads do. The engine cannot be built with a file that has none.
    pub fn predictor() -> DraftChoice {
        DraftChoice::of_weights(DraftWeights::Predictor)
    }

    fn of_weights(weights: DraftWeights) -> DraftChoice {
        DraftChoice::from_source(Source::Model(DraftModelChoice::new(weights)))
    }

    fn from_source(source: Source) -> DraftChoice {
        DraftChoice { source: Some(source), length: None }
    }

    /// A drafter of one's own; `make` is called once for each request.
    ///
    /// ```
    /// use lapwing::draft::{DraftChoice, Drafter};
    ///
    /// /// Proposes the last token again.
    /// #[derive(Debug)]
    /// struct Again;
    ///
    /// impl Drafter for Again {
    ///     fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
    ///         ids.last().map_or(Vec::new(), |id| vec![*id; most.min(3)])
    ///     }
    /// }
    ///
    /// let builder = lapwing::Engine::builder().draft(DraftChoice::made_by("again", || Again));
    /// ```
    pub fn made_by<D: Drafter + 'static>(
        name: impl Into<String>,
        make: impl Fn() -> D + Send + Sync + 'static,
    ) -> DraftChoice {
        DraftChoice::drafter(name, Arc::new(move || Box::new(make())))
    }

    /// Changes the choice of a draft model; other drafters stay as they are.
    fn of_model(mut self, change: impl FnOnce(&mut DraftModelChoice)) -> DraftChoice {
        if let Some(Source::Model(model) | Source::OfFile(model)) = &mut self.source {
            change(model);
        }
        self
    }

    /// When a draft model drafts; other drafters answer at once and have no schedule.
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> DraftChoice {
        self.of_model(|model| model.schedule = schedule)
    }

    /// The device that runs a draft model, by its name in the engine: a CPU, a throttled processor or an OpenCL
    /// device. NPUs compute no attention, so they run none.
    #[must_use]
    pub fn on_device(self, device: impl Into<String>) -> DraftChoice {
        self.of_model(|model| model.device = Some(device.into()))
    }

    /// How many tokens of a draft model are verified at each position, as a tree: the one that it chooses, and the
    /// likeliest others. By default 1, which gives chains.
    #[must_use]
    pub fn width(self, width: usize) -> DraftChoice {
        self.of_model(|model| model.width = width)
    }

    /// How drafts of a model depart from their usual form: whether the target waits for them, and whether their length is chosen.
    #[must_use]
    pub fn form(self, form: DraftForm) -> DraftChoice {
        self.of_model(|model| model.form = form)
    }

    /// Verifies this many drafted tokens in each step, or as many as are proposed, whether or not they pay; at most [`DRAFT_MAX`].
    /// By default a step verifies as many as pay.
    #[must_use]
    pub fn length(mut self, tokens: usize) -> DraftChoice {
        self.length = Some(tokens.clamp(1, DRAFT_MAX));
        self
    }

    /// Whether anything drafts, whatever the model's file has.
    pub fn drafts_tokens(&self) -> bool {
        matches!(self.source, Some(Source::Drafter { .. } | Source::Model(_)))
    }

    /// Whether a model drafts, so that a schedule and a device can be chosen.
    pub fn is_model(&self) -> bool {
        self.draft_model().is_some()
    }

    /// Name of the drafter, `none`, or `auto` for what the model's file has.
    pub fn name(&self) -> &str {
        match &self.source {
            None => NONE,
            Some(Source::Drafter { name, .. }) => name,
            Some(Source::Model(model)) => &model.name,
            Some(Source::OfFile(_)) => AUTO,
        }
    }

    /// Whether a layer of the model's file drafts, which reads the model's hidden states.
    pub(crate) fn is_predictor(&self) -> bool {
        self.draft_model().is_some_and(|model| model.weights == DraftWeights::Predictor)
    }

    /// Whether a model drafts while the target verifies.
    pub(crate) fn overlaps(&self) -> bool {
        self.draft_model().is_some_and(|model| model.schedule == Schedule::Asynchronous)
    }

    /// Whether the target waits for no draft.
    pub(crate) fn pre_verifies(&self) -> bool {
        self.overlaps() && self.draft_model().is_some_and(|model| model.form.pre_verify)
    }

    /// The layer of the file that drafts if it is there.
    pub(crate) fn layer_of_file(&self) -> Option<&DraftModelChoice> {
        match &self.source {
            Some(Source::OfFile(layer)) => Some(layer),
            _ => None,
        }
    }

    /// What drafts in an engine whose file has such a layer or not.
    pub(crate) fn settled(self, has_layer: bool) -> DraftChoice {
        let source = match self.source {
            Some(Source::OfFile(layer)) if has_layer => Some(Source::Model(layer)),
            Some(Source::OfFile(_)) => None,
            other => other,
        };
        DraftChoice { source, ..self }
    }

    /// Whether what drafts came with the model's file and was not asked for.
    pub(crate) fn is_of_file(&self) -> bool {
        self.draft_model().is_some_and(|model| model.is_optional)
    }

    /// The draft model, if one drafts.
    pub(crate) fn draft_model(&self) -> Option<&DraftModelChoice> {
        match &self.source {
            Some(Source::Model(model)) => Some(model),
            _ => None,
        }
    }

    /// The drafts of a new request.
    pub(crate) fn drafts(&self) -> Option<Box<Drafts>> {
        let drafts = match self.source.as_ref()? {
            Source::Drafter { make, .. } => Drafts::new(make()),
            Source::Model(model) => model.drafts(self.length),
            Source::OfFile(_) => return None,
        };
        Some(Box::new(match self.length {
            Some(tokens) => drafts.always(tokens),
            None => drafts,
        }))
    }
}

#[cfg(test)]
mod tests;
