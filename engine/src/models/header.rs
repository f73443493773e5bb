//! The header of a model by name, and the other files of its repository, without fetching the model.

use std::collections::HashSet;
use std::path::PathBuf;

use lapwing_kernels::weights::Gguf;

use super::cache::ModelCache;
use super::error::FetchError;
use super::hub::{HubModel, HubSource};
use super::name::{HubFile, HubRepository, ModelName};

/// Where a named model is, and what else its repository has.
#[derive(Debug)]
pub(crate) struct NamedHeader {
    /// Its name, with its file.
    pub(crate) name: String,
    pub(crate) content: Content,
    /// The language models of its repository; those of a model that is not of the hub are none.
    pub(crate) models: Result<Vec<HubModel>, FetchError>,
}

/// The header of a named model.
#[derive(Debug)]
pub(crate) enum Content {
    /// The model is on this machine: its file, or the first of its files.
    File(PathBuf),
    /// It was read from the hub.
    Remote {
        gguf: Gguf,
        /// Bytes of all files.
        bytes: u64,
        /// File name and bytes of each file.
        files: Vec<(String, u64)>,
    },
}

impl NamedHeader {
    /// Finds the model in the cache or in that of Hugging Face's tools, or reads its header from the hub at `endpoint`, or from
    /// the one of the environment.
    ///
    /// # Errors
    /// [`FetchError`] when it is on none of them, or its header on the hub is invalid.
    pub(crate) async fn of(
        name: &ModelName,
        cache: &ModelCache,
        endpoint: Option<&str>,
    ) -> Result<NamedHeader, FetchError> {
        let (file, models) = match name {
            ModelName::Repository(repository) => {
                match repository.cached(cache)?.or_else(|| repository.shared()) {
                    Some(file) => (file, repository.all(endpoint).await),
                    None => {
                        let (file, models) = repository.listed_with_others(endpoint).await?;
                        (file, Ok(models))
                    }
                }
            }
            ModelName::Hub(_) | ModelName::Catalogue(_) => {
                let parts = name.hub_file().map(|file| file.parts()).unwrap_or_default();
                let Some(file) = parts.into_iter().next() else { return of_wheels(name, cache) };
                let models = repository_of(&file).all(endpoint).await;
                (file, models)
            }
        };
        // A model of the catalogue is cached by its own name.
        let names = [name.to_string(), file.to_string()];
        let here = names.iter().find_map(|name| cache.path_of(name));
        let content = match here.or_else(|| ModelName::Hub(file.clone()).shared()) {
            Some(path) => Content::File(path),
            None => remote(&file, endpoint).await?,
        };
        Ok(NamedHeader { name: file.to_string(), content, models })
    }
}

/// A model that comes in wheels, if it is cached.
fn of_wheels(name: &ModelName, cache: &ModelCache) -> Result<NamedHeader, FetchError> {
    let name = name.to_string();
    match cache.path_of(&name) {
        Some(path) => {
            Ok(NamedHeader { name, content: Content::File(path), models: Ok(Vec::new()) })
        }
        None => Err(FetchError::NoHeader { name }),
    }
}

fn repository_of(file: &HubFile) -> HubRepository {
    let HubFile { owner, repo, revision, .. } = file.clone();
    HubRepository { owner, repo, quant: None, revision }
}

/// Reads the headers of all parts of a model, whose tensors are concatenated.
async fn remote(file: &HubFile, endpoint: Option<&str>) -> Result<Content, FetchError> {
    let mut whole: Option<Gguf> = None;
    let (mut files, mut names) = (Vec::new(), HashSet::new());
    for part in file.parts() {
        let (name, file_name) = (part.to_string(), part.file_name().to_owned());
        let source = HubSource::new(part);
        let source = endpoint.into_iter().fold(source, HubSource::endpoint);
        let header = source.header().await?;
        files.push((file_name, header.bytes));
        let twice = header.gguf.tensors.iter().find(|tensor| !names.insert(tensor.name.clone()));
        if let Some(tensor) = twice {
            let detail = format!("tensor '{}' is in two parts of the model", tensor.name);
            return Err(FetchError::HubAnswer { file: name, detail });
        }
        match &mut whole {
            // The first part has the metadata of the whole model.
            None => whole = Some(header.gguf),
            Some(whole) => whole.tensors.extend(header.gguf.tensors),
        }
    }
    let bytes = files.iter().map(|(_, bytes)| bytes).sum();
    match whole {
        Some(gguf) => Ok(Content::Remote { gguf, bytes, files }),
        None => Err(FetchError::NoHubFile { repository: file.to_string(), has: Vec::new() }),
    }
}
