//! `lapwing models`: lists, verifies and removes models.

use indicatif::HumanBytes;
use lapwing_engine::models::{
    CachedModel, CatalogueEntry, FetchError, ModelCache, ModelName, catalogue,
};
use lapwing_traces::text::counted;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

const EXAMPLES: &str = "\
Examples:
  lapwing models
  lapwing models --verify                      all of them; or those that are named
  lapwing models --remove gemma3-270m

With --json:
  {\"cache\":\"FOLDER\",\"models\":[{\"name\":\"…\",\"aliases\":[…],\"about\":\"…\",\"license\":\"…\",\"url\":\"…\",
   \"bytes\":N|null,\"cached\":true|false,\"path\":\"…\"|null,\"sha256\":\"…\"|null,\"source\":\"…\"|null}]}
  with --verify: {\"verified\":[{\"name\":\"…\",\"ok\":true|false,\"error\":\"…\"|null}]}
  with --remove: {\"removed\":\"NAME\",\"bytes\":N}, one for each name";

/// Options of `models`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Read cached models again and compare their SHA-256, all or those named; exit code 1 if one differs
    #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with = "remove")]
    verify: Option<Vec<String>>,

    /// Remove models from the cache, including leftovers of an interrupted fetch
    #[arg(long, value_name = "NAME", num_args = 1..)]
    remove: Vec<String>,
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
    #[serde(skip)]
    files: usize,
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
    if !args.remove.is_empty() {
        return remove(&cache, &args.remove, session);
    }
    if let Some(names) = args.verify {
        return verify(&cache, &names, session).await;
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
            files: cached.as_ref().map_or(0, |model| model.files),
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
    for model in &report.models {
        let Some(path) = model.path.as_deref() else { continue };
        let more = match model.files {
            0 | 1 => String::new(),
            files => format!(" and {}", counted(files - 1, "more part")),
        };
        text.push_str(&format!("  {}{more}\n", visible(path)));
    }
    print(&text)
}

/// The name in the cache that a name stands for. A model of the cache that is in no catalogue (any more)
/// has a name, too, and a repository stands for its file in the cache.
fn cached_name(cache: &ModelCache, name: &str) -> Result<String, Failure> {
    let known: Option<ModelName> = name.parse().ok();
    Ok(match known {
        Some(known) => known.cached(cache)?.unwrap_or(known).to_string(),
        None => name.to_owned(),
    })
}

fn remove(cache: &ModelCache, names: &[String], session: &Session) -> Result<(), Failure> {
    for name in names {
        let name = cached_name(cache, name)?;
        let bytes = cache.model(&name).map_or(0, |model| model.bytes);
        cache.remove(&name)?;
        match session.json {
            true => print_json(&serde_json::json!({ "removed": name, "bytes": bytes }))?,
            false => print(&format!("removed {} ({})\n", visible(&name), HumanBytes(bytes)))?,
        }
    }
    Ok(())
}

async fn verify(cache: &ModelCache, names: &[String], session: &Session) -> Result<(), Failure> {
    let mut models = cache.list()?;
    if !names.is_empty() {
        let mut wanted = Vec::new();
        for name in names {
            let name = cached_name(cache, name)?;
            let at = models.iter().position(|model| model.name == name);
            let absent = || FetchError::NotCached { name, dir: cache.dir().to_owned() };
            wanted.push(models.swap_remove(at.ok_or_else(absent)?));
        }
        models = wanted;
    }
    let mut verified = Vec::new();
    for model in models {
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
