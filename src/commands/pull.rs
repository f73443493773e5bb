//! `lapwing pull`: fetches a model into the cache.

use lapwing::models::{ModelCache, ModelName};
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
  lapwing pull hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf

An interrupted fetch continues where it stopped. The path of the file is printed at the end.

With --json:
  {\"name\":\"…\",\"path\":\"…\",\"bytes\":N,\"sha256\":\"…\",\"verified\":true|false,\"source\":\"…\"}
  verified: whether the source states a SHA-256 and the file matches it.";

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

/// Fetches a model, unless it is already cached.
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
                "`lapwing models` lists the names; for a file on the hub write hf:owner/repo/file.gguf",
            ));
        }
    };
    let path = fetched(&name, session).await?;
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
