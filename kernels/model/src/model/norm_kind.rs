//! The kinds of norms.

/// Form of the norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// Root-mean-square norms.
    Rms,
    /// Root-mean-square norms without weights.
    RmsWithoutWeights,
    /// Layer norms, with biases where the file has them.
    Layer,
    /// Layer norms without weights and biases.
    LayerWithoutWeights,
}

impl NormKind {
    /// Key of their epsilon.
    pub(super) fn epsilon(self) -> &'static str {
        match self {
            NormKind::Rms | NormKind::RmsWithoutWeights => "attention.layer_norm_rms_epsilon",
            NormKind::Layer | NormKind::LayerWithoutWeights => "attention.layer_norm_epsilon",
        }
    }
}
