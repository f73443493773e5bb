//! Names of models that can be fetched.

mod address;
pub(super) mod parts;
mod resolve;

use std::fmt;
use std::str::FromStr;

use super::catalogue::{self, CatalogueEntry};
use super::error::FetchError;

/// A model that can be fetched: an entry of the catalogue, or any GGUF file on the hub.
///
/// Parsed from a catalogue name, an alias, `hf:owner/repo[:QUANT][@revision]`,
/// `hf:owner/repo/file.gguf[@revision]`, or an address of either, such as `hf.co/owner/repo`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelName {
    /// A model of the catalogue.
    Catalogue(&'static CatalogueEntry),
    /// A file of a Hugging Face repository.
    Hub(HubFile),
    /// A Hugging Face repository, of which one file is chosen by its quantisation.
    Repository(HubRepository),
}

/// A Hugging Face repository, shown and parsed as `hf:owner/repo[:QUANT][@revision]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRepository {
    /// Owner of the repository.
    pub owner: String,
    /// The repository's name without its owner.
    pub repo: String,
    /// Quantisation of the file, in any case, such as `Q8_0`; `None` prefers `Q4_K_M`.
    pub quant: Option<String>,
    /// Branch, tag or commit; `None` is the main branch.
    pub revision: Option<String>,
}

/// A file of a Hugging Face repository, shown and parsed as `hf:owner/repo/file.gguf[@revision]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFile {
    /// Owner of the repository.
    pub owner: String,
    /// The repository's name without its owner.
    pub repo: String,
    /// Path inside the repository, with `/` between folders.
    pub file: String,
    /// Branch, tag or commit; `None` is the main branch.
    pub revision: Option<String>,
}

impl ModelName {
    /// The default model.
    pub fn default_model() -> Self {
        Self::Catalogue(catalogue::default_entry())
    }

    /// Names and aliases of the catalogue.
    pub fn known() -> impl Iterator<Item = &'static str> {
        catalogue::names()
    }

    /// Whether a text is the name of a repository or file on the hub, valid or not.
    pub fn is_of_hub(text: &str) -> bool {
        text.trim().starts_with("hf:") || address::as_name(text).is_some()
    }

    /// The catalogue entry, with licence and description.
    pub fn entry(&self) -> Option<&'static CatalogueEntry> {
        match self {
            Self::Catalogue(entry) => Some(entry),
            Self::Hub(_) | Self::Repository(_) => None,
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalogue(entry) => f.write_str(entry.name),
            Self::Hub(file) => file.fmt(f),
            Self::Repository(repository) => repository.fmt(f),
        }
    }
}

impl fmt::Display for HubRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hf:{}/{}", self.owner, self.repo)?;
        let quant = self.quant.iter().map(|quant| (":", quant));
        let revision = self.revision.iter().map(|revision| ("@", revision));
        quant.chain(revision).try_for_each(|(mark, text)| write!(f, "{mark}{text}"))
    }
}

impl fmt::Display for HubFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hf:{}/{}/{}", self.owner, self.repo, self.file)?;
        match &self.revision {
            Some(revision) => write!(f, "@{revision}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ModelName {
    type Err = FetchError;

    fn from_str(name: &str) -> Result<Self, FetchError> {
        let name = name.trim();
        if let Some(name) = address::as_name(name) {
            return name.parse();
        }
        if let Some(rest) = name.strip_prefix("hf:") {
            return match rest.split('@').next().unwrap_or(rest).matches('/').count() {
                0 | 1 => name.parse().map(Self::Repository),
                _ => name.parse().map(Self::Hub),
            };
        }
        let wanted = name.to_lowercase();
        catalogue::find(&wanted).map(Self::Catalogue).ok_or_else(|| FetchError::UnknownModel {
            name: name.to_owned(),
            nearest: catalogue::nearest(&wanted).map(str::to_owned),
            known: catalogue::catalogue().iter().map(|entry| entry.name.to_owned()).collect(),
        })
    }
}

/// Splits `hf:PATH[@REVISION]`.
fn split(name: &str) -> Result<(&str, Option<&str>), &'static str> {
    let rest = name.strip_prefix("hf:").ok_or("a hub name starts with hf:")?;
    let (path, revision) = match rest.rsplit_once('@') {
        Some((path, revision)) => (path, Some(revision)),
        None => (rest, None),
    };
    match revision.is_some_and(|revision| !revision.split('/').all(is_plain)) {
        true => Err("the revision after '@' is empty or not a valid branch, tag or commit"),
        false => Ok((path, revision)),
    }
}

/// Whether this is the name of an owner or a repository.
fn is_id(part: &str) -> bool {
    part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) && is_plain(part)
}

const NOT_AN_ID: &str = "owner and repository may contain only letters, digits, '.', '_' and '-'";

impl FromStr for HubRepository {
    type Err = FetchError;

    fn from_str(name: &str) -> Result<Self, FetchError> {
        let bad = |reason| FetchError::BadName { name: name.to_owned(), reason };
        let (path, revision) = split(name).map_err(bad)?;
        let (path, quant) = match path.split_once(':') {
            Some((path, quant)) => (path, Some(quant)),
            None => (path, None),
        };
        let (owner, repo) = path
            .split_once('/')
            .ok_or_else(|| bad("expected hf:owner/repo[:QUANT] or hf:owner/repo/file.gguf"))?;
        if !is_id(owner) || !is_id(repo) {
            return Err(bad(NOT_AN_ID));
        }
        let is_quant = |quant: &str| {
            !quant.is_empty() && quant.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !quant.is_none_or(is_quant) {
            return Err(bad("the quantisation after ':' must be a word such as Q8_0"));
        }
        Ok(Self {
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            quant: quant.map(str::to_owned),
            revision: revision.map(str::to_owned),
        })
    }
}

impl HubFile {
    /// Whether this is a path that stays inside its repository.
    pub(super) fn is_path(file: &str) -> bool {
        file.split('/').all(is_plain)
    }
}

impl FromStr for HubFile {
    type Err = FetchError;

    fn from_str(name: &str) -> Result<Self, FetchError> {
        let bad = |reason| FetchError::BadName { name: name.to_owned(), reason };
        let (path, revision) = split(name).map_err(bad)?;
        let mut parts = path.splitn(3, '/');
        let (Some(owner), Some(repo), Some(file)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(bad("expected hf:owner/repo/file.gguf"));
        };
        if !is_id(owner) || !is_id(repo) {
            return Err(bad(NOT_AN_ID));
        }
        if !Self::is_path(file) {
            return Err(bad(
                "the file's path contains an empty part, '..', '\\' or a control character",
            ));
        }
        if !file.to_ascii_lowercase().ends_with(".gguf") {
            return Err(bad("the file must end in .gguf"));
        }
        Ok(Self {
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            file: file.to_owned(),
            revision: revision.map(str::to_owned),
        })
    }
}

/// Whether a file or folder name stays inside its folder.
fn is_plain(part: &str) -> bool {
    !part.is_empty()
        && part != "."
        && part != ".."
        && !part.chars().any(|c| c.is_control() || c == '\\')
}

#[cfg(test)]
mod tests;
