//! The cache of Hugging Face's own tools, which is read and never written.
//!
//! A repository is `models--OWNER--REPO`; `refs/REVISION` has the commit, and `snapshots/COMMIT` its files.

use std::path::{Path, PathBuf};

use super::cache::CachedModel;
use super::error::FetchError;
use super::name::{HubFile, HubRepository};
use super::{blocking, digest};

/// Maximum depth of folders in a repository that are searched for models.
const DEPTH_MAX: usize = 4;

/// The cache of Hugging Face's tools.
#[derive(Debug)]
pub(super) struct SharedCache {
    dir: PathBuf,
}

impl SharedCache {
    /// The cache in the first of `$HF_HUB_CACHE`, `$HUGGINGFACE_HUB_CACHE`, `$HF_HOME/hub`,
    /// `$XDG_CACHE_HOME/huggingface/hub` and `~/.cache/huggingface/hub` that is set.
    pub(super) fn open() -> Option<SharedCache> {
        let set = |key| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || std::env::home_dir().map(|home| home.join(".cache"));
        let cache = || set("XDG_CACHE_HOME").or_else(home).map(|cache| cache.join("huggingface"));
        let hub = || set("HF_HOME").or_else(cache).map(|home| home.join("hub"));
        let dir = set("HF_HUB_CACHE").or_else(|| set("HUGGINGFACE_HUB_CACHE")).or_else(hub)?;
        Some(SharedCache { dir })
    }

    /// The model's file, or the first of its parts, if all of them are there.
    pub(super) fn find(&self, file: &HubFile) -> Option<PathBuf> {
        let snapshot = self.snapshot(&file.owner, &file.repo, file.revision.as_deref())?;
        let paths: Vec<PathBuf> =
            file.parts().iter().map(|part| snapshot.join(&part.file)).collect();
        let is_whole = paths.iter().all(|path| path.is_file());
        paths.into_iter().next().filter(|_| is_whole)
    }

    /// The model with the SHA-256 of its files, each compared with its blob's name if that is one.
    pub(super) async fn verify(&self, file: &HubFile) -> Result<Option<CachedModel>, FetchError> {
        let Some(path) = self.find(file) else { return Ok(None) };
        let parts = file.parts();
        let (mut total, mut hashes, mut verified) = (0, Vec::new(), true);
        for part in &parts {
            let path = path.with_file_name(part.file_name());
            let blob = path.canonicalize().map_err(FetchError::io("look at", &path))?;
            let stated = blob.file_name().and_then(|name| digest::as_sha256(name.to_str()?));
            let (bytes, actual) = blocking::run(move |state| digest::of_file(&path, state)).await?;
            if let Some(expected) = stated.as_ref().filter(|stated| **stated != actual) {
                let (name, expected) = (part.to_string(), expected.clone());
                return Err(FetchError::HashMismatch { name, expected, actual });
            }
            verified &= stated.is_some();
            total += bytes;
            hashes.push(actual);
        }
        let sha256 = match &hashes[..] {
            [hash] => hash.clone(),
            hashes => digest::of_hashes(hashes.iter().map(String::as_str)),
        };
        let (name, source) = (
            file.to_string(),
            format!("the cache of Hugging Face's tools, {}", self.dir.display()),
        );
        let files = parts.len();
        Ok(Some(CachedModel { name, path, files, bytes: total, sha256, verified, source }))
    }

    /// Paths of the repository's files that end in `.gguf`, with `/` between folders.
    pub(super) fn files(&self, repository: &HubRepository) -> Vec<String> {
        let HubRepository { owner, repo, revision, .. } = repository;
        let mut files = Vec::new();
        if let Some(snapshot) = self.snapshot(owner, repo, revision.as_deref()) {
            collect(&snapshot, "", DEPTH_MAX, &mut files);
        }
        files
    }

    /// The folder of a revision's files.
    fn snapshot(&self, owner: &str, repo: &str, revision: Option<&str>) -> Option<PathBuf> {
        let repository = self.dir.join(format!("models--{owner}--{repo}"));
        let revision = revision.unwrap_or("main");
        let commit = std::fs::read_to_string(repository.join("refs").join(revision));
        // A revision that is no branch or tag is a commit.
        let commit = commit.unwrap_or_else(|_| revision.to_owned());
        let is_plain =
            |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
        let commit = Some(commit.trim()).filter(|commit| is_plain(commit))?;
        Some(repository.join("snapshots").join(commit)).filter(|folder| folder.is_dir())
    }
}

/// Adds the models in a folder and those below it.
fn collect(folder: &Path, at: &str, depth: usize, files: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (path, inside) = (entry.path(), format!("{at}{name}"));
        if path.is_file() {
            files.extend(name.to_ascii_lowercase().ends_with(".gguf").then_some(inside));
        } else if depth > 1 {
            collect(&path, &format!("{inside}/"), depth - 1, files);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A cache with a file of that name in a commit, which is the main branch.
    fn cache(files: &[&str]) -> (tempfile::TempDir, SharedCache) {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("models--o--r");
        fs::create_dir_all(repository.join("refs")).unwrap();
        fs::write(repository.join("refs/main"), "c0ffee\n").unwrap();
        for file in files {
            let path = repository.join("snapshots/c0ffee").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "GGUF").unwrap();
        }
        let cache = SharedCache { dir: dir.path().to_owned() };
        (dir, cache)
    }

    #[test]
    fn a_file_is_found_by_branch_and_by_commit() {
        let (dir, cache) = cache(&["sub/a-Q8_0.gguf", "README.md"]);
        let find = |name: &str| cache.find(&name.parse().unwrap());
        let path = dir.path().join("models--o--r/snapshots/c0ffee/sub/a-Q8_0.gguf");
        assert_eq!(find("hf:o/r/sub/a-Q8_0.gguf"), Some(path.clone()));
        assert_eq!(find("hf:o/r/sub/a-Q8_0.gguf@c0ffee"), Some(path));
        for absent in ["hf:o/r/a-Q8_0.gguf", "hf:o/r/sub/a-Q8_0.gguf@v1", "hf:o/s/sub/a-Q8_0.gguf"]
        {
            assert_eq!(find(absent), None, "{absent}");
        }
        assert_eq!(cache.files(&"hf:o/r".parse().unwrap()), ["sub/a-Q8_0.gguf"]);
        assert!(cache.files(&"hf:o/none".parse().unwrap()).is_empty());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_is_not_its_blob_is_damaged() {
        let (dir, cache) = cache(&["a.gguf"]);
        let name: HubFile = "hf:o/r/a.gguf".parse().unwrap();
        let plain = cache.verify(&name).await.unwrap().unwrap();
        assert_eq!((plain.bytes, plain.files, plain.verified), (4, 1, false));
        let repository = dir.path().join("models--o--r");
        let place = repository.join("snapshots/c0ffee/a.gguf");
        fs::create_dir_all(repository.join("blobs")).unwrap();
        for (blob, whole) in [(plain.sha256.clone(), true), ("0".repeat(64), false)] {
            let blob = repository.join("blobs").join(blob);
            fs::write(&blob, "GGUF").unwrap();
            fs::remove_file(&place).unwrap();
            std::os::unix::fs::symlink(&blob, &place).unwrap();
            match cache.verify(&name).await {
                Ok(found) => assert!(whole && found.unwrap().verified),
                Err(error) => assert!(!whole, "{error}"),
            }
        }
        assert!(cache.verify(&"hf:o/r/b.gguf".parse().unwrap()).await.unwrap().is_none());
    }

    #[test]
    fn a_model_in_parts_is_found_if_all_parts_are_there() {
        let (first, second) = ("x-00001-of-00002.gguf", "x-00002-of-00002.gguf");
        let name: HubFile = "hf:o/r/x-00001-of-00002.gguf".parse().unwrap();
        assert_eq!(cache(&[first]).1.find(&name), None);
        let (_dir, whole) = cache(&[first, second]);
        assert!(whole.find(&name).unwrap().ends_with(first));
    }

    #[test]
    fn a_reference_that_leaves_the_folder_is_not_followed() {
        let (dir, cache) = cache(&["a.gguf"]);
        fs::write(dir.path().join("models--o--r/refs/main"), "../..").unwrap();
        assert_eq!(cache.find(&"hf:o/r/a.gguf".parse().unwrap()), None);
    }
}
