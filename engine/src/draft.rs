//! The choice of a drafter, by name or as an object.

use std::path::Path;
use std::sync::Arc;

mod explanation;
mod text;

pub use explanation::DraftExplanation;
pub use lapwing_actors::draft::{
    ALTERNATIVE_MIN, ASSUMED_ACCEPTANCE, BestLength, DRAFT_MAX, DRAFT_MAX_OPEN, DraftForm,
    DraftStats, DraftTree, Drafter, DrafterEntry, DrafterUnion, GAIN_MIN, MakeDrafter,
    PromptLookup, RecentText, Schedule, SuffixDrafter, UnknownSchedule, by_name, known,
};
use lapwing_actors::draft::{Drafts, LOOKUP, LOOKUP_AND_SUFFIX, SUFFIX};
use lapwing_kernels::device::ModelId;
use lapwing_kernels::requant::Requant;
pub use lapwing_plan::registry::{ChoiceError, Parameter, Parameters};
use text::{NONE, OWN, PREDICTOR};

/// Which drafter proposes the tokens of speculative decoding: none, one that comes with Lapwing, a draft
/// model, or one of the caller's own. The default is none.
///
/// Drafts change no token: a drafted token counts only if the model itself chooses it. They change the speed.
/// A step verifies as many drafted tokens as pay, by their acceptance so far and by the measured times of
/// steps, and none where they do not.
#[derive(Clone, Default)]
pub struct DraftChoice {
    source: Option<Source>,
    /// Tokens of each draft; `None` for as many as pay.
    length: Option<usize>,
}

#[derive(Clone)]
enum Source {
    Drafter { name: String, make: MakeDrafter },
    Model(DraftModelChoice),
}

/// The choice of a draft model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DraftModelChoice {
    pub(crate) weights: DraftWeights,
    pub(crate) schedule: Schedule,
    /// Name of the device that runs it; `None` for the first that can.
    pub(crate) device: Option<String>,
    /// Tokens that are verified at each position.
    width: usize,
    pub(crate) form: DraftForm,
    name: String,
}

/// The weights of a draft model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DraftWeights {
    /// Another model: a file, or the name of one that can be fetched.
    Other(String),
    /// The target's own, with fewer bits.
    Own(Requant),
    /// Those of the target's layer that predicts a further token.
    Predictor,
}

/// The model that drafts: the engine has the target as model 0.
pub(crate) const DRAFT_MODEL: ModelId = ModelId(1);

impl DraftChoice {
    /// No drafts: every step computes one token.
    pub fn none() -> DraftChoice {
        DraftChoice::default()
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
        let model = model.into();
        let name = Path::new(&model).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| model.clone());
        DraftChoice::of_weights(DraftWeights::Other(model), name)
    }

    /// The model itself drafts, with its matrices requantised to fewer bits. It pays for files of many bits per
    /// weight (F16, BF16, Q8_0).
    pub fn own(format: Requant) -> DraftChoice {
        DraftChoice::of_weights(DraftWeights::Own(format), format!("{OWN}{}", format.name()))
    }

    /// The layer of the model's file that predicts a further token drafts (multi-token prediction; tensors `nextn`): it reads the model's
    /// hidden states beside the latest token, and shares the model's token table and output matrix where it has none of its own. It runs on
    /// a device whose work CPU threads do. The engine cannot be built with a file that has none.
    pub fn predictor() -> DraftChoice {
        DraftChoice::of_weights(DraftWeights::Predictor, PREDICTOR.to_owned())
    }

    fn of_weights(weights: DraftWeights, name: String) -> DraftChoice {
        let (schedule, device, width) = (Schedule::default(), None, 1);
        let form = DraftForm::default();
        let model = DraftModelChoice { weights, schedule, device, width, form, name };
        DraftChoice::from_source(Source::Model(model))
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
        if let Some(Source::Model(model)) = &mut self.source {
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

    /// Whether anything drafts.
    pub fn drafts_tokens(&self) -> bool {
        self.source.is_some()
    }

    /// Whether a model drafts, so that a schedule and a device can be chosen.
    pub fn is_model(&self) -> bool {
        self.draft_model().is_some()
    }

    /// Name of the drafter, or `none`.
    pub fn name(&self) -> &str {
        match &self.source {
            None => NONE,
            Some(Source::Drafter { name, .. }) => name,
            Some(Source::Model(model)) => &model.name,
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
            Source::Model(model) => {
                let of = match model.weights {
                    DraftWeights::Predictor => Drafts::of_predictor,
                    DraftWeights::Other(_) | DraftWeights::Own(_) => Drafts::of_model,
                };
                of(DRAFT_MODEL, model.schedule).form(model.form).width(model.width)
            }
        };
        Some(Box::new(match self.length {
            Some(tokens) => drafts.always(tokens),
            None => drafts,
        }))
    }
}

#[cfg(test)]
mod tests {
    use lapwing_plan::registry::Entry;

    use super::*;

    #[test]
    fn a_choice_has_a_name_and_makes_drafts_for_each_request() {
        let others =
            [NONE, "mtp", "suffix:share=0.2", "self:q8_0", "self:q4_1", "self:int4:64:min"];
        for name in known().iter().map(Entry::name).chain(others) {
            assert_eq!(name.parse().map(|choice: DraftChoice| choice.name() == name), Ok(true));
        }
        assert!(DraftChoice::default().drafts().is_none());
        assert!(DraftChoice::lookup().drafts().is_some());
        let file: DraftChoice = "some/small.gguf".parse().expect("a file");
        assert_eq!((file.name(), file.draft_model().is_some()), ("small", true));
        for wrong in ["oracle", "self:", "self:q9", ""] {
            let unknown = wrong.parse::<DraftChoice>().expect_err(wrong).to_string();
            assert!(unknown.contains("none, lookup") && unknown.contains("self:q4_0"), "{unknown}");
        }
        let wrong = "suffix:share=2".parse::<DraftChoice>().expect_err("too much").to_string();
        assert!(wrong.contains("share of the drafter suffix is '2'"), "{wrong}");
    }

    #[test]
    fn schedule_and_device_are_those_of_a_draft_model_only() {
        let set = |choice: DraftChoice| choice.schedule(Schedule::Asynchronous).on_device("gpu");
        let own = set(DraftChoice::own(Requant::Q4_0));
        let model = own.draft_model().expect("a model");
        assert_eq!(
            (model.schedule, model.device.as_deref()),
            (Schedule::Asynchronous, Some("gpu"))
        );
        assert!(set(DraftChoice::lookup()).draft_model().is_none());
    }
}
