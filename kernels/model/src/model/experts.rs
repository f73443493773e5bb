//! Mixtures of experts of a model.

use crate::op::{ExpertForm, ExpertGroups, RouterScore};

/// What the mixtures of experts of a model have in common. Layers have one in place of a feed-forward block if the file has the
/// matrix of their router; the tensors also say how wide experts are.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertsConfig {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that are chosen for each row.
    pub used: usize,
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
    /// The expert of all rows.
    pub shared: SharedExpert,
}

/// The expert that all rows have beside the chosen ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedExpert {
    /// None.
    None,
    /// Where the file has its tensors.
    Optional,
    /// As [`SharedExpert::Optional`]; then the block makes half of the sum.
    OptionalAveraged,
    /// In each layer with experts.
    Always,
}
