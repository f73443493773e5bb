//! The choice of a draft model.

use std::path::Path;

use lapwing_actors::draft::{DraftForm, Drafts, Schedule};
use lapwing_kernels::device::ModelId;
use lapwing_kernels::requant::Requant;

use super::text::{OWN, PREDICTOR};

/// The choice of a draft model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DraftModelChoice {
    pub(crate) weights: DraftWeights,
    pub(crate) schedule: Schedule,
    /// Name of the device that runs it; `None` for the first that can.
    pub(crate) device: Option<String>,
    /// Tokens that are verified at each position.
    pub(super) width: usize,
    pub(crate) form: DraftForm,
    pub(super) name: String,
    /// Whether it drafts only where that is possible and pays.
    pub(crate) is_optional: bool,
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

impl DraftModelChoice {
    /// A draft model with these weights.
    pub(super) fn new(weights: DraftWeights) -> DraftModelChoice {
        let name = match &weights {
            DraftWeights::Other(model) => {
                let stem = Path::new(model).file_stem();
                stem.map_or_else(|| model.clone(), |stem| stem.to_string_lossy().into_owned())
            }
            DraftWeights::Own(format) => format!("{OWN}{}", format.name()),
            DraftWeights::Predictor => PREDICTOR.to_owned(),
        };
        let (schedule, form) = (Schedule::default(), DraftForm::default());
        DraftModelChoice {
            weights,
            schedule,
            device: None,
            width: 1,
            form,
            name,
            is_optional: false,
        }
    }

    /// The drafts of a new request, of as many tokens as pay, or of so many.
    pub(super) fn drafts(&self, length: Option<usize>) -> Drafts {
        let of = match self.weights {
            DraftWeights::Predictor => Drafts::of_predictor,
            DraftWeights::Other(_) | DraftWeights::Own(_) => Drafts::of_model,
        };
        let drafts = of(DRAFT_MODEL, self.schedule).form(self.form).width(self.width);
        match self.is_optional && length.is_none() {
            true => drafts.if_they_pay(),
            false => drafts,
        }
    }
}
