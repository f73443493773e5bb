//! The header of a model: of a file, or of a repository.

use std::path::{Path, PathBuf};

use lapwing_kernels::model::{Model, ModelConfig};
use lapwing_kernels::weights::{Gguf, WeightFile};

use crate::chat::ChatTemplate;
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// Metadata and tensor table of a model, without its weights.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelHeader {
    /// The model: the path of its file, or `hf:owner/repo/file.gguf`.
    pub name: String,
    /// Its file, or the first of its files, if it is on this machine.
    pub path: Option<PathBuf>,
    /// Names of its files.
    pub files: Vec<String>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Language models of its repository, itself included: mostly the same weights in other formats. Empty for a model that
    /// is not of the hub.
    pub others: Vec<OtherModel>,
    /// Why the other models of its repository are not known, if the hub was asked and did not answer.
    pub others_unknown: Option<String>,
    pub(crate) gguf: Gguf,
    /// The model in the identity of its profiles.
    pub(crate) identity: String,
}

/// A model of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherModel {
    /// Its name, as `hf:owner/repo/file.gguf`.
    pub name: String,
    /// Its file in the repository; of a model in parts, the first.
    pub file: String,
    /// Number of its files.
    pub parts: usize,
    /// Bytes of all of them; `None` if the hub does not state them.
    pub bytes: Option<u64>,
}

impl ModelHeader {
    /// Reads the header of a GGUF file, and those of the other parts of a split model.
    ///
    /// # Errors
    /// When a file is missing, damaged, or has weights in a format that is not supported.
    pub fn open(path: &Path) -> Result<ModelHeader, Error> {
        let file = WeightFile::open(path)?;
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let gguf = Gguf {
            version: 3,
            metadata: file.metadata().clone(),
            tensors: file.tensors().cloned().collect(),
            alignment: 32,
        };
        Ok(ModelHeader {
            name: path.display().to_string(),
            path: Some(path.to_owned()),
            files: file.paths().iter().filter_map(|path| name(path)).collect(),
            bytes: file.bytes_total(),
            others: Vec::new(),
            others_unknown: None,
            gguf,
            identity: identity(path, std::fs::metadata(path).map_or(0, |data| data.len())),
        })
    }

    /// Finds the header of a model by name: on this machine, if the model was fetched, or else on the hub, by requests for ranges
    /// of the first bytes of its files. Nothing is stored. Also asks for the other files of its repository.
    ///
    /// # Errors
    /// When there is no such model, access is denied, the hub does not answer, or the header is invalid, larger than 64 MiB, or
    /// has weights in a format that is not supported.
    #[cfg(feature = "fetch")]
    pub async fn of_name(name: &crate::models::ModelName) -> Result<ModelHeader, Error> {
        ModelHeader::of_name_at(name, &crate::models::ModelCache::open(None)?, None).await
    }

    /// As [`of_name`](ModelHeader::of_name), with a cache, and with a hub instead of the one of the environment.
    ///
    /// # Errors
    /// As [`of_name`](ModelHeader::of_name).
    #[cfg(feature = "fetch")]
    pub async fn of_name_at(
        name: &crate::models::ModelName,
        cache: &crate::models::ModelCache,
        endpoint: Option<&str>,
    ) -> Result<ModelHeader, Error> {
        use crate::models::{Content, HubModel, NamedHeader};

        let NamedHeader { name, content, models } = NamedHeader::of(name, cache, endpoint).await?;
        let header = match content {
            Content::File(path) => ModelHeader::open(&path)?,
            Content::Remote { gguf, bytes, files } => {
                let (first, bytes_of_first) = files.first().cloned().unwrap_or_default();
                ModelHeader {
                    name: String::new(),
                    path: None,
                    files: files.into_iter().map(|(file, _)| file).collect(),
                    bytes,
                    others: Vec::new(),
                    others_unknown: None,
                    gguf,
                    identity: identity(first.as_ref(), bytes_of_first),
                }
            }
        };
        let other = |HubModel { file, parts, bytes }| OtherModel {
            name: file.to_string(),
            file: file.file,
            parts,
            bytes,
        };
        let (others, others_unknown) = match models {
            Ok(models) => (models.into_iter().map(other).collect(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Ok(ModelHeader { name, others, others_unknown, ..header })
    }

    /// Checks that this version of Lapwing can run the model, and returns its hyper-parameters.
    ///
    /// # Errors
    /// What is missing, by name: the architecture, a key or tensor that changes results and that is not known, the tokenizer, or a
    /// chat template that cannot be read.
    pub fn supported(&self) -> Result<ModelConfig, Error> {
        let model = Model::from_header(&self.gguf)?;
        let tokenizer = Tokenizer::from_metadata(&self.gguf.metadata)?;
        ChatTemplate::from_metadata(&self.gguf.metadata, &tokenizer)?;
        Ok(model.config)
    }

    /// Value of `general.architecture`, if the header has one.
    pub fn architecture(&self) -> Option<&str> {
        self.gguf.metadata.opt_str("general.architecture").ok().flatten()
    }

    /// Number of weights.
    pub fn parameters(&self) -> u64 {
        self.gguf.tensors.iter().map(|tensor| tensor.shape.len() as u64).sum()
    }

    /// Formats of its tensors with the bytes in each, the largest share first.
    pub fn formats(&self) -> Vec<(String, u64)> {
        let mut formats: Vec<(String, u64)> = Vec::new();
        for tensor in &self.gguf.tensors {
            let (name, bytes) = (tensor.dtype.to_string(), tensor.bytes as u64);
            match formats.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += bytes,
                None => formats.push((name, bytes)),
            }
        }
        formats.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        formats
    }
}

/// As the profile of an engine names the model of that file.
pub(crate) fn identity(path: &Path, bytes: u64) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    format!("{}-{bytes}", stem.to_string_lossy())
}
