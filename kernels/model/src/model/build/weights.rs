//! Finds the weights of ops: whole tensors, and parts of tensors that hold several matrices or more rows than are
//! used.

use std::ops::Range;

use super::super::tensors::TensorSpec;
use super::{Builder, ModelError};
use crate::formats::DType;
use crate::graph::{ValueId, WeightId, WeightSpec};
use crate::op::{Op, TableRow};
use crate::weights::Slices;

/// Some of the rows of a matrix that holds several.
pub(super) struct Joined<'a> {
    pub(super) name: &'a str,
    /// Its rows.
    pub(super) all: usize,
    pub(super) rows: Range<usize>,
}

/// A product with a matrix.
pub(super) struct Product {
    pub(super) weight: WeightId,
    pub(super) bias: Option<WeightId>,
    /// Values of its rows.
    pub(super) width: usize,
    pub(super) role: &'static str,
}

impl Builder<'_> {
    /// Queries, keys and values of `x`: products with three matrices, or with the rows of one that holds all three.
    pub(crate) fn projections(&mut self, x: ValueId) -> Result<[ValueId; 3], ModelError> {
        let heads = self.heads();
        let (q, k, v) = (heads.q_width(), heads.kv.key_width(), heads.kv.value_width());
        self.parts_or_whole("attn_qkv", x, [("attn_q", q), ("attn_k", k), ("attn_v", v)])
    }

    /// The gate of a feed-forward block and what it gates: products with two matrices, or with the halves of one.
    pub(super) fn gate_and_up(&mut self, x: ValueId) -> Result<[ValueId; 2], ModelError> {
        let width = self.ffn_width();
        match self.has("ffn_gate.weight") {
            true => Ok([self.linear("ffn_gate", x, width)?, self.linear("ffn_up", x, width)?]),
            false => self.parts_or_whole("ffn_up", x, [("ffn_gate", width), ("ffn_up", width)]),
        }
    }

    /// Products with parts of the rows of the matrix `joined`, which follow each other, or with matrices of their own where it
    /// is missing.
    pub(super) fn parts_or_whole<const N: usize>(
        &mut self,
        joined: &str,
        x: ValueId,
        parts: [(&'static str, usize); N],
    ) -> Result<[ValueId; N], ModelError> {
        let is_joined = self.has(&format!("{joined}.weight"));
        let all = parts.iter().map(|part| part.1).sum();
        let mut first = 0;
        let mut products = [x; N];
        for (value, (role, width)) in products.iter_mut().zip(parts) {
            let rows = first..first + width;
            *value = match is_joined {
                true => self.joined_part(role, x, &Joined { name: joined, all, rows })?,
                false => self.linear(role, x, width)?,
            };
            first += width;
        }
        Ok(products)
    }

    /// Columns of a matrix of the current layer.
    pub(super) fn columns(&self, role: &str) -> Result<usize, ModelError> {
        let name = self.name(&format!("{role}.weight"));
        self.tensors.find(&name).map(|found| found.cols).ok_or_else(|| self.missing(&name))
    }

    /// Queries of `x` alone, as [`projections`](Builder::projections).
    pub(crate) fn queries(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let heads = self.heads();
        let q = heads.q_width();
        if !self.has("attn_qkv.weight") {
            return self.linear("attn_q", x, q);
        }
        let all = q + heads.kv.key_width() + heads.kv.value_width();
        self.joined_part("attn_q", x, &Joined { name: "attn_qkv", all, rows: 0..q })
    }

    /// A product with some of the rows of a matrix. The bias is a part of the matrix's bias, or stored on its own.
    pub(super) fn joined_part(
        &mut self,
        role: &'static str,
        x: ValueId,
        of: &Joined<'_>,
    ) -> Result<ValueId, ModelError> {
        let (cols, width) = (self.graph.value(x).width, of.rows.len());
        let [weight, bias] =
            ["weight", "bias"].map(|part| self.name(&format!("{}.{part}", of.name)));
        let weight = self.part(&weight, of.all, cols, of.rows.clone())?;
        let bias = match self.opt_part(&bias, 1, of.all, of.rows.clone())? {
            Some(bias) => Some(bias),
            None => self.bias(role, width)?,
        };
        self.product(of.name, x, Product { weight, bias, width, role })
    }

    /// A product. Some files have a factor on all values of the product with matrix `name`, which comes before the bias, but in
    /// feed-forward blocks after it, as in llama.cpp; where it is a part of the weights (NVFP4), both together are refused there. And
    /// some have one for the rounding of activations to integers that other engines do, which has no effect here.
    pub(super) fn product(
        &mut self,
        name: &str,
        x: ValueId,
        product: Product,
    ) -> Result<ValueId, ModelError> {
        let Product { weight, bias, width, role } = product;
        self.used.insert(self.name(&format!("{name}.input_scale")));
        let scale = self.name(&format!("{name}.scale"));
        let Some(scale) = self.opt_vector(&scale, 1)? else {
            return Ok(self.push(Op::MatMul { weight, bias }, &[x], width, role));
        };
        let is_last = name.starts_with("ffn_");
        if is_last && bias.is_some() && self.graph.weights()[weight.0].dtype == DType::Nvfp4 {
            return Err(ModelError::ScaleAndBias { matrix: self.name(name) });
        }
        let first = bias.filter(|_| is_last);
        let bare = self.push(Op::MatMul { weight, bias: first }, &[x], width, role);
        let scaled = self.push(Op::ScaleBy { weight: scale }, &[bare], width, "weight_scale");
        Ok(match bias.filter(|_| !is_last) {
            Some(table) => {
                let op = Op::AddRow { table, row: TableRow::First };
                self.push(op, &[scaled], width, "bias")
            }
            None => scaled,
        })
    }

    /// A product of the current layer, with a bias if the file has one.
    pub(crate) fn linear(
        &mut self,
        role: &'static str,
        x: ValueId,
        width: usize,
    ) -> Result<ValueId, ModelError> {
        let cols = self.graph.value(x).width;
        let weight = self.matrix(&self.name(&format!("{role}.weight")), width, cols)?;
        let bias = self.bias(role, width)?;
        self.product(role, x, Product { weight, bias, width, role })
    }

    /// The bias of a product. Files of some architectures may lack it.
    fn bias(&mut self, role: &str, width: usize) -> Result<Option<WeightId>, ModelError> {
        let name = self.name(&format!("{role}.bias"));
        match self.config.arch.has_biases() {
            true => self.vector(&name, width).map(Some),
            false => self.opt_vector(&name, width),
        }
    }

    /// The embeddings of the tokens, `[tokens, width]`.
    pub(crate) fn embedding(&mut self) -> Result<WeightId, ModelError> {
        self.token_table("token_embd.weight", self.config.width)
    }

    /// A table with a row of `width` values for each token.
    pub(super) fn token_table(&mut self, name: &str, width: usize) -> Result<WeightId, ModelError> {
        let table = self.tensors.find(name).ok_or_else(|| self.missing(name))?;
        let used = self.wanted.tokens.map_or(table.rows, |tokens| tokens.min(table.rows));
        self.part(name, table.rows, width, 0..used)
    }

    /// Accepts a tensor of the current layer that some files have although it changes no result.
    pub(crate) fn leave_unread(&mut self, tensor: &str) {
        self.used.insert(self.name(tensor));
    }

    /// The matrix that makes logits, one for each embedding of `table`, and its rows in the file.
    pub(super) fn output_matrix(
        &mut self,
        table: WeightId,
    ) -> Result<(WeightId, usize), ModelError> {
        let (name, used) = ("output.weight", self.graph.weights()[table.0].rows);
        let Some(found) = self.tensors.find(name) else {
            let rows = self.tensors.find("token_embd.weight").map_or(used, |table| table.rows);
            return Ok((table, rows));
        };
        let rows = if self.wanted.tokens.is_some() { found.rows.max(used) } else { used };
        Ok((self.part(name, rows, self.config.width, 0..used)?, rows))
    }

    pub(super) fn missing(&self, name: &str) -> ModelError {
        ModelError::MissingTensor { name: name.to_owned(), arch: self.config.arch.name() }
    }

    pub(crate) fn opt_vector(
        &mut self,
        name: &str,
        len: usize,
    ) -> Result<Option<WeightId>, ModelError> {
        self.opt_part(name, 1, len, 0..len)
    }

    pub(super) fn opt_part(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
        part: Range<usize>,
    ) -> Result<Option<WeightId>, ModelError> {
        if self.tensors.find(name).is_none() {
            return Ok(None);
        }
        self.part(name, rows, cols, part).map(Some)
    }

    pub(crate) fn vector(&mut self, name: &str, len: usize) -> Result<WeightId, ModelError> {
        self.matrix(name, 1, len)
    }

    pub(crate) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
    ) -> Result<WeightId, ModelError> {
        self.part(name, rows, cols, 0..if rows == 1 { cols } else { rows })
    }

    /// Some of the rows of a tensor `[rows, columns]`, or of a vector (one row) some of its values.
    fn part(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
        part: Range<usize>,
    ) -> Result<WeightId, ModelError> {
        let found = self.tensors.find(name).ok_or_else(|| self.missing(name))?;
        self.check_shape(name, &found, (rows, cols))?;
        self.used.insert(name.to_owned());
        let (dtype, count) = (found.dtype, part.len());
        let spec = |rows, cols| WeightSpec { name: name.to_owned(), rows, cols, dtype };
        let (unit, all, spec) = match rows {
            1 => (1, cols, spec(1, count)),
            _ => (cols, rows, spec(count, cols)),
        };
        if count == all {
            return Ok(self.weight(spec, None));
        }
        let bytes = |units: usize| dtype.row_bytes(units.checked_mul(unit)?);
        match (bytes(part.start), bytes(count)) {
            (Some(start), Some(len)) => {
                Ok(self.weight(spec, Some(Slices::range(start..start + len))))
            }
            _ => Err(ModelError::TensorPart { name: name.to_owned(), dtype, part }),
        }
    }

    /// A weight, all of a tensor or a part of it. Layers with the same block have the same weights.
    pub(super) fn weight(&mut self, spec: WeightSpec, part: Option<Slices>) -> WeightId {
        let parts = self.graph.slices();
        let mut known = self.graph.weights().iter().enumerate();
        let known = known.find(|(id, known)| **known == spec && parts.get(id) == part.as_ref());
        match (known, part) {
            (Some((id, _)), _) => WeightId(id),
            (None, Some(part)) => self.graph.add_part(spec, part),
            (None, None) => self.graph.add_weight(spec),
        }
    }

    /// Checks the rows and columns of a tensor.
    pub(super) fn check_shape(
        &self,
        name: &str,
        found: &TensorSpec,
        expected: (usize, usize),
    ) -> Result<(), ModelError> {
        if (found.rows, found.cols) == expected {
            return Ok(());
        }
        Err(ModelError::TensorShape {
            name: name.to_owned(),
            found: format!("[{}, {}]", found.rows, found.cols),
            expected: format!("[{}, {}]", expected.0, expected.1),
        })
    }

    pub(super) fn check_unused(&self) -> Result<(), ModelError> {
        let c = self.config;
        let left_out: Vec<String> =
            (c.layers..c.layers + c.predictors).map(|layer| format!("blk.{layer}.")).collect();
        let is_left_out = |name: &str| left_out.iter().any(|prefix| name.starts_with(prefix));
        let names = self.tensors.names();
        let mut unused =
            names.into_iter().filter(|name| !self.used.contains(*name) && !is_left_out(name));
        let Some(first) = unused.next() else { return Ok(()) };
        Err(ModelError::UnusedTensor {
            name: first.to_owned(),
            arch: self.config.arch.name(),
            count: 1 + unused.count(),
        })
    }
}
