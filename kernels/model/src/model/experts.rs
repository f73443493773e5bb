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
    /// The same with bounds, by blocks of the file; empty, or `None` for a block, where nothing is bounded.
    pub bounded_forms: Vec<Option<ExpertForm>>,
    /// Small experts that groups of neighbours share.
    pub adjugates: Option<AdjugateExperts>,
    /// Whether weights multiply what an expert reads, instead of what it makes.
    pub weighs_input: bool,
    /// The expert of all rows.
    pub shared: SharedExpert,
}

impl ExpertsConfig {
    /// The middle of the experts of a block of the file.
    pub fn form_of(&self, block: usize) -> ExpertForm {
        self.bounded_forms.get(block).copied().flatten().unwrap_or(self.form)
    }
}

/// Small experts, each of which is chosen with any expert of a group of neighbours, has its weight, and reads the same (Grove MoE, 2025).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjugateExperts {
    /// Experts of a group.
    pub group: usize,
    /// Factor on what they make together.
    pub scale: f32,
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
