//! `lapwing ps`: the models that a server on this machine has loaded.

use std::time::Duration;

use indicatif::HumanBytes;
use lapwing_serve::ServeConfig;
use reqwest::{Client, StatusCode};
use serde::{Deserialize, Serialize};

use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};

const EXAMPLES: &str = "\
Examples:
  lapwing ps
  lapwing ps --server 127.0.0.1:8080
  lapwing ps --api-key KEY                     for a server with keys

Asks the server of `lapwing serve`, or another one with Ollama's interface. The size is that of
the model's file. Packed weights are in memory of the server alone, or in mapped files, which all
processes share that use the model.

With --json:
  {\"server\":\"ADDRESS:PORT\",\"models\":[{\"name\":\"…\",\"bytes\":N,\"own_bytes\":N|null,
   \"mapped_bytes\":N|null,\"expires_at\":\"…\"}]}";

/// Longest time for the server's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Options of `ps`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address and port of the server, or one of them [default: 127.0.0.1:11434]
    #[arg(long, value_name = "ADDRESS:PORT", env = "LAPWING_LISTEN", hide_env = true)]
    server: Option<String>,

    /// A key of the server
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
}

/// The server's answer, as far as it is read.
#[derive(Deserialize)]
struct Answer {
    models: Vec<Loaded>,
}

#[derive(Deserialize)]
struct Loaded {
    name: String,
    #[serde(default)]
    size: u64,
    packed_own_bytes: Option<u64>,
    packed_mapped_bytes: Option<u64>,
    #[serde(default)]
    expires_at: String,
}

#[derive(Serialize)]
struct Report {
    server: String,
    models: Vec<Model>,
}

#[derive(Serialize)]
struct Model {
    name: String,
    bytes: u64,
    /// Packed weights in memory of the server alone; `None` if the server does not say.
    own_bytes: Option<u64>,
    /// Packed weights in mapped files.
    mapped_bytes: Option<u64>,
    expires_at: String,
}

/// Asks and prints.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    let mut config = ServeConfig::default();
    if let Some(server) = args.server {
        config.listen = server;
    }
    // An address that means all addresses to a server is this machine to a client.
    let server = config.address().replacen("0.0.0.0:", "127.0.0.1:", 1);
    let answer = ask(&server, args.api_key.as_deref()).await?;
    let model = |loaded: Loaded| Model {
        name: loaded.name,
        bytes: loaded.size,
        own_bytes: loaded.packed_own_bytes,
        mapped_bytes: loaded.packed_mapped_bytes,
        expires_at: loaded.expires_at,
    };
    let report = Report { server, models: answer.models.into_iter().map(model).collect() };
    if session.json {
        return print_json(&report);
    }
    if report.models.is_empty() {
        return print(&format!("the server at {} has no model loaded\n", report.server));
    }
    let bytes = |bytes: Option<u64>| bytes.map_or("–".to_owned(), |n| HumanBytes(n).to_string());
    let rows = report.models.iter().map(|model| {
        let [size, own, mapped] =
            [Some(model.bytes), model.own_bytes, model.mapped_bytes].map(bytes);
        [model.name.clone(), size, own, mapped, model.expires_at.clone()]
    });
    let header = [
        ("name", Align::Left),
        ("size", Align::Right),
        ("weights, own", Align::Right),
        ("weights, shared", Align::Right),
        ("loaded until", Align::Left),
    ];
    print(&table(header, rows.collect()))
}

async fn ask(server: &str, key: Option<&str>) -> Result<Answer, Failure> {
    let silent = |error: reqwest::Error| {
        Failure::failed(format!("no server answers at {server}: {error}")).hint(
            "`lapwing serve` starts one, and --server names another address; `lapwing models` lists the models on disk",
        )
    };
    // The client asks for TLS also where it does not use it. An error means that the program has chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().timeout(TIMEOUT).no_proxy().build().map_err(silent)?;
    let request = client.get(format!("http://{server}/api/ps"));
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let answer = request.send().await.map_err(silent)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED => {
            return Err(Failure::failed(format!(
                "the server at {server} needs a key: --api-key KEY"
            )));
        }
        status => {
            return Err(Failure::failed(format!(
                "the server at {server} answers {status} to /api/ps: it is not one of `lapwing serve`"
            )));
        }
    }
    let body = answer.bytes().await.map_err(silent)?;
    serde_json::from_slice(&body).map_err(|error| {
        Failure::failed(format!("the answer of the server at {server} cannot be read: {error}"))
    })
}
