//! Precision of activations.

/// Precision of activations in matmuls with quantised weights, and of queries in attention. Float
/// weights, and keys and values stored in f32, always meet activations in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activations {
    /// Dynamic quantisation: rounded to int8, in the blocks that llama.cpp uses for the weights'
    /// format. If the instruction set multiplies pairs of bfloat16, attention rounds its factors to
    /// bfloat16 instead, which is finer.
    #[default]
    Int8,
    /// As `Int8`, with one scale for each row of a matmul's input, so that max |x| is 127.
    Int8Row,
    /// As `Int8Row`, with one scale and one zero point for each row, so that the integers cover the range
    /// of its values and 0. The matmul adds the zero point's share: it times the sum of the weights.
    Int8RowMin,
    /// Not quantised: weights are widened to f32, and the only error is that of f32 sums. Many rows
    /// take about twice as long, a single row four times. Of an NPU: floats of binary16 precision
    /// or better.
    F32,
}

impl Activations {
    /// Whether all of a row has one scale.
    pub fn is_by_row(self) -> bool {
        matches!(self, Activations::Int8Row | Activations::Int8RowMin)
    }

    /// Short name: `int8`, `int8-row`, `int8-row-min` or `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Activations::Int8 => "int8",
            Activations::Int8Row => "int8-row",
            Activations::Int8RowMin => "int8-row-min",
            Activations::F32 => "f32",
        }
    }
}
