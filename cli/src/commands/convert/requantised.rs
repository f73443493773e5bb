//! The matrices of a model that `convert --requant` requantises.

use std::collections::BTreeMap;

use lapwing_engine::{DType, Requant, Requantized};
use lapwing_kernels::model::Model;
use lapwing_kernels::requant::RequantError;
use lapwing_kernels::weights::legacy::LegacyError;
use lapwing_kernels::weights::{GgufWriter, WeightFile, WriteError};

use crate::cli::failure::Failure;

/// Key of the format that most matrices have (`LLAMA_FTYPE` in llama.h of llama.cpp).
const FILE_TYPE: &str = "general.file_type";
/// Key of the version of the quantised formats, which files with quantised tensors must have.
const VERSION: &str = "general.quantization_version";
/// The version of all formats here.
const VERSION_OF_BLOCKS: u32 = 2;

/// The reason why a model cannot be converted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConvertError {
    #[error(transparent)]
    Legacy(#[from] LegacyError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Requant(#[from] RequantError),
}

impl From<std::io::Error> for ConvertError {
    fn from(error: std::io::Error) -> ConvertError {
        WriteError::from(error).into()
    }
}

/// The matrices that are requantised.
pub(super) struct Requantised {
    form: Requant,
    tensors: BTreeMap<String, Requant>,
    pub(super) report: Requantized,
}

impl Requantised {
    /// Those of the model in `file` that [`lapwing::EngineBuilder::requant`] would requantise to `form`.
    pub(super) fn of(file: &WeightFile, form: Requant) -> Result<Requantised, Failure> {
        let model = Model::from_weights(file);
        let mut model = model.map_err(|error| Failure::failed(error.to_string()))?;
        let report = model.graph.requantize(form);
        let matrices = model.graph.requantised();
        let tensors = matrices.map(|(name, form)| (name.to_owned(), form)).collect();
        Ok(Requantised { form, tensors, report })
    }

    /// The form that a tensor is requantised to.
    pub(super) fn form_of(&self, tensor: &str) -> Option<Requant> {
        self.tensors.get(tensor).copied()
    }

    /// The form that most of them get, which differs from the target if rows are not whole blocks of it.
    fn most(&self) -> Requant {
        let count = |form: &Requant| self.tensors.values().filter(|of| *of == form).count();
        let most = Requant::ALL.into_iter().max_by_key(count).filter(|most| count(most) > 0);
        most.unwrap_or(self.form)
    }

    /// Writes the keys that depend on the formats of matrices, and says which keys of the old file they
    /// replace.
    pub(super) fn meta(&self, file: &WeightFile, writer: &mut GgufWriter) -> Vec<&'static str> {
        let mut replaced = Vec::new();
        if self.report.changed * 2 > self.report.matrices {
            writer.meta(FILE_TYPE, file_type(self.most()));
            replaced.push(FILE_TYPE);
        }
        if self.report.changed > 0 && file.metadata().get(VERSION).is_none() {
            writer.meta(VERSION, VERSION_OF_BLOCKS);
        }
        replaced
    }
}

/// `LLAMA_FTYPE_MOSTLY_…` of a form's blocks.
fn file_type(form: Requant) -> u32 {
    match form.dtype() {
        DType::Q4_0 => 2,
        DType::Q4_1 => 3,
        DType::Q5_0 => 8,
        DType::Q5_1 => 9,
        DType::Q2K => 10,
        DType::Q3K => 11,
        DType::Q4K => 14,
        DType::Q5K => 16,
        DType::Q6K => 18,
        DType::Iq4Nl => 25,
        DType::Iq4Xs => 30,
        DType::Mxfp4 => 38,
        _ => 7,
    }
}
