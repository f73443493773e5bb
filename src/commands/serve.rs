//! `lapwing serve`: an HTTP server.

use std::path::PathBuf;

use lapwing::serve::{ServeConfig, Server};

use crate::cli::failure::Failure;
use crate::cli::plans::with_plans;
use crate::cli::profiles::with_stored;
use crate::cli::resolve::{ModelChoice, model_file};
use crate::cli::serve_log::{self, LogForm};
use crate::cli::session::Session;
use crate::cli::{EngineArgs, PrefixArgs, at_least_one};

const EXAMPLES: &str = "\
Examples:
  lapwing serve                                       the default model on http://127.0.0.1:11434
  lapwing serve -m gemma-3-270m -m FILE.gguf --listen 127.0.0.1:8080
  lapwing serve -m small=FILE.gguf --key-file keys.txt --listen 0.0.0.0:8080
  lapwing serve --config serve.toml --log json

Clients: OpenAI's (base URL http://127.0.0.1:11434/v1), Ollama's, Anthropic's
(http://127.0.0.1:11434), and those of llama.cpp's server. http://127.0.0.1:11434/ is a page with a
chat and the state of the server. docs/serve.md describes everything.

--config names a TOML file; options take the place of its values. SIGTERM or Ctrl-C lets running
requests end for --grace seconds; a second one ends them at once.

With --json: {\"address\":\"127.0.0.1:11434\",\"models\":[\"…\"]}, printed when the server listens";

/// Options of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A model to offer, by name or file as elsewhere; NAME=MODEL gives it another name. May be repeated:
    /// each is loaded when a request asks for it
    #[arg(
        short,
        long = "model",
        value_name = "[NAME=]MODEL",
        default_value = "smollm2-135m-instruct",
        help_heading = "Model"
    )]
    models: Vec<String>,

    /// Address and port to listen on [default: 127.0.0.1:11434]
    #[arg(long, value_name = "ADDRESS:PORT", env = "LAPWING_LISTEN")]
    listen: Option<String>,

    /// Settings in TOML; docs/serve.md lists them
    #[arg(long, value_name = "FILE.toml", env = "LAPWING_SERVE_CONFIG")]
    config: Option<PathBuf>,

    /// File with keys, one NAME KEY on each line; requests then need a key, and NAME is the client
    #[arg(long, value_name = "FILE", env = "LAPWING_KEY_FILE")]
    key_file: Option<PathBuf>,

    /// Listen on an address that other machines reach although no key is set
    #[arg(long)]
    public: bool,

    /// Origin that browsers may send requests from, as in http://localhost:3000; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,

    /// Maximum requests of a model that wait or run; further ones are refused with 429 [default: 256]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    requests: Option<usize>,

    /// Maximum requests of a model that are computed at once; further ones wait [default: 16]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    parallel: Option<usize>,

    /// Time that running requests have to end after a signal, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<f64>,

    /// Seconds without requests after which a model is unloaded; negative for never [default: 300]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    keep_alive: Option<f64>,

    /// Maximum megabytes of the files of loaded models; beyond it, the one that was not used for the
    /// longest time is unloaded [default: no limit]
    #[arg(long, value_name = "MB")]
    memory: Option<u64>,

    /// Maximum tokens of prompt and answer together [default: the training context, up to 8192]
    #[arg(short, long, value_name = "TOKENS", value_parser = at_least_one, help_heading = "Engine")]
    ctx: Option<usize>,

    /// Load the first model before listening, not at the first request
    #[arg(long)]
    preload: bool,

    /// Form of the log on stderr: text, json or off
    #[arg(long, value_name = "FORM", default_value = "text")]
    log: LogForm,

    /// Write prompts and answers to the log, too
    #[arg(long)]
    log_prompts: bool,

    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    prefix: PrefixArgs,
}

#[derive(serde::Serialize)]
struct Report<'a> {
    address: String,
    models: &'a [String],
    /// What users of the server should know, one line each.
    notes: &'a [String],
}

/// Serves until a signal.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let config = config(&args)?;
    serve_log::start(args.log);
    let mut builder = Server::builder().config(config);
    let mut names = Vec::new();
    for model in &args.models {
        let (name, model) = named(model);
        let choice = ModelChoice::of(model)?;
        let path = model_file(model, session).await?;
        let mut engine = args.prefix.applied(args.engine.builder(path)?);
        if let Some(context) = args.ctx {
            engine = engine.context(context);
        }
        let engine = with_plans(with_stored(engine, session), session);
        builder = builder.model_at(&name, engine, choice.temperature());
        names.push(name);
    }
    let claim = session.interrupts.claim();
    let server = builder.bind().await.map_err(|error| Failure::failed(error.to_string()))?;
    if args.preload {
        server.load().await.map_err(|error| Failure::failed(error.to_string()))?;
    }
    let address = server.address().to_string();
    let notes = server.notes();
    match session.json {
        true => crate::cli::output::print_json(&Report { address, models: &names, notes: &notes })?,
        false => {
            notes.iter().for_each(|note| session.note(note));
            session.note(&format!(
                "lapwing serves {} on http://{address}; Ctrl-C ends it",
                names.join(", ")
            ));
        }
    }
    let stop = async {
        claim.interrupted().await;
        // The next signal ends the process at once.
        drop(claim);
    };
    server.run(stop).await.map_err(|error| Failure::failed(error.to_string()))
}

/// Name and model of `NAME=MODEL`; a model without a name has that of the argument, or of its file.
fn named(argument: &str) -> (String, &str) {
    if let Some((name, model)) = argument.split_once('=')
        && !name.is_empty()
        && !name.contains(['/', ':'])
    {
        return (name.to_owned(), model);
    }
    let file = std::path::Path::new(argument);
    let is_file = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
    let stem = file.file_stem().filter(|_| is_file).map(|stem| stem.to_string_lossy().into_owned());
    (stem.unwrap_or_else(|| argument.to_owned()), argument)
}

/// The settings of the file, with those of the options in their place.
fn config(args: &Args) -> Result<ServeConfig, Failure> {
    let mut config = match &args.config {
        None => ServeConfig::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::file("read the settings in", path, &error))?;
            ServeConfig::from_toml(&text).map_err(|error| {
                Failure::failed(format!("the settings in {} are wrong: {error}", path.display()))
            })?
        }
    };
    if let Some(listen) = &args.listen {
        config.listen.clone_from(listen);
    }
    if args.key_file.is_some() {
        config.key_file.clone_from(&args.key_file);
    }
    if let Some(policy) = &args.engine.policy {
        config.policy.clone_from(policy);
    }
    config.public |= args.public;
    config.log_prompts |= args.log_prompts;
    config.cors.extend(args.cors.iter().cloned());
    config.requests_max = args.requests.unwrap_or(config.requests_max);
    config.sequences_max = args.parallel.unwrap_or(config.sequences_max);
    config.grace_s = args.grace.unwrap_or(config.grace_s);
    config.keep_alive_s = args.keep_alive.unwrap_or(config.keep_alive_s);
    config.memory_bytes =
        args.memory.map_or(config.memory_bytes, |mb| mb.saturating_mul(1_000_000));
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn models_have_the_name_that_is_given_or_that_of_their_file() {
        let rows = [
            ("small=dir/a.gguf", ("small", "dir/a.gguf")),
            ("dir/a.gguf", ("a", "dir/a.gguf")),
            ("smollm2", ("smollm2", "smollm2")),
            ("hf:owner/repo:Q8_0", ("hf:owner/repo:Q8_0", "hf:owner/repo:Q8_0")),
            ("chat=hf:owner/repo", ("chat", "hf:owner/repo")),
            ("dir/a=b.gguf", ("a=b", "dir/a=b.gguf")),
        ];
        for (argument, (name, model)) in rows {
            assert_eq!(named(argument), (name.to_owned(), model), "{argument}");
        }
    }
}
