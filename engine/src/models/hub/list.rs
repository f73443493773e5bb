//! Chooses a GGUF file of a repository by its quantisation, from the hub's list of files.

use reqwest::Method;
use reqwest::redirect::Policy;
use serde::Deserialize;

use super::client::HubClient;
use crate::models::cache::ModelCache;
use crate::models::error::FetchError;
use crate::models::name::parts::{is_later_part, is_part, parts_of};
use crate::models::name::{HubFile, HubRepository};
use crate::models::shared::SharedCache;

/// Quantisations in the order in which one is chosen if the name states none.
const PREFERRED: [&str; 12] = [
    "Q4_K_M", "Q4_K_S", "Q8_0", "Q5_K_M", "Q5_K_S", "Q6_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "BF16",
    "F16",
];
/// Largest accepted answer in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Maximum number of files that an error lists.
const LISTED_MAX: usize = 24;

/// The hub's description of a repository, as far as it is read.
#[derive(Deserialize)]
struct Info {
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    /// Size in bytes; the hub states it only if the request asks for it.
    size: Option<u64>,
}

/// A language model among the files of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubModel {
    /// Its file; of a model in parts, the first.
    pub file: HubFile,
    /// Number of its files.
    pub parts: usize,
    /// Bytes of all of them; `None` if the hub does not state them.
    pub bytes: Option<u64>,
}

impl HubRepository {
    /// A file of this repository that is in the cache and fits the name.
    pub(in crate::models) fn cached(
        &self,
        cache: &ModelCache,
    ) -> Result<Option<HubFile>, FetchError> {
        let of_repository = |file: &HubFile| {
            (&file.owner, &file.repo, &file.revision) == (&self.owner, &self.repo, &self.revision)
        };
        let names = cache.list()?.into_iter().filter_map(|model| model.name.parse().ok());
        let files: Vec<String> =
            names.filter(of_repository).flat_map(|file: HubFile| parts_of(&file.file)).collect();
        Ok(self.choose(&files).map(|file| self.file(file)))
    }

    /// A file of this repository that is in the cache of Hugging Face's tools and fits the name.
    pub(in crate::models) fn shared(&self) -> Option<HubFile> {
        let files = SharedCache::open()?.files(self);
        self.choose(&files).map(|file| self.file(file))
    }

    /// The file that fits the name, from the list of the hub at `endpoint`, or of the one of the
    /// environment.
    ///
    /// # Errors
    /// When the hub does not answer, or the repository has no such file.
    pub(in crate::models) async fn listed(
        &self,
        endpoint: Option<&str>,
    ) -> Result<HubFile, FetchError> {
        let files = self.files(endpoint, false).await?;
        let files: Vec<String> = files.into_iter().map(|sibling| sibling.rfilename).collect();
        self.choose(&files).map(|file| self.file(file)).ok_or_else(|| self.none_of(&files))
    }

    /// The file that fits the name, and all language models of the repository, from the list of the hub at `endpoint`, or of the
    /// one of the environment.
    ///
    /// # Errors
    /// As [`listed`](HubRepository::listed).
    pub(in crate::models) async fn listed_with_others(
        &self,
        endpoint: Option<&str>,
    ) -> Result<(HubFile, Vec<HubModel>), FetchError> {
        let files = self.files(endpoint, true).await?;
        let names: Vec<String> = files.iter().map(|sibling| sibling.rfilename.clone()).collect();
        let chosen = self.choose(&names).ok_or_else(|| self.none_of(&names))?;
        Ok((self.file(chosen), self.models(&files, &names)))
    }

    /// All language models of the repository, as those of [`listed_with_others`](HubRepository::listed_with_others).
    ///
    /// # Errors
    /// When the hub does not answer.
    pub(in crate::models) async fn all(
        &self,
        endpoint: Option<&str>,
    ) -> Result<Vec<HubModel>, FetchError> {
        let files = self.files(endpoint, true).await?;
        let names: Vec<String> = files.iter().map(|sibling| sibling.rfilename.clone()).collect();
        Ok(self.models(&files, &names))
    }

    fn models(&self, files: &[Sibling], names: &[String]) -> Vec<HubModel> {
        let bytes = |name: &String| files.iter().find(|file| file.rfilename == *name)?.size;
        let model = |file: &str| {
            let parts = parts_of(file);
            let (file, bytes) = (self.file(file), parts.iter().map(bytes).sum());
            HubModel { file, parts: parts.len(), bytes }
        };
        models(names).into_iter().map(model).collect()
    }

    /// No file fits the name.
    fn none_of(&self, files: &[String]) -> FetchError {
        let mut has: Vec<String> = models(files).into_iter().map(str::to_owned).collect();
        let more = has.len().saturating_sub(LISTED_MAX);
        has.truncate(LISTED_MAX);
        if more > 0 {
            has.push(format!("{more} more"));
        }
        FetchError::NoHubFile { repository: self.to_string(), has }
    }

    /// The best of these files; `None` if none fits, or several might.
    fn choose<'a>(&self, files: &'a [String]) -> Option<&'a str> {
        let models = models(files);
        let first = |quant: &str| models.iter().find(|file| has_quant(file, quant)).copied();
        match (&self.quant, &models[..]) {
            (Some(quant), _) => first(quant),
            (None, [only]) => Some(only),
            (None, _) => PREFERRED.iter().find_map(|quant| first(quant)),
        }
    }

    fn file(&self, file: &str) -> HubFile {
        HubFile {
            owner: self.owner.clone(),
            repo: self.repo.clone(),
            file: file.to_owned(),
            revision: self.revision.clone(),
        }
    }

    /// All files of the repository, with their sizes if they are asked for.
    async fn files(&self, endpoint: Option<&str>, sizes: bool) -> Result<Vec<Sibling>, FetchError> {
        let client = HubClient::new(self.to_string(), endpoint, Policy::default())?;
        let revision = self.revision.as_deref().unwrap_or("main");
        let path = ["api", "models", &self.owner, &self.repo, "revision", revision];
        let mut address = client.address(path)?;
        if sizes {
            address.query_pairs_mut().append_pair("blobs", "true");
        }
        let request = client.request(Method::GET, address);
        let mut response = request.send().await.map_err(|error| client.unreachable(&error))?;
        if let Some(error) = client.refusal(&response) {
            return Err(error);
        }
        let mut body = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| client.unreachable(&error))?
        {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(client.unusable("its list of files is too long".to_owned()));
            }
            body.extend_from_slice(&chunk);
        }
        let info: Info = serde_json::from_slice(&body)
            .map_err(|error| client.unusable(format!("its list of files is invalid: {error}")))?;
        Ok(info.siblings)
    }
}

/// The language models among these files, those in one file first. A model in parts is its first part, if
/// all parts are there.
fn models(files: &[String]) -> Vec<&str> {
    let is_whole =
        |file: &&str| !is_part(file) || parts_of(file).iter().all(|part| files.contains(part));
    let all = files.iter().map(String::as_str);
    let mut models: Vec<&str> =
        all.filter(|file| is_model(file) && !is_later_part(file)).filter(is_whole).collect();
    models.sort_unstable_by_key(|file| (is_part(file), *file));
    models
}

/// Whether a file is a language model, and not a projector of images.
fn is_model(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    // The name must also be one that a model can be fetched by.
    name.ends_with(".gguf") && !name.contains("mmproj") && HubFile::is_path(file)
}

/// Whether the file's name states this quantisation, as a word of its own: `Q4_K` is not in `Q4_K_M`.
fn has_quant(file: &str, quant: &str) -> bool {
    let (file, quant) = (file.to_ascii_uppercase(), quant.to_ascii_uppercase());
    // `K_M` is a part of a quantisation's name, which begins as `Q4`, `IQ2` or `F16` does.
    let digits = quant.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if digits == quant || !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    file.match_indices(&quant).any(|(at, found)| {
        let before = file[..at].chars().next_back();
        let after = file[at + found.len()..].chars().next();
        before.is_none_or(|c| !c.is_ascii_alphanumeric())
            && after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(name: &str, files: &[&str]) -> Option<String> {
        let repository: HubRepository = name.parse().unwrap();
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        repository.choose(&files).map(str::to_owned)
    }

    #[test]
    fn the_file_of_a_quantisation_is_found_whatever_its_spelling() {
        let files = ["a-Q4_K_M.gguf", "a-Q4_K_L.gguf", "a-Q8_0.gguf", "a.q4_0.gguf", "README.md"];
        for (name, file) in [
            ("hf:o/r", "a-Q4_K_M.gguf"),
            ("hf:o/r:Q4_K_M", "a-Q4_K_M.gguf"),
            ("hf:o/r:q8_0", "a-Q8_0.gguf"),
            ("hf:o/r:Q4_0@v1", "a.q4_0.gguf"),
        ] {
            assert_eq!(chosen(name, &files).as_deref(), Some(file), "{name}");
        }
        for name in ["hf:o/r:Q4_K", "hf:o/r:Q5_K_M", "hf:o/r:Q4"] {
            assert_eq!(chosen(name, &files), None, "{name}");
        }
    }

    #[test]
    fn without_a_quantisation_the_usual_ones_come_first_and_nothing_is_guessed() {
        assert_eq!(
            chosen("hf:o/r", &["x-F16.gguf", "x-Q8_0.gguf"]).as_deref(),
            Some("x-Q8_0.gguf")
        );
        assert_eq!(chosen("hf:o/r", &["model.gguf", "x.txt"]).as_deref(), Some("model.gguf"));
        assert_eq!(chosen("hf:o/r", &["a.gguf", "b.gguf"]), None);
        assert_eq!(chosen("hf:o/r", &["x-IQ4_NL.gguf", "x-IQ2_M.gguf"]), None);
    }

    #[test]
    fn a_model_in_parts_is_chosen_if_all_parts_are_there() {
        let part = |n: usize| format!("Q4_K_M/x-Q4_K_M-0000{n}-of-00002.gguf");
        let (first, second) = (part(1), part(2));
        for name in ["hf:o/r", "hf:o/r:Q4_K_M"] {
            assert_eq!(chosen(name, &[&second, &first]).as_ref(), Some(&first), "{name}");
            assert_eq!(chosen(name, &[&first]), None, "{name}");
            let whole = "x-Q4_K_M.gguf";
            assert_eq!(chosen(name, &[&second, &first, whole]).as_deref(), Some(whole), "{name}");
        }
        assert_eq!(chosen("hf:o/r", &["x-Q8_0.gguf", &first, &second]), Some(first));
    }

    #[test]
    fn lone_parts_projectors_and_names_that_leave_the_repository_are_not_chosen() {
        for file in [
            "x-Q4_K_M-00001-of-00002.gguf",
            "mmproj-x-Q4_K_M.gguf",
            "../x-Q4_K_M.gguf",
            "x-Q4_K_M.gguf.part",
        ] {
            assert_eq!(chosen("hf:o/r:Q4_K_M", &[file]), None, "{file}");
        }
    }
}
