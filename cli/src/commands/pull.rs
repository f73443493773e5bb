//! `lapwing pull`: fetches a model into the cache.

use lapwing_engine::models::{FetchError, ModelCache, ModelName};
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

An interrupted fetch continues where it stopped; a damaged file is fetched again. Of a model in
several parts all are fetched. A model that Hugging Face's tools have in their cache is used there.
The path of the file, or of the first part, is printed at the end.

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

/// Fetches the model, unless it is in the cache and its SHA-256 is still that of its record. A damaged
/// one is removed and fetched again.
async fn sound(name: &ModelName, session: &Session) -> Result<(), Failure> {
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
    fetched(name, session).await.map(|_| ())
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
    let cache = ModelCache::open(None)?;
    let cached = name.to_string();
    let shared = match cache.model(&cached) {
        Some(_) => None,
        None => name.verify_shared().await?,
    };
    let model = match shared {
        Some(model) => {
            session.note("it is in the cache of Hugging Face's tools, and is used there");
            model
        }
        None => {
            sound(&name, session).await?;
            cache.model(&cached).ok_or_else(|| {
                Failure::failed(format!("{cached} was removed from the cache during the fetch"))
            })?
        }
    };
    if !session.json {
        return print(&format!("{}\n", visible(&model.path.display().to_string())));
    }
    print_json(&Report {
        name: model.name,
        path: model.path.display().to_string(),
        bytes: model.bytes,
        sha256: model.sha256,
        verified: model.verified,
        source: model.source,
    })
}
