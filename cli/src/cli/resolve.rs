//! Resolves a model argument to a file on disk.

use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use lapwing_engine::models::{ModelCache, ModelName, fetch};

use super::failure::Failure;
use super::fetch_progress::FetchProgress;
use super::session::Session;

/// Meaning of a model argument.
#[derive(Debug, PartialEq)]
pub(crate) enum ModelChoice {
    /// A file on disk.
    File(PathBuf),
    /// A model that can be fetched.
    Name(ModelName),
}

impl ModelChoice {
    /// Decides by the form of the argument, and by whether such a file exists.
    ///
    /// # Errors
    /// When it is neither a file nor a known name.
    pub(crate) fn of(model: &str) -> Result<ModelChoice, Failure> {
        let path = Path::new(model);
        let is_hub = ModelName::is_of_hub(model);
        let looks_like_file = model.contains(['/', MAIN_SEPARATOR])
            || path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
        if path.is_file() || (looks_like_file && !is_hub) {
            return Ok(ModelChoice::File(path.to_owned()));
        }
        Ok(ModelChoice::Name(model.parse()?))
    }

    /// Sampling temperature that the model's makers recommend, if known.
    pub(crate) fn temperature(&self) -> Option<f32> {
        match self {
            ModelChoice::File(_) => None,
            ModelChoice::Name(name) => name.entry().and_then(|entry| entry.temperature),
        }
    }
}

/// The model's file, fetched if necessary.
pub(crate) async fn model_file(model: &str, session: &Session) -> Result<PathBuf, Failure> {
    match ModelChoice::of(model)? {
        ModelChoice::File(path) => existing(path),
        ModelChoice::Name(name) => fetched(&name, session).await,
    }
}

/// The file of a model that was fetched before, by any of its names; `None` if it is no such name, or was not fetched.
pub(crate) fn fetched_before(model: &str) -> Result<Option<PathBuf>, Failure> {
    let Ok(name) = model.parse::<ModelName>() else { return Ok(None) };
    let cache = ModelCache::open(None)?;
    let cached = name.cached(&cache)?.and_then(|name| cache.path_of(&name.to_string()));
    Ok(cached.or_else(|| name.shared()))
}

/// Fetches a model by name, showing progress on stderr.
pub(crate) async fn fetched(name: &ModelName, session: &Session) -> Result<PathBuf, Failure> {
    let cache = ModelCache::open(None)?;
    let mut progress = FetchProgress::new(session);
    let result = fetch(&cache, name, &mut progress).await;
    progress.clear();
    Ok(result?)
}

/// The path, if there is a file.
pub(crate) fn existing(path: PathBuf) -> Result<PathBuf, Failure> {
    match std::fs::metadata(&path) {
        Ok(data) if data.is_dir() => Err(Failure::failed(format!(
            "{} is a folder; give the .gguf file in it",
            path.display()
        ))),
        Ok(_) => Ok(path),
        Err(error) => {
            Err(Failure::file("open the model", &path, &error).hint(match on_hub(&path) {
                Some(name) => format!("for the model of the Hugging Face repository write {name}"),
                None => {
                    "a name without '/' and '.gguf' is looked up among the known models (`lapwing \
                         models`); for a Hugging Face repository write hf:owner/repo[:QUANT]"
                        .to_owned()
                }
            }))
        }
    }
}

/// The name on the hub that a path may have been meant as: `owner/repo`, or a file of it.
fn on_hub(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let is_relative = !text.starts_with(['.', '/', '~']);
    let name = format!("hf:{text}");
    let parsed: Option<ModelName> = name.parse().ok();
    let file_without_owner = text.matches('/').count() == 1 && text.ends_with(".gguf");
    parsed.filter(|_| is_relative && !file_without_owner).map(|name| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_names_are_distinguished() {
        for path in ["x.gguf", "X.GGUF", "./smollm2", "dir/smollm2", "/abs/model", "Cargo.toml"] {
            let choice = ModelChoice::of(path).expect(path);
            assert_eq!(choice, ModelChoice::File(path.into()), "{path}");
        }
        for (path, name) in [
            ("Qwen/Qwen3-0.6B-GGUF", Some("hf:Qwen/Qwen3-0.6B-GGUF")),
            ("Qwen/Qwen3-0.6B-GGUF:Q8_0", Some("hf:Qwen/Qwen3-0.6B-GGUF:Q8_0")),
            ("o/r/f.gguf", Some("hf:o/r/f.gguf")),
            ("folder/f.gguf", None),
            ("./o/r", None),
            ("/o/r", None),
        ] {
            assert_eq!(on_hub(Path::new(path)).as_deref(), name, "{path}");
        }
        for name in ["smollm2", "SmolLM2-135M-Instruct", "hf:a/b/c.gguf", "hf:a/b/d/c.gguf@v1"] {
            let choice = ModelChoice::of(name).expect(name);
            assert!(matches!(choice, ModelChoice::Name(_)), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let error = ModelChoice::of("smolm2").expect_err("unknown");
        let Failure::Failed { message, .. } = error else { panic!("{error:?}") };
        assert!(message.contains("did you mean \"smollm2\"?"), "{message}");
    }
}
