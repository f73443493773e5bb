//! `lapwing pull`: fetches a model into the cache.

use std::path::PathBuf;

use lapwing::models::{FetchError, ModelCache, ModelName};
use serde::Serialize;

use crate::cli::PositionalModel;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::resolve::{ModelChoice, fetched};
use crate::cli::session::Session;
use crate::cli::visible::visible;

const EXAMPLES: &str = "\
Examples:
  lapwing pull                                   the default model
  lapwing pull gemma3-270m
  lapwing pull hf:Qwen/Qwen3-0.6B-GGUF                       the best file of a repository
  lapwing pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0                  the one of this quantisation
  lapwing pull hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf  this file

An interrupted fetch continues where it stopped; a damaged file is fetched again. The path of
the file is printed at the end.

With --json:
  {\"name\":\"…\",\"path\":\"…\",\"bytes\":N,\"sha256\":\"…\",\"verified\":true|false,\"source\":\"…\"}
  verified: whether the source states a SHA-256 and the file matches it. A cached file is read
    again and compared; if it is damaged, it is fetched again.";

/// Options of `pull`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: PositionalModel,
}

#[derive(Serialize)]
struct Report {
    name: String,
    path: String,
    bytes: u64,
    sha256: String,
    verified: bool,
    source: String,
}

/// The model's file: as it has just been fetched, or as it is in the cache, if its SHA-256 is still that
/// of its record. A damaged file is removed and fetched again.
async fn sound(name: &ModelName, session: &Session) -> Result<PathBuf, Failure> {
    let (cache, cached) = (ModelCache::open(None)?, name.to_string());
    if cache.model(&cached).is_some() {
        match cache.verify(&cached).await {
            Ok(_) => {}
            Err(error @ FetchError::HashMismatch { .. }) => {
                session.note(&error.to_string());
                cache.remove(&cached)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    fetched(name, session).await
}

/// Fetches a model, unless it is already cached and undamaged.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    let name = match args.model.name().map(ModelChoice::of).transpose()? {
        None => ModelName::default_model(),
        Some(ModelChoice::Name(name)) => name,
        Some(ModelChoice::File(path)) => {
            return Err(Failure::failed(format!(
                "{} is a file; only models with a name can be fetched",
                path.display()
            ))
            .hint(
                "`lapwing models` lists the names; for a model on the hub write hf:owner/repo[:QUANT] or hf:owner/repo/file.gguf",
            ));
        }
    };
    let name = name.resolve(&ModelCache::open(None)?).await?;
    let path = sound(&name, session).await?;
    if !session.json {
        return print(&format!("{}\n", visible(&path.display().to_string())));
    }
    let name = name.to_string();
    let model = ModelCache::open(None)?.model(&name).ok_or_else(|| {
        Failure::failed(format!("{name} was removed from the cache during the fetch"))
    })?;
    print_json(&Report {
        name: model.name,
        path: model.path.display().to_string(),
        bytes: model.bytes,
        sha256: model.sha256,
        verified: model.verified,
        source: model.source,
    })
}
