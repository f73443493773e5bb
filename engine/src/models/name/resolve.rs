//! Where the files of a name are: in a cache, or at a source.

use std::path::PathBuf;

use super::{HubFile, ModelName};
use crate::models::cache::{CachedModel, ModelCache};
use crate::models::catalogue::Origin;
use crate::models::error::FetchError;
use crate::models::hub::HubSource;
use crate::models::shared::SharedCache;
use crate::models::source::Source;
use crate::models::wheel::WheelSource;

impl ModelName {
    /// The model in the cache that this name stands for; `None` if there is none.
    ///
    /// # Errors
    /// When the cache cannot be read.
    pub fn cached(&self, cache: &ModelCache) -> Result<Option<ModelName>, FetchError> {
        Ok(match self {
            Self::Repository(repository) => repository.cached(cache)?.map(Self::Hub),
            Self::Hub(file) => Some(Self::Hub(file.first_part())),
            Self::Catalogue(_) => Some(self.clone()),
        })
    }

    /// The model whose file is known by name: of a repository, the file that fits and is in the cache, or in
    /// that of Hugging Face's tools, or else on the hub's list. The name of a model in parts is that of its
    /// first part.
    ///
    /// # Errors
    /// [`FetchError`] when the hub does not answer, or the repository has no such file.
    pub async fn resolve(&self, cache: &ModelCache) -> Result<ModelName, FetchError> {
        let repository = match self {
            Self::Repository(repository) => repository,
            Self::Hub(file) => return Ok(Self::Hub(file.first_part())),
            Self::Catalogue(_) => return Ok(self.clone()),
        };
        if let Some(file) = repository.cached(cache)?.or_else(|| repository.shared()) {
            return Ok(Self::Hub(file));
        }
        repository.listed(None).await.map(Self::Hub)
    }

    /// The file of a model that Hugging Face's tools have fetched into their cache (`HF_HUB_CACHE`,
    /// `HF_HOME`), or the first of its parts. It is used where it is.
    pub fn shared(&self) -> Option<PathBuf> {
        SharedCache::open()?.find(&self.hub_file()?)
    }

    /// The model in the cache of Hugging Face's tools, whose files are read to compute their SHA-256;
    /// `None` if it is not there.
    ///
    /// # Errors
    /// [`FetchError::HashMismatch`] if a file is not the one that its name in that cache states, and
    /// [`FetchError::Io`].
    pub async fn verify_shared(&self) -> Result<Option<CachedModel>, FetchError> {
        match (SharedCache::open(), self.hub_file()) {
            (Some(cache), Some(file)) => cache.verify(&file).await,
            _ => Ok(None),
        }
    }

    /// The file on the hub, if it is one.
    pub(in crate::models) fn hub_file(&self) -> Option<HubFile> {
        match self {
            Self::Repository(_) => None,
            Self::Hub(file) => Some(file.clone()),
            Self::Catalogue(entry) => match &entry.origin {
                Origin::Wheels { .. } => None,
                Origin::Hub { owner, repo, file } => Some(HubFile {
                    owner: (*owner).to_owned(),
                    repo: (*repo).to_owned(),
                    file: (*file).to_owned(),
                    revision: None,
                }),
            },
        }
    }

    /// The sources of its parts, in order; most models have one. Empty for a repository, whose file is known
    /// after [`resolve`](ModelName::resolve).
    pub fn sources(&self) -> Vec<Box<dyn Source>> {
        if let Self::Catalogue(entry) = self
            && let Origin::Wheels { parts, download_bytes } = &entry.origin
        {
            let wheels = WheelSource::new(parts.to_vec())
                .expecting(entry.bytes, entry.sha256.map(str::to_owned))
                .download_bytes(*download_bytes);
            return vec![Box::new(wheels)];
        }
        let parts = self.hub_file().map(|file| file.parts()).unwrap_or_default();
        let source = |part| -> Box<dyn Source> { Box::new(HubSource::new(part)) };
        parts.into_iter().map(source).collect()
    }
}
