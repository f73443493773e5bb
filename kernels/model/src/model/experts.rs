//! Mixtures of experts of a model.

use super::ModelConfig;
use crate::op::{ExpertForm, ExpertGroups, RouterScore};

/// The feed-forward blocks of layers that have a mixture of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertsConfig {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that are chosen for each row.
    pub used: usize,
    /// Intermediate size of an expert.
    pub width: usize,
    /// Intermediate size of the expert that all rows have beside the chosen ones; 0 without one.
    pub shared_width: usize,
    /// How logits become scores and weights.
    pub score: RouterScore,
    /// Groups of experts, if only experts of the best groups are chosen.
    pub groups: Option<ExpertGroups>,
    /// Whether the weights of a row's experts add up to 1 before they are scaled.
    pub is_normalised: bool,
    /// Factor on the weights.
    pub scale: f32,
    /// The middle of an expert.
    pub form: ExpertForm,
    /// Whether weights multiply what an expert reads, instead of what it makes.
    pub weighs_input: bool,
    /// Whether each layer has experts.
    pub layers: Vec<bool>,
}

impl ModelConfig {
    /// The experts of a layer, if it has any.
    pub fn experts_of(&self, layer: usize) -> Option<&ExpertsConfig> {
        self.experts.as_ref().filter(|experts| experts.layers[layer])
    }
}
