//! What of a weight file a graph computes.

/// What of a weight file a graph computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelPart {
    /// The model.
    #[default]
    Whole,
    /// The model, which also passes on the hidden states of rows after the last norm, or before it
    /// ([`Graph::passed_on`](crate::graph::Graph::passed_on)): of all, or only of those whose logits are wanted
    /// ([`Batch::passes_on`](crate::device::Batch::passes_on)). The rows have the same bits.
    WithRows,
    /// The first of the layers behind those of the model that predict further tokens, as a model of its own: its rows are given the
    /// hidden states of the model ([`Op::Given`](crate::op::Op::Given)).
    Predictor,
}
