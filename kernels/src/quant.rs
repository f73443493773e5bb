//! Number formats: blocks of stored weights, and the precision of activations.

use std::fmt;

/// Storage format of a weight tensor, numbered as in the GGUF specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// 4-bit, block of 32: f16 scale; value = d·(q − 8).
    Q4_0,
    /// 4-bit, block of 32: f16 scale and minimum; value = d·q + m.
    Q4_1,
    /// 5-bit, block of 32: f16 scale; value = d·(q − 16).
    Q5_0,
    /// 5-bit, block of 32: f16 scale and minimum; value = d·q + m.
    Q5_1,
    /// 8-bit, block of 32: f16 scale; value = d·q.
    Q8_0,
    /// 4-bit, super-block of 256 = 8 × 32: 6-bit scales and minimums over two f16.
    Q4K,
    /// 5-bit, super-block of 256 = 8 × 32: 6-bit scales and minimums over two f16.
    Q5K,
    /// 6-bit, super-block of 256 = 16 × 16: 8-bit scales over one f16.
    Q6K,
}

impl DType {
    /// Every supported format.
    pub const ALL: [DType; 11] = [
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q5_1,
        DType::Q8_0,
        DType::Q4K,
        DType::Q5K,
        DType::Q6K,
    ];

    /// The format with that number in a GGUF file (`ggml_type`), if it is supported.
    pub fn from_gguf(id: u32) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.gguf_id() == id)
    }

    /// Number of the format in a GGUF file (`ggml_type`).
    pub fn gguf_id(self) -> u32 {
        match self {
            DType::F32 => 0,
            DType::F16 => 1,
            DType::Q4_0 => 2,
            DType::Q4_1 => 3,
            DType::Q5_0 => 6,
            DType::Q5_1 => 7,
            DType::Q8_0 => 8,
            DType::Q4K => 12,
            DType::Q5K => 13,
            DType::Q6K => 14,
            DType::Bf16 => 30,
        }
    }

    /// Values per block (1 for the float formats).
    pub fn block_len(self) -> usize {
        match self {
            DType::F32 | DType::F16 | DType::Bf16 => 1,
            DType::Q4K | DType::Q5K | DType::Q6K => 256,
            _ => 32,
        }
    }

    /// Bytes per block.
    pub fn block_bytes(self) -> usize {
        match self {
            DType::F32 => 4,
            DType::F16 | DType::Bf16 => 2,
            DType::Q4_0 => 18,
            DType::Q4_1 => 20,
            DType::Q5_0 => 22,
            DType::Q5_1 => 24,
            DType::Q8_0 => 34,
            DType::Q4K => 144,
            DType::Q5K => 176,
            DType::Q6K => 210,
        }
    }

    /// Bytes of a row of `len` values; `None` if `len` is not a whole number of blocks or the size
    /// does not fit in `usize`.
    pub fn row_bytes(self, len: usize) -> Option<usize> {
        if !len.is_multiple_of(self.block_len()) {
            return None;
        }
        (len / self.block_len()).checked_mul(self.block_bytes())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "F32",
            DType::F16 => "F16",
            DType::Bf16 => "BF16",
            DType::Q4_0 => "Q4_0",
            DType::Q4_1 => "Q4_1",
            DType::Q5_0 => "Q5_0",
            DType::Q5_1 => "Q5_1",
            DType::Q8_0 => "Q8_0",
            DType::Q4K => "Q4_K",
            DType::Q5K => "Q5_K",
            DType::Q6K => "Q6_K",
        })
    }
}

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
