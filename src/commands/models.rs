//! `lapwing models`: lists, verifies and removes models.

use indicatif::HumanBytes;
use lapwing::models::{CachedModel, CatalogueEntry, FetchError, ModelCache, ModelName, catalogue};
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

const EXAMPLES: &str = "\
Examples:
  lapwing models
  lapwing models --verify
  lapwing models --remove gemma3-270m

With --json:
  {\"cache\":\"FOLDER\",\"models\":[{\"name\":\"…\",\"aliases\":[…],\"about\":\"…\",\"license\":\"…\",\"url\":\"…\",
   \"bytes\":N|null,\"cached\":true|false,\"path\":\"…\"|null,\"sha256\":\"…\"|null,\"source\":\"…\"|null}]}
  with --verify: {\"verified\":[{\"name\":\"…\",\"ok\":true|false,\"error\":\"…\"|null}]}
  with --remove: {\"removed\":\"NAME\"}";

/// Options of `models`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Read every cached model again and compare its SHA-256; exit code 1 if one differs
    #[arg(long, conflicts_with = "remove")]
    verify: bool,

    /// Remove a model from the cache, including leftovers of an interrupted fetch
    #[arg(long, value_name = "NAME")]
    remove: Option<String>,
}

#[derive(Serialize)]
struct Report {
    cache: String,
    models: Vec<Model>,
}

#[derive(Serialize)]
struct Model {
    name: String,
    aliases: &'static [&'static str],
    about: Option<&'static str>,
    license: Option<&'static str>,
    url: Option<&'static str>,
    bytes: Option<u64>,
    cached: bool,
    path: Option<String>,
    sha256: Option<String>,
    source: Option<String>,
}

#[derive(Serialize)]
struct Verified {
    name: String,
    ok: bool,
    error: Option<String>,
}

/// Lists, verifies or removes.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    let cache = ModelCache::open(None)?;
    if let Some(name) = args.remove {
        return remove(&cache, &name, session);
    }
    if args.verify {
        return verify(&cache, session).await;
    }
    let models = models(&cache)?;
    let report = Report { cache: cache.dir().display().to_string(), models };
    if session.json { print_json(&report) } else { print_list(&report) }
}

fn models(cache: &ModelCache) -> Result<Vec<Model>, FetchError> {
    let mut cached = cache.list()?;
    let mut models: Vec<Model> = catalogue()
        .iter()
        .map(|entry| {
            let at = cached.iter().position(|model| model.name == entry.name);
            Model::new(Some(entry), at.map(|at| cached.remove(at)))
        })
        .collect();
    models.extend(cached.into_iter().map(|model| Model::new(None, Some(model))));
    Ok(models)
}

impl Model {
    fn new(entry: Option<&'static CatalogueEntry>, cached: Option<CachedModel>) -> Model {
        let name = entry.map(|entry| entry.name.to_owned());
        Model {
            name: name.or(cached.as_ref().map(|model| model.name.clone())).unwrap_or_default(),
            aliases: entry.map_or(&[], |entry| entry.aliases),
            about: entry.map(|entry| entry.about),
            license: entry.map(|entry| entry.license),
            url: entry.map(|entry| entry.url),
            bytes: cached.as_ref().map(|model| model.bytes).or(entry.and_then(|entry| entry.bytes)),
            cached: cached.is_some(),
            path: cached.as_ref().map(|model| model.path.display().to_string()),
            sha256: cached
                .as_ref()
                .map(|model| model.sha256.clone())
                .or(entry.and_then(|entry| entry.sha256).map(str::to_owned)),
            source: cached.map(|model| model.source),
        }
    }
}

fn print_list(report: &Report) -> Result<(), Failure> {
    let rows = report.models.iter().map(|model| {
        let size =
            model.bytes.map_or_else(|| "?".to_owned(), |bytes| HumanBytes(bytes).to_string());
        let place = if model.cached { "cached" } else { "" };
        [
            model.name.clone(),
            size,
            place.to_owned(),
            model.license.unwrap_or("").to_owned(),
            model.about.unwrap_or("").to_owned(),
        ]
    });
    let header = [
        ("name", Align::Left),
        ("size", Align::Right),
        ("state", Align::Left),
        ("licence", Align::Left),
        ("about", Align::Left),
    ];
    let mut text = table(header, rows.collect());
    text.push_str(&format!("\ncache: {}\n", visible(&report.cache)));
    let paths = report.models.iter().filter_map(|model| model.path.as_deref());
    paths.for_each(|path| text.push_str(&format!("  {}\n", visible(path))));
    print(&text)
}

fn remove(cache: &ModelCache, name: &str, session: &Session) -> Result<(), Failure> {
    // A name of the cache that is in no catalogue (any more) can be removed as well.
    let known = name.parse::<ModelName>().map(|known| known.to_string());
    let name = known.unwrap_or_else(|_| name.to_owned());
    cache.remove(&name)?;
    if session.json {
        return print_json(&serde_json::json!({ "removed": name }));
    }
    print(&format!("removed {}\n", visible(&name)))
}

async fn verify(cache: &ModelCache, session: &Session) -> Result<(), Failure> {
    let mut verified = Vec::new();
    for model in cache.list()? {
        session.note(&format!("verifying {} ({})", model.name, HumanBytes(model.bytes)));
        let error = cache.verify(&model.name).await.err().map(|error| error.to_string());
        verified.push(Verified { name: model.name, ok: error.is_none(), error });
    }
    let bad = verified.iter().filter(|model| !model.ok).count();
    if session.json {
        print_json(&serde_json::json!({ "verified": verified }))?;
    } else {
        let lines: String = verified
            .iter()
            .map(|model| match &model.error {
                None => format!("ok      {}\n", visible(&model.name)),
                Some(error) => format!("DAMAGED {}: {}\n", visible(&model.name), visible(error)),
            })
            .collect();
        print(if lines.is_empty() { "no cached models\n" } else { &lines })?;
    }
    match bad {
        0 => Ok(()),
        1 => Err(Failure::failed("a cached model is damaged")
            .hint("remove it with `lapwing models --remove NAME` and fetch it again")),
        _ => Err(Failure::failed(format!("{bad} cached models are damaged"))
            .hint("remove them with `lapwing models --remove NAME` and fetch them again")),
    }
}
