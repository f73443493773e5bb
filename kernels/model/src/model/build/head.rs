//! The heads of a model, from the tensors that a file has.

use super::super::family::Family;
use super::super::head::{Head, HeadActivation, HeadInput, HeadLayer, HeadNorm};
use super::{Builder, ModelError};
use crate::graph::WeightSpec;

impl Builder<'_> {
    /// The head that makes scores of the hidden states, if the file has one: `cls.weight` with an activation and perhaps a norm
    /// behind it, then `cls.output.weight`; or one of the two.
    pub(super) fn rank_head(&mut self) -> Result<Option<Head>, ModelError> {
        let form = match self.config.arch.family {
            Family::Decoder(family) => family.rank(),
            Family::Encoder(family) => family.rank(),
        };
        let roles = [("cls", Some(form.activation)), ("cls.output", None)];
        let layers = self.head_layers(roles)?;
        if layers.is_empty() {
            return Ok(None);
        }
        let head = Head { input: self.head_input(form.input)?, layers, softmax: form.softmax };
        self.check_labels(&head)?;
        Ok(Some(head))
    }

    /// What makes an embedding of the mean of the hidden states, if the architecture has it and the file, too.
    pub(super) fn projection(&mut self) -> Result<Option<Head>, ModelError> {
        let is_projected = match self.config.arch.family {
            Family::Decoder(_) => false,
            Family::Encoder(family) => family.is_projected(),
        };
        if !is_projected {
            return Ok(None);
        }
        let layers = self.head_layers([("dense_2", None), ("dense_3", None)])?;
        let head = Head { input: HeadInput::Mean, layers, softmax: false };
        Ok(Some(head).filter(|head| !head.layers.is_empty()))
    }

    /// The layers of those roles that the file has, each with what follows it.
    fn head_layers(
        &mut self,
        roles: [(&str, Option<HeadActivation>); 2],
    ) -> Result<Vec<HeadLayer>, ModelError> {
        let mut layers = Vec::new();
        let mut width = self.config.width;
        for (role, activation) in roles {
            let Some(found) = self.tensors.find(&format!("{role}.weight")) else { continue };
            let layer = self.head_layer(role, found.rows, width)?;
            width = layer.weight.rows;
            layers.push(HeadLayer { activation, ..layer });
        }
        Ok(layers)
    }

    /// What the head reads: what the file says, or what the architecture's rerankers read.
    fn head_input(&self, usual: HeadInput) -> Result<HeadInput, ModelError> {
        match self.config.rank_pooling_type {
            None => Ok(usual),
            Some(1) => Ok(HeadInput::Mean),
            Some(2) => Ok(HeadInput::First),
            Some(3) => Ok(HeadInput::Last),
            Some(other) => Err(ModelError::BadValue {
                key: format!("{}.classifier.pooling_type", self.config.arch.name()),
                found: other.to_string(),
                expected: "only 1 mean, 2 first token and 3 last token are supported".to_owned(),
            }),
        }
    }

    fn head_layer(
        &mut self,
        role: &str,
        rows: usize,
        cols: usize,
    ) -> Result<HeadLayer, ModelError> {
        let weight = self.head_weight(&format!("{role}.weight"), rows, cols)?;
        let bias = self.opt_head_vector(&format!("{role}.bias"), rows)?;
        let norm = self.opt_head_vector(&format!("{role}.norm.weight"), rows)?;
        let norm = norm.map(|weight| HeadNorm { weight, eps: self.config.norm_eps });
        Ok(HeadLayer { weight, bias, activation: None, norm })
    }

    fn opt_head_vector(
        &mut self,
        name: &str,
        len: usize,
    ) -> Result<Option<WeightSpec>, ModelError> {
        match self.tensors.find(name) {
            Some(_) => self.head_weight(name, 1, len).map(Some),
            None => Ok(None),
        }
    }

    /// A tensor of the file that is no weight of the graph.
    fn head_weight(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
    ) -> Result<WeightSpec, ModelError> {
        let found = self.tensors.find(name).ok_or_else(|| self.missing(name))?;
        self.check_shape(name, &found, (rows, cols))?;
        self.used.insert(name.to_owned());
        Ok(WeightSpec { name: name.to_owned(), rows, cols, dtype: found.dtype })
    }

    fn check_labels(&self, head: &Head) -> Result<(), ModelError> {
        let (labels, outputs) = (&self.config.rank_labels, head.outputs());
        if labels.is_empty() || labels.len() == outputs {
            return Ok(());
        }
        Err(ModelError::BadValue {
            key: format!("{}.classifier.output_labels", self.config.arch.name()),
            found: format!("a list of {} labels", labels.len()),
            expected: format!("the head has {outputs} outputs"),
        })
    }
}
