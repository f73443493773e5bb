//! `lapwing serve`: an HTTP server.

pub(crate) mod kv_events;

use std::path::PathBuf;

use lapwing_serve::{KeyConfig, KvEventsAddress, ServeConfig, Server};

use crate::cli::failure::Failure;
use crate::cli::serve_log::{self, LogForm};
use crate::cli::session::Session;
use crate::cli::{DEFAULT_MODEL, other_names};
use crate::engine_options::{EngineOptions, Offer};

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

With --json: {\"address\":\"127.0.0.1:11434\",\"models\":[\"…\"],\"kv_events\":[…],\"notes\":[…]}, printed when
the server listens";

/// Options of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Models to offer, as with -m
    #[arg(value_name = "[NAME=]MODEL")]
    arguments: Vec<String>,

    /// A model to offer; NAME=MODEL gives it another name; may be repeated [default:
    /// smollm2-135m-instruct]
    ///
    /// By name or file as elsewhere. Each is loaded when a request asks for it.
    #[arg(short, long = "model", value_name = "[NAME=]MODEL", help_heading = "Model")]
    models: Vec<String>,

    /// Address and port to listen on, or one of them [default: 127.0.0.1:11434]
    ///
    /// The variable LAPWING_LISTEN sets it, too.
    #[arg(long, value_name = "ADDRESS:PORT", env = "LAPWING_LISTEN", hide_env = true)]
    listen: Option<String>,

    /// Address to listen on, in the place of that of --listen
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    host: Option<String>,

    /// Port to listen on, in the place of that of --listen
    #[arg(long, value_name = "N")]
    port: Option<u16>,

    /// Settings in TOML; docs/serve.md lists them
    ///
    /// The variable LAPWING_SERVE_CONFIG names the file, too.
    #[arg(long, value_name = "FILE.toml", env = "LAPWING_SERVE_CONFIG", hide_env = true)]
    config: Option<PathBuf>,

    /// File with keys, one NAME KEY on each line; requests then need a key
    ///
    /// NAME is the client. The variable LAPWING_KEY_FILE names the file, too.
    #[arg(long, value_name = "FILE", env = "LAPWING_KEY_FILE", hide_env = true)]
    key_file: Option<PathBuf>,

    /// A key that requests need; several have commas between them
    ///
    /// Other users of the machine can see it among its processes; they cannot see those of --key-file.
    #[arg(long, value_name = "KEY,…", value_delimiter = ',', hide_short_help = true)]
    api_key: Vec<String>,

    /// Listen on an address that other machines reach although no key is set
    #[arg(long)]
    public: bool,

    /// Origin that browsers may send requests from; may be repeated
    ///
    /// As in http://localhost:3000.
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,

    /// Time that running requests have to end after a signal, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<f64>,

    /// Seconds without requests after which a model is unloaded [default: 300]
    ///
    /// Negative for never.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    keep_alive: Option<f64>,

    /// Maximum megabytes of the files of loaded models [default: no limit]
    ///
    /// Beyond it, the one that was not used for the longest time is unloaded.
    #[arg(long, value_name = "MB")]
    memory: Option<u64>,

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
    options: EngineOptions,
}

#[derive(serde::Serialize)]
struct Report<'a> {
    address: String,
    models: &'a [String],
    /// Where KV events are published, by model.
    kv_events: Vec<KvEvents<'a>>,
    /// What users of the server should know, one line each.
    notes: &'a [String],
}

#[derive(serde::Serialize)]
struct KvEvents<'a> {
    model: &'a str,
    address: &'a str,
    replay: Option<&'a str>,
    topic: &'a str,
}

impl<'a> From<&'a KvEventsAddress> for KvEvents<'a> {
    fn from(of: &'a KvEventsAddress) -> KvEvents<'a> {
        let (model, address, replay) = (&*of.model, &*of.address, of.replay.as_deref());
        KvEvents { model, address, replay, topic: &of.topic }
    }
}

/// Serves until a signal.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.options.engine.check(session)?;
    let config = config(&args)?;
    serve_log::start(args.log);
    other_names::note_unread(session);
    let mut builder = Server::builder().config(config);
    let mut names = Vec::new();
    let mut models = [&args.arguments[..], &args.models].concat();
    if models.is_empty() {
        models.push(DEFAULT_MODEL.to_owned());
    }
    for model in &models {
        let Offer { name, engine, temperature } = args.options.offer_in(model, session).await?;
        builder = builder.model_at(&name, engine, temperature);
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
        true => {
            let kv_events = server.kv_events().iter().map(KvEvents::from).collect();
            let report = Report { address, models: &names, kv_events, notes: &notes };
            crate::cli::output::print_json(&report)?;
        }
        false => {
            notes.iter().for_each(|note| session.note(note));
            session.note(&format!(
                "lapwing serves {} on http://{address}; Ctrl-C ends it",
                names.join(", ")
            ));
            for of in server.kv_events() {
                session.note(&format!("KV events of {} on {}", of.model, of.address));
            }
        }
    }
    let stop = async {
        claim.interrupted().await;
        // The next signal ends the process at once.
        drop(claim);
    };
    server.run(stop).await.map_err(|error| Failure::failed(error.to_string()))
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
    if args.host.is_some() || args.port.is_some() {
        config.listen_at(args.host.as_deref(), args.port);
    }
    let keys = (1..).zip(args.api_key.iter().filter(|key| !key.is_empty()));
    config.keys.extend(
        keys.map(|(number, key)| KeyConfig { client: format!("key-{number}"), key: key.clone() }),
    );
    if args.key_file.is_some() {
        config.key_file.clone_from(&args.key_file);
    }
    args.options.apply(&mut config)?;
    config.public |= args.public;
    config.log_prompts |= args.log_prompts;
    config.cors.extend(args.cors.iter().cloned());
    config.grace_s = args.grace.unwrap_or(config.grace_s);
    config.keep_alive_s = args.keep_alive.unwrap_or(config.keep_alive_s);
    config.memory_bytes =
        args.memory.map_or(config.memory_bytes, |mb| mb.saturating_mul(1_000_000));
    Ok(config)
}
